package dev.stormoperator.metrics;

import java.util.Arrays;

/** Says of each pair of tasks, one after the other, whether it is one of the so many with most tuples. */
final class LargestPairs {
    private final boolean some;
    private final long least;
    private int leftOfLeast;
    private int left;

    /** @param tuples of all pairs, in any order; may be sorted here */
    LargestPairs(long[] tuples, int most) {
        some = tuples.length > most;
        left = most;
        if (some) {
            Arrays.sort(tuples);
            int first = tuples.length - most;
            least = tuples[first];
            while (first + leftOfLeast < tuples.length && tuples[first + leftOfLeast] == least) {
                leftOfLeast++;
            }
        } else {
            least = 0;
        }
    }

    /** Whether there are others. */
    boolean areSome() {
        return some;
    }

    /** Counts go on meanwhile: never are more told than were asked for. */
    boolean isNext(long tuples) {
        boolean isOne = left > 0 && (tuples > least || tuples == least && leftOfLeast > 0);
        if (isOne) {
            left--;
            leftOfLeast -= tuples == least ? 1 : 0;
        }
        return isOne;
    }
}
