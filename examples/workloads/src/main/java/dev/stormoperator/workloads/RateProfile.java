package dev.stormoperator.workloads;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How many tuples a second a source should emit, as a function of time. All tasks of the source together.
 *
 * <p>Written {@code steady:300}, {@code step:300,600@60}, {@code sine:100..500/120s}, {@code random:50..400/10s;seed=7},
 * {@code spike:200,900@60+10s}; step and spike may end in a period, {@code /180s}, after which they begin anew. A plain
 * number is steady. The grammar is in examples/README.md.
 */
public abstract class RateProfile implements Serializable {

    private static final long serialVersionUID = 1L;

    private static final String NUMBER = "(\\d+(?:\\.\\d+)?)";
    private static final String PERIOD = "(?:/" + NUMBER + "s)?";
    private static final Pattern PLAIN = Pattern.compile(NUMBER);
    private static final Pattern STEP = Pattern.compile(NUMBER + "((?:,[^,/]+)+)" + PERIOD);
    private static final Pattern STEP_TO = Pattern.compile(NUMBER + "@" + NUMBER + "s?");
    private static final Pattern WAVE = Pattern.compile(NUMBER + "\\.\\." + NUMBER + "/" + NUMBER + "s");
    private static final Pattern RANDOM = Pattern.compile(WAVE.pattern() + "(?:;seed=(\\d{1,18}))?");
    private static final Pattern SPIKE =
        Pattern.compile(NUMBER + "," + NUMBER + "@" + NUMBER + "s?\\+" + NUMBER + "s" + PERIOD);

    private final String text;

    private RateProfile(String text) {
        this.text = text;
    }

    /** Tuples a second, {@code seconds} after the beginning (0 or more). */
    public abstract double perSecond(double seconds);

    /** As it was written. */
    @Override
    public String toString() {
        return text;
    }

    /**
     * Reads a profile.
     *
     * @param field what to call the text in messages, e.g. {@code --rate}
     * @throws IllegalArgumentException naming the field, the text and the right form
     */
    public static RateProfile parse(String field, String text) {
        String trimmed = text.trim();
        int colon = trimmed.indexOf(':');
        String kind = colon < 0 ? "steady" : trimmed.substring(0, colon).toLowerCase(Locale.ROOT);
        String rest = trimmed.substring(colon + 1);
        switch (kind) {
            case "steady":
                return steady(trimmed, match(PLAIN, rest, field, text, "steady:RATE, e.g. steady:300"));
            case "step":
                return step(field, trimmed,
                    match(STEP, rest, field, text, "step:RATE,RATE@SECONDS,...[/PERIODs], e.g. step:300,600@60"));
            case "sine":
                return sine(field, trimmed, match(WAVE, rest, field, text, "sine:LOW..HIGH/PERIODs, e.g. sine:100..500/120s"));
            case "random":
                return random(field, trimmed,
                    match(RANDOM, rest, field, text, "random:LOW..HIGH/PERIODs[;seed=N], e.g. random:50..400/10s;seed=7"));
            case "spike":
                return spike(field, trimmed,
                    match(SPIKE, rest, field, text, "spike:RATE,HIGH@SECONDS+SECONDSs[/PERIODs], e.g. spike:200,900@60+10s"));
            default:
                throw wrong(field, text, "one of steady:, step:, sine:, random:, spike:, or a plain number");
        }
    }

    private static RateProfile steady(String text, Matcher match) {
        double rate = number(match, 1);
        return new RateProfile(text) {
            private static final long serialVersionUID = 1L;

            @Override
            public double perSecond(double seconds) {
                return rate;
            }
        };
    }

    private static RateProfile step(String field, String text, Matcher match) {
        List<double[]> steps = new ArrayList<>(List.of(new double[] {number(match, 1), 0}));
        for (String part : match.group(2).substring(1).split(",")) {
            Matcher step = match(STEP_TO, part, field, text, "step:RATE,RATE@SECONDS,..., e.g. step:300,600@60");
            if (number(step, 2) <= steps.get(steps.size() - 1)[1]) {
                throw wrong(field, text, "steps whose seconds grow, e.g. step:300,600@60,100@120");
            }
            steps.add(new double[] {number(step, 1), number(step, 2)});
        }
        double[][] sorted = steps.toArray(new double[0][]);
        double period = period(field, text, match.group(3), sorted[sorted.length - 1][1]);
        return new RateProfile(text) {
            private static final long serialVersionUID = 1L;

            @Override
            public double perSecond(double seconds) {
                double rate = sorted[0][0];
                for (double[] step : sorted) {
                    rate = step[1] <= seconds % period ? step[0] : rate;
                }
                return rate;
            }
        };
    }

    private static RateProfile sine(String field, String text, Matcher match) {
        double low = number(match, 1);
        double high = notBelow(low, number(match, 2), field, text);
        double period = period(field, text, match.group(3), 0);
        return new RateProfile(text) {
            private static final long serialVersionUID = 1L;

            @Override
            public double perSecond(double seconds) {
                return (low + high) / 2 + (high - low) / 2 * Math.sin(2 * Math.PI * seconds / period);
            }
        };
    }

    private static RateProfile random(String field, String text, Matcher match) {
        double low = number(match, 1);
        double high = notBelow(low, number(match, 2), field, text);
        double period = period(field, text, match.group(3), 0);
        long seed = match.group(4) == null ? 0 : Long.parseLong(match.group(4));
        return new RateProfile(text) {
            private static final long serialVersionUID = 1L;

            @Override
            public double perSecond(double seconds) {
                // From the seed and the interval's number alone, so that all tasks draw the same, also after a restart.
                long interval = (long) (seconds / period);
                return low + (high - low) * new SplittableRandom(seed * 1_000_003 + interval).nextDouble();
            }
        };
    }

    private static RateProfile spike(String field, String text, Matcher match) {
        double base = number(match, 1);
        double high = number(match, 2);
        double start = number(match, 3);
        double end = start + number(match, 4);
        double period = period(field, text, match.group(5), end);
        return new RateProfile(text) {
            private static final long serialVersionUID = 1L;

            @Override
            public double perSecond(double seconds) {
                double at = seconds % period;
                return start <= at && at < end ? high : base;
            }
        };
    }

    private static double period(String field, String text, String period, double least) {
        if (period == null) {
            return Double.POSITIVE_INFINITY;
        }
        double seconds = Double.parseDouble(period);
        if (seconds <= 0 || seconds < least) {
            throw wrong(field, text, "a profile whose period is longer than 0 s and than what it holds");
        }
        return seconds;
    }

    private static double notBelow(double low, double high, String field, String text) {
        if (high < low) {
            throw wrong(field, text, "LOW..HIGH with LOW at most HIGH");
        }
        return high;
    }

    private static double number(Matcher match, int group) {
        return Double.parseDouble(match.group(group));
    }

    private static Matcher match(Pattern pattern, String part, String field, String text, String right) {
        Matcher matcher = pattern.matcher(part);
        if (!matcher.matches()) {
            throw wrong(field, text, right);
        }
        return matcher;
    }

    private static IllegalArgumentException wrong(String field, String text, String right) {
        return new IllegalArgumentException(field + ": \"" + text + "\" should be " + right);
    }
}
