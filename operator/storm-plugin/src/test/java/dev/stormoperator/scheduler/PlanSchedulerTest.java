package dev.stormoperator.scheduler;

import static dev.stormoperator.scheduler.TestCluster.executor;
import static dev.stormoperator.scheduler.TestCluster.plan;
import static dev.stormoperator.scheduler.TestCluster.slot;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.WorkerSlot;
import org.junit.jupiter.api.Test;

class PlanSchedulerTest {

    private final MemoryPlanStore store = new MemoryPlanStore();
    private final TestCluster cluster = TestCluster.of(3, 3).topology("t", 2, 6);

    /** As after a start of Nimbus: nothing remembered. */
    private PlanScheduler newScheduler() {
        return cluster.scheduler(store);
    }

    @Test
    void aPlanIsPutInForceAndAcknowledged() {
        store.put("t", plan("p-1", "t", "s1 6700 1 2 3 4", "s3 6702 5 6"));
        cluster.round(newScheduler());
        assertEquals(Map.of("s1:6700", List.of(1, 2, 3, 4), "s3:6702", List.of(5, 6)), cluster.workers("t"));
        assertEquals("Plan p-1: 6 executors in 2 workers as planned", cluster.status("t"));
        String acknowledgement = store.acknowledgement("t").replaceAll("\"at_ms\":\\d+", "\"at_ms\":0");
        assertEquals("{\"version\":1,\"plan_id\":\"p-1\",\"topology_id\":\"t\",\"outcome\":\"applied\",\"message\":"
            + "\"6 executors in 2 workers as planned\",\"placed\":6,\"unplaced\":[],\"at_ms\":0}", acknowledgement);
    }

    @Test
    void onlyNewsIsAcknowledged() {
        store.put("t", plan("p-1", "t", "s1 6700 1 2 3 4 5 6"));
        PlanScheduler scheduler = newScheduler();
        cluster.round(scheduler);
        cluster.round(scheduler);
        cluster.round(newScheduler());
        assertEquals(1, store.writes);
        store.put("t", plan("p-2", "t", "s1 6700 1 2 3 4 5 6"));
        cluster.round(scheduler);
        assertEquals(2, store.writes);
    }

    /** Counts on Storm's own objects what a round touches. */
    private static final class WatchedCluster extends Cluster {

        final Set<WorkerSlot> freed = new HashSet<>();
        final Set<WorkerSlot> assigned = new HashSet<>();

        WatchedCluster(Cluster cluster) {
            super(cluster);
        }

        @Override
        public void freeSlot(WorkerSlot slot) {
            freed.add(slot);
            super.freeSlot(slot);
        }

        @Override
        public void assign(WorkerSlot slot, String topologyId, Collection<ExecutorDetails> executors) {
            if (assigned != null) {
                assigned.add(slot);
            }
            super.assign(slot, topologyId, executors);
        }
    }

    @Test
    void workersWhoseExecutorsStayAreNotTouched() {
        store.put("t", plan("p-1", "t", "s1 6700 1 2", "s2 6700 3 4", "s3 6700 5 6"));
        PlanScheduler scheduler = newScheduler();
        cluster.round(scheduler);
        store.put("t", plan("p-2", "t", "s1 6700 1 2", "s2 6700 3 4 5", "s3 6700 6"));
        WatchedCluster watched = new WatchedCluster(cluster.view());
        scheduler.schedule(watched.getTopologies(), watched);
        Set<WorkerSlot> changed = Set.of(slot("s2", 6700), slot("s3", 6700));
        assertEquals(changed, watched.freed);
        assertEquals(changed, watched.assigned);
    }

    @Test
    void aPlanWithFewerWorkersThanTheTopologyAskedForStays() {
        cluster.topology("other", 3, 6);
        store.put("t", plan("p-1", "t", "s1 6700 1 2 3 4 5 6"));
        PlanScheduler scheduler = newScheduler();
        for (int round = 0; round < 3; round++) {
            cluster.round(scheduler);
            assertEquals(Map.of("s1:6700", List.of(1, 2, 3, 4, 5, 6)), cluster.workers("t"));
            assertEquals(6, cluster.placedOf("other").size());
        }
    }

    @Test
    void aPlanSurvivesANewNimbusAndARebalance() {
        store.put("t", plan("p-1", "t", "s1 6701 1 2 3", "s2 6701 4 5 6"));
        cluster.round(newScheduler());
        Map<ExecutorDetails, WorkerSlot> before = cluster.placedOf("t");
        cluster.hideAssignment("t");
        cluster.round(newScheduler());
        assertEquals(before, cluster.placedOf("t"));
    }

