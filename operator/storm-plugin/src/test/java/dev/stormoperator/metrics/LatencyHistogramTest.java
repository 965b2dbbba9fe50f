package dev.stormoperator.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

class LatencyHistogramTest {
    private static final int SAMPLES = 200_000;

    /** What a clock that counts whole milliseconds makes of a latency. */
    private static long asStormMeasures(double latencyMs, Random random) {
        double start = random.nextDouble();
        return (long) Math.floor(start + latencyMs);
    }

    private static double percentile(LatencyHistogram histogram, double share) {
        double[] bounds = LatencyHistogram.boundsMs();
        long[] counts = histogram.cumulative();
        double rank = share * counts[counts.length - 1];
        int i = 0;
        while (counts[i] < rank) {
            i++;
        }
        double low = i == 0 ? 0 : bounds[i - 1];
        long below = i == 0 ? 0 : counts[i - 1];
        return low + (bounds[i] - low) * (rank - below) / (counts[i] - below);
    }

    private static void checkLogNormal(double medianMs, double tolerance) {
        Random random = new Random(3);
        LatencyHistogram histogram = new LatencyHistogram();
        double[] all = new double[SAMPLES];
        for (int i = 0; i < SAMPLES; i++) {
            all[i] = medianMs * Math.exp(0.6 * random.nextGaussian());
            histogram.record(asStormMeasures(all[i], random), 20);
        }
        Arrays.sort(all);
        assertEquals(1.0, percentile(histogram, 0.5) / all[SAMPLES / 2], tolerance);
        assertEquals(1.0, percentile(histogram, 0.99) / all[SAMPLES * 99 / 100], tolerance);
        assertEquals(1.0, histogram.sumMs() / (20 * Arrays.stream(all).sum()), 0.02);
    }

    @Test
    void percentilesOfMillisecondsAreWithinTenPercent() {
        checkLogNormal(2.3, 0.1);
        checkLogNormal(8.7, 0.05);
        checkLogNormal(300, 0.05);
    }

    @Test
    void whatIsTooSlowForTheLastBoundStillCounts() {
        LatencyHistogram histogram = new LatencyHistogram();
        histogram.record(100_000, 1);
        histogram.record(5, 2);
        long[] counts = histogram.cumulative();
        assertEquals(3, counts[counts.length - 1]);
        assertEquals(2, counts[counts.length - 2]);
        assertEquals(100_010, histogram.sumMs());
    }

    @Test
    void boundsRiseInStepsOfAtMostAFifthAndSome() {
        double[] bounds = LatencyHistogram.boundsMs();
        assertEquals(0.1, bounds[0]);
        assertEquals(60_000, bounds[bounds.length - 1]);
        for (int i = 1; i < bounds.length; i++) {
            double step = bounds[i] / bounds[i - 1];
            assertTrue(step > 1 && step < 1.22, "step " + step + " at " + bounds[i]);
        }
    }

    @Test
    void aClockThatWentBackIsZero() {
        LatencyHistogram histogram = new LatencyHistogram();
        histogram.record(-3, 1);
        assertEquals(0, histogram.sumMs());
    }
}
