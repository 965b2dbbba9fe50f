package dev.stormoperator.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.stormoperator.metrics.SamplingGate.Budget;
import java.util.Random;
import org.junit.jupiter.api.Test;

class SamplingGateTest {
    private static final Budget TIGHT = new Budget(100, 100);

    /** Makes so many calls and gives the sum of the weights of those let through. */
    private static long call(SamplingGate gate, int calls) {
        long weights = 0;
        for (int i = 0; i < calls; i++) {
            if (gate.pass()) {
                weights += gate.weight();
            }
        }
        return weights;
    }

    private static SamplingGate steadyAt(int callsPerSecond) {
        SamplingGate gate = new SamplingGate(TIGHT, 42);
        for (int second = 0; second < 3; second++) {
            call(gate, callsPerSecond);
            gate.adapt(1);
        }
        return gate;
    }

    @Test
    void letsThroughOneCallOfEachBlockAtRandomPlaces() {
        SamplingGate gate = steadyAt(6_000);
        call(gate, 6_000);
        int calls = 64 * 1000;
        int passed = 0;
        int last = -1;
        double sumOfSquares = 0;
        for (int i = 0; i < calls; i++) {
            if (i % 6_000 == 0) {
                gate.adapt(1);
            }
            if (gate.pass()) {
                assertEquals(64, gate.weight());
                if (last >= 0) {
                    sumOfSquares += Math.pow(i - last - 64, 2);
                }
                last = i;
                passed++;
            }
        }
        assertEquals(1000, passed, 1);
        // The difference of two uniform places in blocks of 64 has a variance of 64^2 / 6.
        assertEquals(64 * 64 / 6.0, sumOfSquares / passed, 80);
    }

    @Test
    void weightsAddUpToTheCallsWhateverTheRateDoes() {
        SamplingGate gate = new SamplingGate(TIGHT, 7);
        Random random = new Random(1);
        long calls = 0;
        long weights = 0;
        for (int second = 0; second < 3000; second++) {
            int rate = (int) Math.pow(10, random.nextDouble() * 5);
            calls += rate;
            weights += call(gate, rate);
            gate.adapt(1);
        }
        assertEquals(1.0, (double) weights / calls, 0.005);
    }

    @Test
    void doesNotBeatWithAPatternOfCalls() {
        SamplingGate gate = steadyAt(100_000);
        long[] weightOfSite = new long[4];
        int calls = 40_000_000;
        for (int i = 0; i < calls; i++) {
            if (gate.pass()) {
                weightOfSite[i & 3] += gate.weight();
            }
        }
        for (long weight : weightOfSite) {
            assertEquals(0.25, (double) weight / calls, 0.005);
        }
    }

    @Test
    void slowTasksAreExact() {
        SamplingGate gate = steadyAt(90);
        assertEquals(1, gate.coarsestSinceLastAsked());
        assertEquals(90, call(gate, 90));
    }

    @Test
    void growsAtOnceWhenABurstComes() {
        SamplingGate gate = steadyAt(10);
        int passed = 0;
        for (int i = 0; i < 1_000_000; i++) {
            passed += gate.pass() ? 1 : 0;
        }
        assertTrue(passed < 2000, () -> "looked at many calls of a single second");
        assertEquals(SamplingGate.MAX_BLOCK, gate.coarsestSinceLastAsked());
    }

    @Test
    void isHeardOfSoonAfterItHasSlowedDown() {
        SamplingGate gate = steadyAt(400_000);
        call(gate, 5);
        gate.adapt(1);
        call(gate, 5);
        gate.adapt(1);
        gate.coarsestSinceLastAsked();
        assertEquals(20, call(gate, 20));
    }

    @Test
    void cuttingABlockDoesNotBias() {
        long calls = 0;
        long weights = 0;
        for (int seed = 1; seed <= 20_000; seed++) {
            SamplingGate gate = new SamplingGate(new Budget(4, 4), seed * 7919);
            for (int second = 0; second < 4; second++) {
                int rate = second == 3 ? 9 : 128;
                calls += rate;
                weights += call(gate, rate);
                gate.adapt(1);
            }
            calls += 40;
            weights += call(gate, 40);
        }
        assertEquals(1.0, (double) weights / calls, 0.01);
    }

    @Test
    void unlimitedLetsEveryCallThrough() {
        SamplingGate gate = new SamplingGate(Budget.UNLIMITED, 1);
        assertEquals(500_000, call(gate, 500_000));
        gate.adapt(0.01);
        assertEquals(500_000, call(gate, 500_000));
        assertEquals(1, gate.coarsestSinceLastAsked());
    }

    @Test
    void doesNotSwingNearABoundary() {
        Budget budget = new Budget(1000, 1000);
        assertEquals(8, budget.blockFor(7_900, 8));
        assertEquals(8, budget.blockFor(3_900, 8));
        assertEquals(4, budget.blockFor(2_700, 8));
        assertEquals(16, budget.blockFor(8_100, 8));
        assertEquals(1, budget.blockFor(0, 4096));
    }

    @Test
    void budgetsMustMakeSense() {
        assertThrows(IllegalArgumentException.class, () -> new Budget(10, 11));
        assertThrows(IllegalArgumentException.class, () -> new Budget(0, 0));
    }
}
