package dev.stormoperator.scheduler;

import static dev.stormoperator.scheduler.TestCluster.executor;
import static dev.stormoperator.scheduler.TestCluster.plan;
import static dev.stormoperator.scheduler.TestCluster.slot;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.DefaultScheduler;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.WorkerSlot;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A plan that cannot be read, a fallback that fails, a round that breaks off: what runs stays, and it is said. */
class PlanSchedulerFailuresTest {

    private final MemoryPlanStore store = new MemoryPlanStore();
    private final TestCluster cluster = TestCluster.of(3, 3).topology("t", 2, 6);

    /** As after a start of Nimbus: nothing remembered. */
    private PlanScheduler newScheduler() {
        return cluster.scheduler(store);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "{", "[1]", "{\"version\": 2}", "{\"version\": 1, \"plan_id\": \"p-9\", \"workers\": {}}"})
    void aMalformedPlanChangesNothing(String malformed) {
        store.put("t", malformed);
        cluster.place("t", slot("s2", 6702), executor(1), executor(2), executor(3), executor(4), executor(5), executor(6));
        PlanScheduler scheduler = newScheduler();
        cluster.round(scheduler);
        assertEquals(Map.of("s2:6702", List.of(1, 2, 3, 4, 5, 6)), cluster.workers("t"));
        assertTrue(store.acknowledgement("t").contains("\"outcome\":\"rejected\""));
        assertTrue(cluster.status("t").startsWith("Plan rejected: "), cluster.status("t"));
        assertTrue(cluster.status("t").endsWith("; placed executors stay where they are"), cluster.status("t"));
    }

    @Test
    void aMalformedPlanLeavesAnUnplacedTopologyToTheFallback() {
        store.put("t", "{}");
        cluster.round(newScheduler());
        assertEquals(6, cluster.placedOf("t").size());
        assertEquals(2, cluster.workers("t").size());
    }

    @Test
    void aMalformedPlanLeavesTheLastGoodOneInForce() {
        store.put("t", plan("p-1", "t", "s1 6701 1 2 3", "s2 6701 4 5 6"));
        PlanScheduler scheduler = newScheduler();
        cluster.round(scheduler);
        Map<ExecutorDetails, WorkerSlot> before = cluster.placedOf("t");
        store.put("t", plan("p-2", "t", "s1 6701 1 1"));
        cluster.hideAssignment("t");
        cluster.round(scheduler);
        assertEquals(before, cluster.placedOf("t"));
        assertEquals("Plan rejected: workers[0].executors[1]: [1,1] should be an executor that the plan names once; "
            + "plan p-1 stays in force", cluster.status("t"));
        assertTrue(store.acknowledgement("t").contains("\"plan_id\":\"p-2\""));
    }

    @Test
    void whatIsInForceStaysWhileTheStoreIsAway() {
        store.put("t", plan("p-1", "t", "s1 6700 1 2 3 4 5 6"));
        PlanScheduler scheduler = newScheduler();
        cluster.round(scheduler);
        store.reachable = false;
        cluster.hideAssignment("t");
        cluster.topology("new", 1, 2);
        cluster.round(scheduler);
        assertEquals(Map.of("s1:6700", List.of(1, 2, 3, 4, 5, 6)), cluster.workers("t"));
        assertEquals(2, cluster.placedOf("new").size());
        assertEquals("Plans cannot be read: java.net.ConnectException: Connection refused; plan p-1 stays in force",
            cluster.status("t"));
        Map<ExecutorDetails, WorkerSlot> before = cluster.placedOf("t");
        cluster.round(newScheduler());
        assertEquals(before, cluster.placedOf("t"), "nor does a new Nimbus move what it knows nothing about");
        store.reachable = true;
        cluster.round(scheduler);
        assertEquals("Plan p-1: 6 executors in 1 worker as planned", cluster.status("t"));
    }

    /** Places half of the work, then gives up. */
    public static final class Failing extends DefaultScheduler {
        @Override
        public void schedule(Topologies topologies, Cluster cluster) {
            super.schedule(topologies, cluster);
            throw new StackOverflowError("on purpose");
        }
    }

    @Test
    void aFallbackThatFailsLeavesPlansInForceAndTheRestUntouched() {
        cluster.conf.put(FallbackSchedulers.KEY, Failing.class.getName());
        cluster.topology("u", 2, 2);
        cluster.place("u", slot("s3", 6700), executor(1));
        store.put("t", plan("p-1", "t", "s1 6700 1 2 3 4 5", "s9 6700 6"));
        cluster.round(newScheduler());
        assertEquals(Map.of("s1:6700", List.of(1, 2, 3, 4, 5)), cluster.workers("t"));
        assertEquals(Map.of("s3:6700", List.of(1)), cluster.workers("u"));
        assertTrue(cluster.status("u").startsWith("Failing failed, nothing was changed: "), cluster.status("u"));
        assertTrue(cluster.status("t").contains("1 executors do not run: Failing failed"), cluster.status("t"));
    }

    @Test
    void aFallbackThatFailsDoesNotKeepAPlanFromTheSlotOfATopologyWhoseOwnPlanCannotBeMet() {
        cluster.conf.put(FallbackSchedulers.KEY, Failing.class.getName());
        cluster.topology("u", 1, 2);
        cluster.place("u", slot("s1", 6700), executor(1), executor(2));
        store.put("u", plan("q-1", "u", "s9 6700 1 2"));
        store.put("t", plan("p-1", "t", "s1 6700 1 2 3 4 5 6"));
        cluster.round(newScheduler());
        assertEquals(Map.of("s1:6700", List.of(1, 2, 3, 4, 5, 6)), cluster.workers("t"));
        assertEquals(Map.of(), cluster.workers("u"));
        assertTrue(cluster.status("u").contains("2 executors do not run: Failing failed"), cluster.status("u"));
    }

    /** As Failing, in its first round alone. */
    public static final class FailingOnce extends DefaultScheduler {
        private boolean hasFailed;

        @Override
        public void schedule(Topologies topologies, Cluster cluster) {
            if (!hasFailed) {
                hasFailed = true;
                throw new IllegalStateException("on purpose");
            }
            super.schedule(topologies, cluster);
        }
    }

    @Test
    void thatTheFallbackFailedIsSaidUntilItWorksAgain() {
        cluster.conf.put(FallbackSchedulers.KEY, FailingOnce.class.getName());
        PlanScheduler scheduler = newScheduler();
        cluster.round(scheduler);
        assertEquals("FailingOnce failed, nothing was changed: java.lang.IllegalStateException: on purpose",
            cluster.status("t"));
        cluster.round(scheduler);
        assertEquals("No plan: left to FailingOnce", cluster.status("t"));
    }

    @Test
    void aRoundThatFailsInTheMiddleChangesNothing() {
        store.put("t", plan("p-1", "t", "s1 6700 1 2", "s2 6700 3 4", "s3 6700 5 6"));
        PlanScheduler scheduler = newScheduler();
        cluster.round(scheduler);
        store.put("t", plan("p-2", "t", "s1 6700 5 6", "s2 6700 1 2", "s3 6700 3 4"));
        AtomicInteger assigned = new AtomicInteger();
        Cluster brittle = new Cluster(cluster.view()) {
            @Override
            public void assign(WorkerSlot slot, String topologyId, Collection<ExecutorDetails> executors) {
                if (assigned.incrementAndGet() == 5) {
                    throw new IllegalStateException("on purpose");
                }
                super.assign(slot, topologyId, executors);
            }
        };
        assertEquals(3, assigned.get(), "copying assigns what is in force");
        Map<ExecutorDetails, WorkerSlot> before = Placement.current(brittle, "t");
        scheduler.schedule(brittle.getTopologies(), brittle);
        assertEquals(6, before.size());
        assertEquals(before, Placement.current(brittle, "t"));
        assertEquals("Plan scheduler failed, nothing was changed: java.lang.IllegalStateException: on purpose",
            brittle.getStatus("t"));
        assertFalse(store.acknowledgement("t").contains("p-2"));
    }
}