    @Test
    void executorsOfADeadSupervisorGoToTheFallbackAndComeHome() {
        store.put("t", plan("p-1", "t", "s1 6700 1 2 3", "s2 6700 4 5 6"));
        PlanScheduler scheduler = newScheduler();
        cluster.round(scheduler);
        cluster.die("s2");
        cluster.round(scheduler);
        assertEquals(List.of(1, 2, 3), cluster.workers("t").get("s1:6700"));
        assertEquals(6, cluster.placedOf("t").size());
        assertTrue(store.acknowledgement("t").contains("\"outcome\":\"partial\""));
        assertTrue(store.acknowledgement("t").contains("{\"executor\":[4,4],\"reason\":\"supervisor h2 is dead\"}")
            || store.acknowledgement("t").contains("{\"reason\":\"supervisor h2 is dead\",\"executor\":[4,4]}"));
        assertEquals("Plan p-1: 3 of 6 executors as planned; 3: supervisor h2 is dead", cluster.status("t"));

        Map<ExecutorDetails, WorkerSlot> away = cluster.placedOf("t");
        cluster.round(scheduler);
        assertEquals(away, cluster.placedOf("t"), "the fallback's places stay, round after round");

        cluster.supervisor("s2", "h2", 3);
        cluster.round(scheduler);
        assertEquals(Map.of("s1:6700", List.of(1, 2, 3), "s2:6700", List.of(4, 5, 6)), cluster.workers("t"));
        assertTrue(store.acknowledgement("t").contains("\"outcome\":\"applied\""));
    }

    @Test
    void executorsThatRunAndCannotGoWhereTheirPlanSaysStay() {
        store.put("t", plan("p-1", "t", "s1 6700 1 2 3 4 5 6"));
        PlanScheduler scheduler = newScheduler();
        cluster.round(scheduler);
        store.put("t", plan("p-2", "t", "s2 6700 1 2 3", "s9 6700 4 5"));
        cluster.round(scheduler);
        assertEquals(Map.of("s1:6700", List.of(4, 5, 6), "s2:6700", List.of(1, 2, 3)), cluster.workers("t"));
        assertEquals("Plan p-2: 3 of 6 executors as planned; 2: supervisor h9 is dead; 1: the plan does not name it",
            cluster.status("t"));
    }

    @Test
    void executorsOfAWorkerThatTimedOutAreElsewhereForOneRound() {
        store.put("t", plan("p-1", "t", "s1 6700 1 2 3", "s2 6702 4 5 6"));
        PlanScheduler scheduler = newScheduler();
        cluster.round(scheduler);
        Map<ExecutorDetails, WorkerSlot> planned = Map.copyOf(cluster.placedOf("t"));
        // So Nimbus shows it: without the executors, and without the port that they were in.
        cluster.die("s2");
        cluster.supervisor("s2", "h2", 2);
        cluster.round(scheduler);
        assertEquals(List.of(1, 2, 3), cluster.workers("t").get("s1:6700"));
        assertEquals(6, cluster.placedOf("t").size());
        assertEquals("Plan p-1: 3 of 6 executors as planned; 3: supervisor h2 offers no port 6702 in this round, but"
            + " [6700, 6701]", cluster.status("t"));
        cluster.supervisor("s2", "h2", 3);
        cluster.round(scheduler);
        assertEquals(planned, cluster.placedOf("t"));
    }

    @Test
    void withoutAFreeSlotExecutorsJoinTheSmallestWorkerOfTheirTopology() {
        TestCluster full = TestCluster.of(3, 1).topology("t", 3, 6);
        store.put("t", plan("p-1", "t", "s1 6700 1 2 3", "s2 6700 4 5", "s3 6700 6"));
        PlanScheduler scheduler = newScheduler();
        full.round(scheduler);
        full.die("s3");
        full.round(scheduler);
        full.round(scheduler);
        assertEquals(Map.of("s1:6700", List.of(1, 2, 3), "s2:6700", List.of(4, 5, 6)), full.workers("t"));
    }

    @Test
    void aPlanThatIsTakenAwayLeavesTheTopologyToTheFallback() {
        store.put("t", plan("p-1", "t", "s1 6700 1 2 3 4 5 6"));
        PlanScheduler scheduler = newScheduler();
        cluster.round(scheduler);
        store.plans.clear();
        cluster.round(scheduler);
        assertEquals(2, cluster.workers("t").size());
        assertEquals("No plan: left to DefaultScheduler", cluster.status("t"));
    }

    @Test
    void topologiesSwapSlotsInOneRound() {
        cluster.topology("u", 1, 2);
        store.put("t", plan("p-1", "t", "s1 6700 1 2 3 4 5 6"));
        store.put("u", plan("q-1", "u", "s2 6700 1 2"));
        PlanScheduler scheduler = newScheduler();
        cluster.round(scheduler);
        store.put("t", plan("p-2", "t", "s2 6700 1 2 3 4 5 6"));
        store.put("u", plan("q-2", "u", "s1 6700 1 2"));
        cluster.round(scheduler);
        assertEquals(Map.of("s2:6700", List.of(1, 2, 3, 4, 5, 6)), cluster.workers("t"));
        assertEquals(Map.of("s1:6700", List.of(1, 2)), cluster.workers("u"));
    }

    @Test
    void whatIsKeptForDeletedTopologiesIsForgotten() {
        store.put("t", plan("p-1", "t", "s1 6700 1 2 3 4 5 6"));
        PlanScheduler scheduler = newScheduler();
        cluster.round(scheduler);
        cluster.kill("t");
        cluster.round(scheduler);
        assertEquals(Set.of(), store.plans.keySet());
        assertNull(store.acknowledgement("t"));
    }

    @Test
    void settingsAreTheFallbacks() {
        IScheduler scheduler = newScheduler();
        assertEquals(Map.of(), scheduler.config());
        scheduler.nodeAssignmentSent("s1", true);
        scheduler.cleanup();
    }
}
