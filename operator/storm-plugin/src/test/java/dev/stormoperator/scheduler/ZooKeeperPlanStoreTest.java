package dev.stormoperator.scheduler;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.storm.Config;
import org.apache.storm.cluster.ClusterStateContext;
import org.apache.storm.cluster.ClusterUtils;
import org.apache.storm.cluster.DaemonType;
import org.apache.storm.cluster.IStateStorage;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.shade.org.apache.zookeeper.ZooDefs;
import org.apache.storm.utils.Utils;
import org.apache.storm.testing.InProcessZookeeper;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Against a real ZooKeeper in this process. */
class ZooKeeperPlanStoreTest {

    private InProcessZookeeper zooKeeper;
    private Map<String, Object> conf;
    private ZooKeeperPlanStore store;
    private IStateStorage operator;

    @BeforeEach
    void start() throws Exception {
        zooKeeper = new InProcessZookeeper();
        conf = new HashMap<>(Utils.readDefaultConfig());
        conf.put(Config.STORM_ZOOKEEPER_SERVERS, List.of("127.0.0.1"));
        conf.put(Config.STORM_ZOOKEEPER_PORT, (int) zooKeeper.getPort());
        conf.put(Config.STORM_ZOOKEEPER_ROOT, "/somewhere");
        store = new ZooKeeperPlanStore(conf);
        operator = ClusterUtils.mkStateStorage(conf, conf, new ClusterStateContext(DaemonType.NIMBUS, conf));
    }

    @AfterEach
    void stop() throws Exception {
        store.close();
        operator.close();
        zooKeeper.close();
    }

    private void write(String path, String text) {
        operator.set_data(path, text.getBytes(StandardCharsets.UTF_8), ZooDefs.Ids.OPEN_ACL_UNSAFE);
    }

    @Test
    void plansAreReadWhereTheContractSays() {
        assertEquals(Optional.empty(), store.readPlan("t-1"));
        write("/storm-operator/plans/t-1", "{}");
        assertArrayEquals(new byte[] {'{', '}'}, store.readPlan("t-1").orElseThrow());
    }

    @Test
    void acknowledgementsAreWrittenWhereTheContractSays() {
        store.writeAcknowledgement("t-1", new byte[] {1});
        store.writeAcknowledgement("t-1", new byte[] {2});
        assertArrayEquals(new byte[] {2}, operator.get_data("/storm-operator/acks/t-1", false));
        assertArrayEquals(new byte[] {2}, store.readAcknowledgement("t-1").orElseThrow());
    }

    /** As after a rebalance of a topology of ten thousand executors to other numbers of them. */
    @Test
    void anAcknowledgementOfHoweverManyExecutorsWithoutAPlaceCanBeWritten() {
        Plan plan = new Plan("p-1", "t-1", List.of());
        SortedMap<ExecutorDetails, String> unplaced = new TreeMap<>(Resolution.BY_TASKS);
        for (int task = 1; task <= 10_000; task++) {
            unplaced.put(TestCluster.executor(task), "supervisor storm-supervisor-" + task % 1000
                + ".storm-supervisor.storm.svc.cluster.local offers no port 6703 in this round, but [6700, 6701, 6702]");
        }
        Acknowledgement acknowledgement = Acknowledgement.of(new Resolution(plan, Map.of(), unplaced));
        store.writeAcknowledgement("t-1", acknowledgement.toJson(1));
        assertTrue(acknowledgement.saysTheSameAs(store.readAcknowledgement("t-1").orElseThrow()));
        assertTrue(acknowledgement.message().startsWith("0 of 10000 executors as planned; 10: supervisor storm-supervisor-1."));
        assertTrue(acknowledgement.message().endsWith("; 9800: other reasons"));
    }

    @Test
    void onlyWhatBelongsToTopologiesThatStormDoesNotHaveIsForgotten() {
        store.forgetDeletedTopologies(Set.of());
        for (String kind : List.of("plans", "acks", "cpu-limits")) {
            for (String topology : List.of("alive", "starting", "deleted")) {
                write("/storm-operator/" + kind + "/" + topology, "{}");
            }
        }
        write("/storm-operator/journal", "{}");
        write("/storms/starting", "");
        store.forgetDeletedTopologies(Set.of("alive"));
        for (String kind : List.of("plans", "acks", "cpu-limits")) {
            assertEquals(Set.of("alive", "starting"), Set.copyOf(operator.get_children("/storm-operator/" + kind, false)));
        }
        assertTrue(operator.node_exists("/storm-operator/journal", false));
    }

    @Test
    void aZooKeeperThatIsAwayIsAnErrorNotAnAbsentPlan() {
        Map<String, Object> nowhere = new HashMap<>(conf);
        nowhere.put(Config.STORM_ZOOKEEPER_PORT, 1);
        nowhere.put(Config.STORM_ZOOKEEPER_RETRY_TIMES, 0);
        nowhere.put(Config.STORM_ZOOKEEPER_CONNECTION_TIMEOUT, 300);
        try (ZooKeeperPlanStore away = new ZooKeeperPlanStore(nowhere)) {
            assertThrows(RuntimeException.class, () -> away.readPlan("t-1"));
        }
        assertFalse(store.readPlan("t-1").isPresent());
    }
}
