package dev.stormoperator.workloads;

/** Tells when the next tuple is due, so that tuples keep to a rate by the clock. */
final class Pacer {

    /** What a pause longer than this would have brought is lost rather than caught up in a burst. */
    static final double MOST_SECONDS_CAUGHT_UP = 0.1;

    private long lastNanos;
    private double due;

    Pacer(long nowNanos) {
        lastNanos = nowNanos;
    }

    /** Whether a tuple is due; if so, it counts as sent. */
    boolean take(long nowNanos, double perSecond) {
        double seconds = (nowNanos - lastNanos) / 1e9;
        lastNanos = nowNanos;
        due = Math.min(due + seconds * perSecond, 1 + MOST_SECONDS_CAUGHT_UP * perSecond);
        if (due < 1) {
            return false;
        }
        due -= 1;
        return true;
    }
}
