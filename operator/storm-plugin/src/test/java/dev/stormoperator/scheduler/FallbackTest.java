package dev.stormoperator.scheduler;

import static dev.stormoperator.scheduler.TestCluster.executor;
import static dev.stormoperator.scheduler.TestCluster.plan;
import static dev.stormoperator.scheduler.TestCluster.slot;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.DefaultScheduler;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.resource.ResourceAwareScheduler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Plans and Storm's own schedulers in one Nimbus. */
class FallbackTest {

    private static final String STRATEGIES = "org.apache.storm.scheduler.resource.strategies.scheduling.";

    private final MemoryPlanStore store = new MemoryPlanStore();

    private static TestCluster fourTopologies(Map<String, Object> settings) {
        TestCluster cluster = new TestCluster();
        cluster.conf.putAll(settings);
        for (int i = 1; i <= 8; i++) { // enough that RoundRobin, which shares no machine, finds one for each topology
            cluster.supervisor("s" + i, "h" + i, 4);
        }
        return cluster.topology("a", 2, 6).topology("b", 3, 5).topology("c", 2, 4).topology("d", 1, 3);
    }

    private <S extends IScheduler> S prepared(S scheduler, TestCluster cluster) {
        scheduler.prepare(cluster.conf, new StormMetricsRegistry());
        return scheduler;
    }

    private void assertAllRunAndPlansHold(TestCluster cluster) {
        PlanScheduler scheduler = prepared(new PlanScheduler(store), cluster);
        store.put("a", plan("p-a", "a", "s1 6700 1 2 3 4 5 6"));
        store.put("c", plan("p-c", "c", "s1 6701 1 2", "s9 6700 3 4"));
        cluster.round(scheduler);
        Map<String, ?> b = cluster.workers("b");
        Map<String, ?> d = cluster.workers("d");
        for (int round = 0; round < 3; round++) {
            assertEquals(Map.of("s1:6700", List.of(1, 2, 3, 4, 5, 6)), cluster.workers("a"));
            assertEquals(List.of(1, 2), cluster.workers("c").get("s1:6701"));
            assertEquals(4, cluster.placedOf("c").size(), cluster.status("c"));
            assertEquals(5, cluster.placedOf("b").size());
            assertEquals(3, cluster.placedOf("d").size());
            assertEquals(b, cluster.workers("b"), "without a reason nothing moves");
            assertEquals(d, cluster.workers("d"), "without a reason nothing moves");
            cluster.round(scheduler);
        }
    }

    @Test
    void theDefaultSchedulerPlacesTheRestAndMovesNoPlan() {
        assertAllRunAndPlansHold(fourTopologies(Map.of()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"DefaultResourceAwareStrategy", "GenericResourceAwareStrategy",
        "RoundRobinResourceAwareStrategy", "ConstraintSolverStrategy"})
    void theResourceAwareSchedulerPlacesTheRestAndMovesNoPlan(String strategy) {
        TestCluster cluster = fourTopologies(Map.of(FallbackSchedulers.KEY, "resource-aware",
            Config.TOPOLOGY_SCHEDULER_STRATEGY, STRATEGIES + strategy, Config.TOPOLOGY_RAS_CONSTRAINTS, Map.of()));
        assertAllRunAndPlansHold(cluster);
        assertTrue(cluster.status("b").startsWith("Running"), cluster.status("b"));
    }

    @Test
    void theResourceAwareSchedulerEvictsNoPlan() {
        TestCluster cluster = new TestCluster();
        cluster.conf.put(FallbackSchedulers.KEY, "resource-aware");
        cluster.supervisor("s1", "h1", 4).topology("a", 1, 4).topology("b", 1, 20);
        store.put("a", plan("p-a", "a", "s1 6700 1 2 3 4"));
        PlanScheduler scheduler = prepared(new PlanScheduler(store), cluster);
        cluster.round(scheduler);
        cluster.round(scheduler);
        assertEquals(Map.of("s1:6700", List.of(1, 2, 3, 4)), cluster.workers("a"));
        assertEquals(Map.of(), cluster.workers("b"));
        assertTrue(cluster.status("b").contains("Not enough resources"), cluster.status("b"));
    }

    @Test
    void withoutPlansTheDefaultSchedulerDoesWhatItAlwaysDoes() {
        assertSameAsAlone(Map.of(), new DefaultScheduler());
    }

    @Test
    void withoutPlansTheResourceAwareSchedulerDoesWhatItAlwaysDoes() {
        assertSameAsAlone(Map.of(FallbackSchedulers.KEY, "resource-aware"), new ResourceAwareScheduler());
    }

    private void assertSameAsAlone(Map<String, Object> settings, IScheduler scheduler) {
        TestCluster alone = fourTopologies(settings);
        TestCluster through = fourTopologies(settings);
        IScheduler plans = prepared(new PlanScheduler(store), through);
        prepared(scheduler, alone);
        for (TestCluster cluster : List.of(alone, through)) {
            IScheduler used = cluster == alone ? scheduler : plans;
            cluster.place("a", slot("s2", 6703), executor(1), executor(2));
            cluster.round(used);
            cluster.die("s3");
            cluster.round(used);
            cluster.supervisor("s3", "h3", 4);
            cluster.round(used);
        }
        for (String topology : List.of("a", "b", "c", "d")) {
            assertEquals(alone.workers(topology), through.workers(topology));
            assertEquals(withoutTime(alone.status(topology)), withoutTime(through.status(topology)));
        }
    }

    private static String withoutTime(String status) {
        return status == null ? null : status.replaceAll("in \\d+ ms", "in some ms");
    }

    @Test
    void aFallbackThatIsNoneIsRefusedBeforeNimbusStarts() {
        TestCluster cluster = new TestCluster();
        for (Object wrong : new Object[] {"even", "java.lang.String", 7, PlanScheduler.class.getName()}) {
            cluster.conf.put(FallbackSchedulers.KEY, wrong);
            String message = assertThrows(IllegalArgumentException.class,
                () -> prepared(new PlanScheduler(store), cluster)).getMessage();
            assertTrue(message.startsWith("storm_operator.fallback.scheduler: \"" + wrong + "\" should be default"), message);
        }
    }
}
