package dev.stormoperator.scheduler;

import static dev.stormoperator.scheduler.TestCluster.plan;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A slot where no worker starts, though its supervisor is well. */
class TimedOutSlotsTest {

    private static final Map<String, Collection<Integer>> PLANNED =
        Map.of("s1:6700", List.of(1, 2, 3), "s2:6700", List.of(4, 5, 6));
    private static final long MINUTE_MS = 60_000;

    private final MemoryPlanStore store = new MemoryPlanStore();
    private TestCluster cluster;
    private PlanScheduler scheduler;

    @BeforeEach
    void aPlanIsInForce() {
        begin(2);
    }

    private void begin(int ports) {
        cluster = TestCluster.of(2, ports).topology("t", 2, 6);
        scheduler = cluster.scheduler(store);
        store.put("t", plan("p-1", "t", "s1 6700 1 2 3", "s2 6700 4 5 6"));
        cluster.round(scheduler);
    }

    /** So Nimbus shows it: for one round without the executors, and without the ports that they were in. */
    private void timeOut(int ports) {
        cluster.nowMs += 2 * MINUTE_MS;
        cluster.die("s2");
        cluster.supervisor("s2", "h2", 0);
        cluster.round(scheduler);
        assertNotEquals(PLANNED, cluster.workers("t"));
        cluster.supervisor("s2", "h2", ports);
        cluster.nowMs += 1_000;
        cluster.round(scheduler);
    }

    private void assertCalledHomeAfter(long minutes) {
        Map<String, Collection<Integer>> away = cluster.workers("t");
        assertNotEquals(PLANNED, away);
        cluster.nowMs += minutes * MINUTE_MS - 2_000;
        cluster.round(scheduler);
        assertEquals(away, cluster.workers("t"));
        cluster.nowMs += 2_000;
        cluster.round(scheduler);
        assertEquals(PLANNED, cluster.workers("t"));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void whoTimesOutAgainInTheSameSlotIsCalledHomeAfterPausesThatGrow(int ports) {
        begin(ports);
        timeOut(ports);
        assertEquals(PLANNED, cluster.workers("t"), "it may merely have been silent");
        for (long minutes : new long[] {5, 10, 20, 40, 60, 60}) {
            timeOut(ports);
            assertCalledHomeAfter(minutes);
        }
    }

    @Test
    void thePauseIsSaidOnce() {
        timeOut(2);
        timeOut(2);
        assertEquals("Plan p-1: 3 of 6 executors as planned; 3: slot h2:6700 is left alone for 5 minutes: under this plan"
            + " workers timed out there 2 times", cluster.status("t"));
        assertTrue(store.acknowledgement("t").contains("\"outcome\":\"partial\""));
        int writes = store.writes;
        cluster.nowMs += MINUTE_MS;
        cluster.round(scheduler);
        assertEquals(writes, store.writes);
    }

    @Test
    void aNewPlanBeginsAnew() {
        timeOut(2);
        timeOut(2);
        assertNotEquals(PLANNED, cluster.workers("t"));
        store.put("t", plan("p-2", "t", "s1 6700 1 2 3", "s2 6700 4 5 6"));
        cluster.round(scheduler);
        assertEquals(PLANNED, cluster.workers("t"));
        timeOut(2);
        assertEquals(PLANNED, cluster.workers("t"));
    }

    @Test
    void aTimeOutLongAfterTheLastOneIsAFirstOne() {
        timeOut(2);
        cluster.nowMs += 60 * MINUTE_MS;
        timeOut(2);
        assertEquals(PLANNED, cluster.workers("t"));
    }

    @Test
    void aMachineThatComesAndGoesIsNotSuchASlot() {
        for (int times = 0; times < 3; times++) {
            cluster.die("s2");
            cluster.round(scheduler);
            cluster.supervisor("s2", "h2", 2);
            cluster.round(scheduler);
            assertEquals(PLANNED, cluster.workers("t"));
        }
    }
}
