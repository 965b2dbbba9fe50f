package dev.stormoperator.workloads;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.storm.generated.Bolt;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.generated.Grouping;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.state.InMemoryKeyValueState;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.shade.net.minidev.json.JSONValue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TopologiesTest {

    private static StormTopology build(Workload workload, String... args) {
        return Workload.topology(workload, new Options(workload, args));
    }

    private static Grouping from(StormTopology topology, String source, String bolt) {
        Map<GlobalStreamId, Grouping> inputs = topology.get_bolts().get(bolt).get_common().get_inputs();
        return inputs.get(new GlobalStreamId(source, "default"));
    }

    @Test
    void wordCount() {
        StormTopology topology = build(new WordCount(), "--parallelism", "split=3");
        assertEquals(Set.of("split", "count"), topology.get_bolts().keySet());
        assertEquals(3, topology.get_bolts().get("split").get_common().get_parallelism_hint());
        assertEquals(List.of("word"), from(topology, "split", "count").get_fields());
    }

    @Test
    void wordCountWithCheckpointsHasStormsStatefulExecutor() {
        StormTopology topology = build(new WordCount(), "--checkpointed", "true");
        Bolt count = topology.get_bolts().get("count");
        String serialized = new String(count.get_bolt_object().get_serialized_java(), java.nio.charset.StandardCharsets.ISO_8859_1);
        assertTrue(serialized.contains("org.apache.storm.topology.StatefulBoltExecutor"));
        assertTrue(topology.get_spouts().containsKey("$checkpointspout"));
    }

    @Test
    void aCheckpointedCountSpendsItsCpuToo() {
        WordCount.CheckpointedCount count = new WordCount.CheckpointedCount(5_000);
        List<List<Object>> emitted = new ArrayList<>();
        OutputCollector collector = new OutputCollector(null) {
            @Override
            public List<Integer> emit(Tuple anchor, List<Object> tuple) {
                emitted.add(tuple);
                return List.of();
            }

            @Override
            public void ack(Tuple input) {
            }
        };
        count.prepare(Map.of(), null, collector);
        count.initState(new InMemoryKeyValueState<>());
        Tuple word = (Tuple) Proxy.newProxyInstance(Tuple.class.getClassLoader(), new Class<?>[] {Tuple.class},
            (proxy, method, arguments) -> method.getName().equals("getString") ? "storm" : null);
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long before = threads.getCurrentThreadCpuTime();
        count.execute(word);
        assertTrue(threads.getCurrentThreadCpuTime() - before >= 5_000_000);
        assertEquals(List.of(List.of("storm", 1L)), emitted);
    }

    @Test
    void theReferenceChainAlternates() {
        StormTopology topology = build(new ReferenceChain(), "--stages", "5");
        assertEquals(Set.of("spout1"), topology.get_spouts().keySet());
        assertEquals(Set.of("simple2", "stateful3", "simple4", "ack5"), topology.get_bolts().keySet());
        assertTrue(from(topology, "spout1", "simple2").is_set_shuffle());
        assertEquals(List.of("value"), from(topology, "simple2", "stateful3").get_fields());
        assertTrue(from(topology, "stateful3", "simple4").is_set_shuffle());
        assertEquals(List.of("value"), from(topology, "simple4", "ack5").get_fields());
    }

    @Test
    void theChainsSpoutsDifferByTheirVarianceAndKeepTheMean() {
        ReferenceChain.Numbers spout = new ReferenceChain.Numbers("400", 0.2);
        double[] shares = {spout.share(0, 4), spout.share(1, 4), spout.share(2, 4), spout.share(3, 4)};
        assertEquals(0.2, shares[0], 1e-9);
        assertEquals(0.3, shares[3], 1e-9);
        assertEquals(1, shares[0] + shares[1] + shares[2] + shares[3], 1e-9);
        assertEquals(1, spout.share(0, 1), 1e-9);
    }

    @Test
    void theChainsOwnOptionsAreChecked() {
        assertEquals("--variance: \"20\" should be a number from 0.0 to 1.0",
            assertThrows(IllegalArgumentException.class, () -> build(new ReferenceChain(), "--variance", "20")).getMessage());
        assertEquals("--stages: \"2\" should be a whole number, 3 or more",
            assertThrows(IllegalArgumentException.class, () -> build(new ReferenceChain(), "--stages", "2")).getMessage());
    }

    @Test
    void grandChallengeQuery1HasThePapersReplication() {
        StormTopology topology = build(new GrandChallengeQuery1());
        assertEquals(8, topology.get_spouts().get("sensor").get_common().get_parallelism_hint());
        assertEquals(4, topology.get_bolts().get("speed").get_common().get_parallelism_hint());
        assertEquals(2, topology.get_bolts().get("analysis").get_common().get_parallelism_hint());
        assertEquals(List.of("player"), from(topology, "speed", "analysis").get_fields());
    }

    @Test
    void theHttpMonitorHasThreeBranches() {
        StormTopology topology = build(new HttpMonitor());
        for (String branch : List.of("country", "isp", "prefix")) {
            assertTrue(from(topology, "retrieve", branch).is_set_shuffle());
            assertEquals(List.of("class"), from(topology, branch, "stat-" + branch).get_fields());
            assertTrue(from(topology, "stat-" + branch, "alarm").is_set_shuffle());
        }
        assertEquals("9.8/16", HttpMonitor.Part.PREFIX.of("9.8.7.6"));
    }

    @Test
    void theTruthTopologyHasAnEdgeOfEachKind(@TempDir Path directory) {
        StormTopology topology = build(new TruthTopology(), "--truth-dir", directory.toString());
        assertTrue(from(topology, "source", "shuffle").is_set_custom_serialized());
        assertTrue(from(topology, "source", "load-aware").is_set_shuffle());
        assertTrue(from(topology, "source", "fields").is_set_fields());
        assertTrue(from(topology, "fields", "fields-again").is_set_fields());
        assertTrue(from(topology, "source", "all").is_set_all());
        assertTrue(from(topology, "source", "local").is_set_local_or_shuffle());
        assertEquals("--truth-dir: should name a directory",
            assertThrows(IllegalArgumentException.class, () -> build(new TruthTopology())).getMessage());
    }

    @Test
    void groundTruthIsWrittenEverySecondAndOnRequest(@TempDir Path directory) throws Exception {
        GroundTruth truth = new GroundTruth(directory, "truth-1", 4, "fields");
        Path file = directory.resolve("truth-1-4.json");
        truth.received("default", 1);
        truth.sent("default", List.of(7, 8));
        truth.sent("default", List.of(7));
        truth.writeIfDue(10_000);
        Map<?, ?> document = (Map<?, ?>) JSONValue.parse(Files.readString(file));
        assertEquals(List.of(Map.of("source_task", 1, "stream", "default", "tuples", 1)), document.get("received"));
        assertEquals(List.of(Map.of("target_task", 7, "stream", "default", "tuples", 2),
            Map.of("target_task", 8, "stream", "default", "tuples", 1)), document.get("sent"));
        Files.delete(file);
        truth.writeIfDue(10_500);
        assertTrue(Files.notExists(file), "neither a second later nor asked");
        Files.createFile(directory.resolve(GroundTruth.REQUEST));
        truth.writeIfDue(10_600);
        assertTrue(Files.exists(file), "asked");
        Files.delete(file);
        truth.writeIfDue(10_700);
        assertTrue(Files.notExists(file), "not asked again");
        truth.writeIfDue(11_600);
        assertTrue(Files.exists(file), "a second later");
    }
}
