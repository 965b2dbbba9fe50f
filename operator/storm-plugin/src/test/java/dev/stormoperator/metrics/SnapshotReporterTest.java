package dev.stormoperator.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.apache.storm.Config;
import org.apache.storm.hooks.info.EmitInfo;
import org.apache.storm.metrics2.StormMetricRegistry;
import org.apache.storm.shade.net.minidev.json.JSONArray;
import org.apache.storm.shade.net.minidev.json.JSONObject;
import org.apache.storm.shade.net.minidev.json.JSONValue;
import org.apache.storm.task.TopologyContext;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Storm's own registry starts the reporter, as in a worker. */
@Timeout(60)
class SnapshotReporterTest {
    private static final int PORT = 6712;

    @TempDir
    Path folder;

    private final Map<String, Object> conf = TestTopology.conf();
    private final StormMetricRegistry registry = new StormMetricRegistry();
    private boolean running;

    @BeforeEach
    void configure() {
        conf.put(Config.TOPOLOGY_METRICS_REPORTERS, List.of(Map.of("class", SnapshotReporter.class.getName())));
        conf.put("storm_operator.metrics.dir", folder.toString());
        conf.put("storm_operator.metrics.period.ms", 50);
    }

    private void start() {
        registry.start(conf, PORT);
        running = true;
    }

    @AfterEach
    void stop() {
        if (running) {
            registry.stop();
        }
    }

    private Path file() {
        return folder.resolve(TestTopology.ID + "@" + PORT + ".json");
    }

    private JSONObject await(Predicate<JSONObject> condition) throws Exception {
        long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        while (System.nanoTime() < end) {
            if (Files.exists(file())) {
                JSONObject snapshot = (JSONObject) JSONValue.parseStrict(Files.readString(file()));
                if (condition.test(snapshot)) {
                    return snapshot;
                }
            }
            Thread.sleep(10);
        }
        throw new AssertionError("no such snapshot; the last one: " + (Files.exists(file()) ? Files.readString(file()) : "none"));
    }

    private static List<?> list(JSONObject of, String name) {
        return (JSONArray) of.get(name);
    }

    private static boolean sent(JSONObject snapshot, int tuples) {
        JSONObject expected = (JSONObject) JSONValue.parse(
                "{\"source_task\": 1, \"stream\": \"default\", \"target_task\": 2, \"tuples\": " + tuples + "}");
        return list(snapshot, "traffic").contains(expected);
    }

    private TopologyContext hookedTask(TestTopology topology, int id) {
        TopologyContext context = topology.task(id);
        context.addTaskHook(new TrafficHook());
        return context;
    }

    /** Runs out of memory in its first two periods. */
    public static class ShortOfMemory extends SnapshotReporter {
        private int periods;

        @Override
        double shareOfTimeInUse() {
            if (periods++ < 2) {
                throw new OutOfMemoryError("twice");
            }
            return super.shareOfTimeInUse();
        }
    }

    @Test
    void goesOnWhenMemoryHadRunOut() throws Exception {
        conf.put(Config.TOPOLOGY_METRICS_REPORTERS, List.of(Map.of("class", ShortOfMemory.class.getName())));
        start();
        TestTopology topology = new TestTopology(conf, PORT, registry);
        TestTopology.emit(hookedTask(topology, 1), 2);
        registry.gauge("receive-queue-population", () -> 0, "source", 1);
        await(snapshot -> sent(snapshot, 1));
    }

