package dev.stormoperator.metrics;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Complete latency of one spout task, in fixed buckets of 21% width from 0.1 ms to 60 s.
 *
 * <p>Storm gives whole milliseconds: the difference of two truncated clocks. A value {@code v} thus stands for
 * latencies between {@code v - 1} and {@code v + 1}, the nearer to {@code v} the likelier; each is entered at a place
 * drawn from just that distribution, else percentiles of a few milliseconds would be off by tens of percent. The
 * sum is of the values as given (their mean is unbiased).
 */
final class LatencyHistogram {
    private static final double[] BOUNDS_MS = bounds();

    private final AtomicLongArray counts = new AtomicLongArray(BOUNDS_MS.length + 1);
    private final AtomicLong sumMs = new AtomicLong();

    /** Upper bounds of all buckets but the last, which is open. */
    static double[] boundsMs() {
        return BOUNDS_MS.clone();
    }

    void record(long latencyMs, long weight) {
        record(latencyMs, weight, ThreadLocalRandom.current().nextDouble(), ThreadLocalRandom.current().nextDouble());
    }

    /** As above with the two uniform draws given. */
    void record(long latencyMs, long weight, double draw, double anotherDraw) {
        long value = Math.max(0, latencyMs);
        sumMs.getAndAdd(value * weight);
        counts.getAndAdd(bucketOf(Math.abs(value + draw - anotherDraw)), weight);
    }

    private static int bucketOf(double ms) {
        int low = 0;
        int high = BOUNDS_MS.length;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (ms <= BOUNDS_MS[middle]) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }

    long sumMs() {
        return sumMs.get();
    }

    /** How many lie at or below each bound, and last how many there are. */
    long[] cumulative() {
        long[] result = new long[counts.length()];
        long sum = 0;
        for (int i = 0; i < result.length; i++) {
            sum += counts.get(i);
            result[i] = sum;
        }
        return result;
    }

    private static double[] bounds() {
        int perDecade = 12;
        double first = 0.1;
        int steps = 70;
        double[] bounds = new double[steps + 1];
        for (int i = 0; i < steps; i++) {
            double exact = first * Math.pow(10, (double) i / perDecade);
            bounds[i] = Math.round(exact * 1000) / 1000.0;
        }
        bounds[steps] = 60_000;
        return bounds;
    }
}
