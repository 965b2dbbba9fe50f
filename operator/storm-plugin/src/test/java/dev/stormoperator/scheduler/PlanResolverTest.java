package dev.stormoperator.scheduler;

import static dev.stormoperator.scheduler.TestCluster.executor;
import static dev.stormoperator.scheduler.TestCluster.plan;
import static dev.stormoperator.scheduler.TestCluster.slot;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class PlanResolverTest {

    private final TestCluster cluster = TestCluster.of(3, 2).topology("t", 2, 4).topology("u", 1, 2);

    private Map<String, Resolution> resolve(String... documents) throws MalformedPlanException {
        List<Plan> plans = new ArrayList<>();
        for (String document : documents) {
            String topologyId = document.replaceAll(".*\"topology_id\":\"([^\"]*)\".*", "$1");
            plans.add(PlanParser.parse(topologyId, document.getBytes(StandardCharsets.UTF_8)));
        }
        return PlanResolver.resolve(cluster.view(), plans, new TimedOutSlots(() -> 0));
    }

    private static void assertUnplaced(Resolution resolution, int task, String reason) {
        assertEquals(reason, resolution.unplaced().get(executor(task)));
        assertEquals(null, resolution.placed().get(executor(task)));
    }

    @Test
    void everyExecutorGetsTheSlotThatThePlanNames() throws MalformedPlanException {
        Resolution resolution = resolve(plan("p", "t", "s1 6700 1 2", "s2 6701 3 4")).get("t");
        assertEquals(Map.of(executor(1), slot("s1", 6700), executor(2), slot("s1", 6700),
            executor(3), slot("s2", 6701), executor(4), slot("s2", 6701)), resolution.placed());
        assertEquals(Map.of(), resolution.unplaced());
    }

    @Test
    void aSupervisorUnderANewIdIsFoundByItsHost() throws MalformedPlanException {
        cluster.die("s2");
        cluster.supervisor("fresh", "h2", 2);
        Resolution resolution = resolve(plan("p", "t", "s1 6700 1 2", "s2 6701 3 4")).get("t");
        assertEquals(slot("fresh", 6701), resolution.placed().get(executor(3)));
    }

    @Test
    void whatAPlanCannotHaveIsSaid() throws MalformedPlanException {
        cluster.place("u", slot("s1", 6701), executor(1), executor(2));
        cluster.blacklistedHosts.add("h2");
        Resolution resolution = resolve(
            plan("p", "t", "s1 6709 1", "s9 6700 2", "s1 6701 3", "s2 6700 4", "s3 6700 77")).get("t");
        assertEquals(Map.of(), resolution.placed());
        assertUnplaced(resolution, 1, "supervisor h1 offers no port 6709 in this round, but [6700, 6701]");
        assertUnplaced(resolution, 2, "supervisor h9 is dead");
        assertUnplaced(resolution, 3, "slot h1:6701 is occupied by topology u");
        assertUnplaced(resolution, 4, "supervisor h2 is blacklisted");
        assertUnplaced(resolution, 77, "the topology has no such executor");
    }

    @Test
    void anExecutorThatThePlanForgetsIsUnplaced() throws MalformedPlanException {
        assertUnplaced(resolve(plan("p", "t", "s1 6700 1 2 3")).get("t"), 4, "the plan does not name it");
    }

    @Test
    void twoWorkersThatResolveToOneSlotDoNotShareIt() throws MalformedPlanException {
        Resolution resolution = resolve(plan("p", "t", "s1 6700 1 2", "gone 6700 3 4").replace("\"gone\",\"host\":\"gone\"",
            "\"gone\",\"host\":\"h1\"")).get("t");
        assertEquals(slot("s1", 6700), resolution.placed().get(executor(1)));
        assertUnplaced(resolution, 3, "slot h1:6700 is what another worker of the plan resolves to");
    }

    @Test
    void ofTwoPlansForOneSlotThatOfItsTenantWins() throws MalformedPlanException {
        cluster.place("u", slot("s1", 6700), executor(1), executor(2));
        Map<String, Resolution> both = resolve(plan("p", "t", "s1 6700 1 2 3 4"), plan("q", "u", "s1 6700 1 2"));
        assertUnplaced(both.get("t"), 1, "slot h1:6700 is occupied by topology u");
        assertEquals(2, both.get("u").placed().size());
    }

    @Test
    void plansMayTakeSlotsThatOtherPlansLeave() throws MalformedPlanException {
        cluster.place("t", slot("s1", 6700), executor(1), executor(2), executor(3), executor(4));
        cluster.place("u", slot("s2", 6700), executor(1), executor(2));
        Map<String, Resolution> both = resolve(plan("p", "t", "s2 6700 1 2 3 4"), plan("q", "u", "s1 6700 1 2"));
        assertEquals(Map.of(), both.get("t").unplaced());
        assertEquals(Map.of(), both.get("u").unplaced());
    }

    @Test
    void aWorkerThatIsInPlaceStaysWhileItsSupervisorDaemonIsAway() throws MalformedPlanException {
        cluster.place("t", slot("s2", 6700), executor(3));
        cluster.loseDaemon("s2");
        Resolution resolution = resolve(plan("p", "t", "s1 6700 1 2", "s2 6700 3 4")).get("t");
        assertEquals(slot("s2", 6700), resolution.placed().get(executor(3)));
        assertUnplaced(resolution, 4, "supervisor h2 is dead");
    }

    @Test
    void aPlanForATopologyThatStormDoesNotHaveIsLeftOut() throws MalformedPlanException {
        assertEquals(Map.of(), resolve(plan("p", "other", "s1 6700 1")));
    }
}
