package dev.stormoperator.metrics;

/**
 * One count that two counters keep, each with its own sampling error: grows in each period by what the finer one says.
 *
 * <p>Both are unbiased over any period, so the sum is, whenever the choice does not depend on what they say.
 */
final class BestCount {
    private long total;
    private long hookBefore;
    private long stormBefore;

    void advance(long hook, long storm, boolean hookIsFiner) {
        total += hookIsFiner ? hook - hookBefore : storm - stormBefore;
        hookBefore = hook;
        stormBefore = storm;
    }

    long total() {
        return total;
    }
}