    @Test
    void writesWhatTheInterfaceSays() throws Exception {
        start();
        TestTopology topology = new TestTopology(conf, PORT, registry);
        TopologyContext source = hookedTask(topology, 1);
        TopologyContext bolt = hookedTask(topology, 2);
        registry.gauge("receive-queue-population", () -> 3, "source", 1);
        registry.gauge("receive-queue-overflow", () -> 2, "source", 1);
        registry.gauge("receive-queue-capacity", () -> 1024, "source", 1);
        for (int i = 0; i < 100; i++) {
            TestTopology.emit(source, 2);
            TestTopology.execute(bolt, source);
        }
        TestTopology.spoutAck(source, 4L);
        Object executed = JSONValue.parse(
                "[{\"task\": 2, \"source_component\": \"source\", \"stream\": \"default\", \"tuples\": 100}]");
        // A snapshot may fall between an emit and its execute: wait for the one that has all of both.
        JSONObject snapshot = await(seen -> sent(seen, 100) && executed.equals(list(seen, "executed_from")));
        assertEquals(1, snapshot.get("version"));
        assertEquals(TestTopology.ID, snapshot.get("topology_id"));
        assertEquals("10.77.0.11", snapshot.get("host"));
        assertEquals(PORT, snapshot.get("port"));
        assertEquals((int) ProcessHandle.current().pid(), snapshot.get("pid"));
        assertEquals(false, snapshot.get("exact"));
        JSONObject executor = (JSONObject) list(snapshot, "executors").get(0);
        assertEquals(1, executor.get("task_start"));
        assertEquals("source", executor.get("component"));
        assertNull(executor.get("tid"));
        assertEquals(5, executor.get("queue_length"));
        assertEquals(1024, executor.get("queue_capacity"));
        assertNull(executor.get("arrival_per_second"));
        assertEquals(
                JSONValue.parse("[{\"task\": 2, \"source_component\": \"source\", \"stream\": \"default\", \"tuples\": 100}]"),
                snapshot.get("executed_from"));
        assertEquals(
                JSONValue.parse("[{\"task\": 1, \"stream\": \"default\", \"tuples\": 100}]"), snapshot.get("transferred"));
        JSONObject latency = (JSONObject) list(snapshot, "complete_latency").get(0);
        assertEquals(80, latency.get("sum_ms"));
        List<?> last = (List<?>) list(latency, "buckets").get(list(latency, "buckets").size() - 1);
        assertNull(last.get(0));
        assertEquals(20, last.get(1));
    }

    @Test
    void saysNothingOfWhatAHookThatGaveUpCountsNoMore() throws Exception {
        start();
        TestTopology topology = new TestTopology(conf, PORT, registry);
        TopologyContext source = hookedTask(topology, 1);
        TestTopology.spoutAck(source, 4L);
        for (int i = 0; i < 100; i++) {
            TestTopology.emit(source, 2);
        }
        registry.gauge("anything", () -> 1, "source", 1);
        await(seen -> sent(seen, 100));

        new EmitInfo(null, null, 1, null).applyOn(source);
        registry.counter("__transfer-count-default", "source", 1).inc(40);
        JSONObject snapshot = await(seen -> list(seen, "traffic").isEmpty());
        assertEquals(List.of(), list(snapshot, "complete_latency"));
        JSONObject executor = (JSONObject) list(snapshot, "executors").get(0);
        assertNull(executor.get("failed"));
        await(seen -> JSONValue.parse("[{\"task\": 1, \"stream\": \"default\", \"tuples\": 140}]")
                .equals(list(seen, "transferred")));
    }

    @Test
    void removesItsFileWhenTheWorkerEnds() throws Exception {
        start();
        hookedTask(new TestTopology(conf, PORT, registry), 1);
        registry.gauge("anything", () -> 1, "source", 1);
        await(any -> true);
        registry.stop();
        running = false;
        assertFalse(Files.exists(file()));
    }

    @Test
    void bringsItsHookAlthoughTheTopologyNamesItsOwn() {
        conf.put(Config.TOPOLOGY_AUTO_TASK_HOOKS, List.of("org.apache.storm.hooks.BaseTaskHook"));
        start();
        assertEquals(
                List.of("org.apache.storm.hooks.BaseTaskHook", TrafficHook.class.getName()),
                conf.get(Config.TOPOLOGY_AUTO_TASK_HOOKS));
    }

    @Test
    void doesNotBringItTwice() {
        List<String> named = List.of(TrafficHook.class.getName());
        conf.put(Config.TOPOLOGY_AUTO_TASK_HOOKS, named);
        start();
        assertEquals(named, conf.get(Config.TOPOLOGY_AUTO_TASK_HOOKS));
    }

    @Test
    void aMalformedSettingDoesNotStopTheWorker() {
        conf.put("storm_operator.metrics.period.ms", "often");
        start();
        assertFalse(Files.exists(file()));
    }

    @Test
    void beginsToWriteWhenItsDirectoryCanBeHad() throws Exception {
        Path blocked = folder.resolve("blocked");
        Files.writeString(blocked, "a file where the directory should be");
        conf.put("storm_operator.metrics.dir", blocked.toString());
        start();
        registry.gauge("anything", () -> 1, "source", 1);
        Files.delete(blocked);
        Path expected = blocked.resolve(TestTopology.ID + "@" + PORT + ".json");
        long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        while (!Files.exists(expected) && System.nanoTime() < end) {
            Thread.sleep(10);
        }
        assertTrue(Files.exists(expected));
    }
}
