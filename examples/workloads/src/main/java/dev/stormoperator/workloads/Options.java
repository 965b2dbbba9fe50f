package dev.stormoperator.workloads;

import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.shade.net.minidev.json.JSONValue;

/** The command line of a workload: options of the form {@code --name value}, each known beforehand. */
final class Options {

    private final Map<String, String> texts = new LinkedHashMap<>();
    private final Map<String, Integer> parallelism;
    private final Map<String, Integer> cpuMicros = new HashMap<>();
    private final Config conf = new Config();

    /**
     * Reads {@code args}; of an option and a {@code --conf} that set the same, the later one stands.
     *
     * @throws IllegalArgumentException naming the option, its value and what would be right
     */
    Options(Workload workload, String... args) {
        parallelism = new LinkedHashMap<>(workload.components());
        parallelism.keySet().forEach(component -> cpuMicros.put(component, 0));
        texts.putAll(Map.of("name", workload.name(), "rate", workload.rate(), "rate-file", "", "workers", "1",
            "ackers", "1", "max-spout-pending", "0", "reliable", "true", "dry-run", "false"));
        workload.ownOptions().forEach((option, meaning) -> texts.put(option, meaning.get(0)));
        List.of("workers", "ackers", "max-spout-pending").forEach(this::applyToConf);
        for (int i = 0; i < args.length; i += 2) {
            String option = args[i].startsWith("--") ? args[i].substring(2) : "";
            boolean perComponent = List.of("parallelism", "cpu-micros", "conf").contains(option);
            if (!perComponent && !texts.containsKey(option)) {
                throw new IllegalArgumentException("\"" + args[i] + "\" should be one of the options that --help names");
            }
            if (i + 1 == args.length) {
                throw new IllegalArgumentException(args[i] + " should be followed by a value");
            }
            set(option, args[i + 1]);
        }
        RateProfile.parse("--rate", text("rate"));
        flag("reliable");
        flag("dry-run");
    }

    private void set(String option, String value) {
        switch (option) {
            case "parallelism" -> setPerComponent(parallelism, option, value, 1);
            case "cpu-micros" -> setPerComponent(cpuMicros, option, value, 0);
            case "conf" -> {
                String[] pair = value.split("=", 2);
                if (pair.length != 2 || pair[0].isBlank()) {
                    throw wrong(option, value, "KEY=VALUE, VALUE in JSON or a plain text");
                }
                Object json = JSONValue.parse(pair[1]);
                conf.put(pair[0], json == null ? pair[1] : json);
            }
            default -> {
                texts.put(option, value);
                applyToConf(option);
            }
        }
    }

    /** {@code 3} for every component, or {@code split=2,count=3}. */
    private static void setPerComponent(Map<String, Integer> values, String option, String text, int least) {
        for (String part : text.split(",")) {
            String[] pair = part.split("=", 2);
            String number = pair[pair.length - 1];
            if (pair.length == 2 && !values.containsKey(pair[0])) {
                throw wrong(option, text, "COMPONENT=NUMBER with one of the components " + values.keySet());
            }
            int value = whole(option, number, least);
            values.replaceAll((component, old) -> pair.length == 1 || component.equals(pair[0]) ? value : old);
        }
    }

    private void applyToConf(String option) {
        switch (option) {
            case "workers" -> conf.setNumWorkers(whole(option, 1));
            case "ackers" -> conf.setNumAckers(whole(option, 0));
            case "max-spout-pending" -> {
                int most = whole(option, 0);
                conf.remove(Config.TOPOLOGY_MAX_SPOUT_PENDING);
                if (most > 0) {
                    conf.setMaxSpoutPending(most);
                }
            }
            default -> { } // no setting of Storm
        }
    }

    String text(String option) {
        return texts.get(option);
    }

    int whole(String option, int least) {
        return whole(option, text(option), least);
    }

    private static int whole(String option, String text, int least) {
        try {
            int value = Integer.parseInt(text);
            if (value >= least) {
                return value;
            }
        } catch (NumberFormatException e) {
            // told below
        }
        throw wrong(option, text, "a whole number, " + least + " or more");
    }

    double fraction(String option, double least, double most) {
        try {
            double value = Double.parseDouble(text(option));
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException e) {
            // told below
        }
        throw wrong(option, text(option), "a number from " + least + " to " + most);
    }

    boolean flag(String option) {
        if (Arrays.asList("true", "false").contains(text(option))) {
            return Boolean.parseBoolean(text(option));
        }
        throw wrong(option, text(option), "true or false");
    }

    int parallelism(String component) {
        return parallelism.get(component);
    }

    Map<String, Integer> parallelism() {
        return parallelism;
    }

    Config conf() {
        return conf;
    }

    /** {@code spout}, with its rate file, its CPU per tuple and its reliability as the options say. */
    <S extends PacedSpout> S set(String component, S spout) {
        spout.setRateFile(text("rate-file").isEmpty() ? null : text("rate-file"));
        spout.setCpuMicros(cpuMicros(component));
        spout.setReliable(flag("reliable"));
        return spout;
    }

    /** {@code bolt}, with its CPU per tuple as the options say. */
    <B extends StageBolt> B set(String component, B bolt) {
        bolt.setCpuMicros(cpuMicros(component));
        return bolt;
    }

    /** CPU that {@code component} is to spend on each tuple, in microseconds. */
    long cpuMicros(String component) {
        return cpuMicros.get(component);
    }

    private static IllegalArgumentException wrong(String option, String value, String right) {
        return new IllegalArgumentException("--" + option + ": \"" + value + "\" should be " + right);
    }
}
