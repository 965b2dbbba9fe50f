package dev.stormoperator.metrics;

import static dev.stormoperator.metrics.TestTopology.emit;
import static dev.stormoperator.metrics.TestTopology.execute;
import static dev.stormoperator.metrics.TestTopology.spoutAck;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.stormoperator.metrics.TaskCounts.Source;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.storm.hooks.BaseTaskHook;
import org.apache.storm.hooks.info.BoltFailInfo;
import org.apache.storm.hooks.info.EmitInfo;
import org.apache.storm.metrics2.StormMetricRegistry;
import org.apache.storm.task.TopologyContext;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class TrafficHookTest {
    private static final int PORT = 6711;
    private static final int MANY = 400_000;

    private Map<String, Object> conf;
    private TestTopology topology;

    /** Counts the emits it is told of. */
    private static final class UsersHook extends BaseTaskHook {
        private int emits;

        @Override
        public void emit(EmitInfo info) {
            emits++;
        }
    }

    @BeforeEach
    void start() {
        conf = TestTopology.conf();
        topology = new TestTopology(conf, PORT, new StormMetricRegistry());
    }

    @AfterEach
    void stop() {
        WorkerMetrics.forget(TestTopology.ID, PORT);
    }

    private static TopologyContext hooked(TopologyContext context) {
        context.addTaskHook(new TrafficHook());
        return context;
    }

    private static List<ExecutorRecord> executors() {
        return WorkerMetrics.of(TestTopology.ID, PORT).executors();
    }

    private static TaskCounts countsOf(int task) {
        return executors().stream()
                .flatMap(executor -> executor.tasks().stream())
                .filter(record -> record.id() == task)
                .findFirst()
                .orElseThrow()
                .counts();
    }

    private static double sent(int target) {
        return countsOf(1).streams().get("default").byTarget().get(target);
    }

    @Test
    void aSlowTaskIsCountedExactly() {
        TopologyContext source = hooked(topology.task(1));
        TopologyContext bolt = hooked(topology.task(2));
        for (int i = 0; i < 300; i++) {
            emit(source, i % 3 == 0 ? 2 : 3);
            execute(bolt, source);
        }
        assertEquals(100, sent(2));
        assertEquals(200, sent(3));
        assertEquals(300, countsOf(2).executedFrom().get(new Source("source", "default")).get());
    }

    @Test
    void aFastTaskIsSampledWithoutBias() {
        TopologyContext source = hooked(topology.task(1));
        for (int i = 0; i < MANY; i++) {
            emit(source, i % 4 == 0 ? 2 : 3);
        }
        assertEquals(MANY / 4.0, sent(2), MANY / 40.0);
        assertEquals(MANY * 3 / 4.0, sent(3), MANY / 40.0);
        assertTrue(executors().get(0).tasks().get(0).gate().coarsestSinceLastAsked() > 1);
    }

    @Test
    void exactModeCountsEveryCall() {
        conf.put("storm_operator.metrics.exact", true);
        TopologyContext source = hooked(topology.task(1));
        for (int i = 0; i < MANY; i++) {
            emit(source, 2, 3);
        }
        assertEquals(MANY, sent(2));
        assertEquals(2L * MANY, countsOf(1).streams().get("default").transferred());
    }

    @Test
    void aUsersHookSeesEveryTupleWheneverItComes() {
        TopologyContext source = topology.task(1);
        UsersHook before = new UsersHook();
        UsersHook after = new UsersHook();
        source.addTaskHook(before);
        hooked(source);
        for (int i = 0; i < MANY; i++) {
            emit(source, 2);
        }
        source.addTaskHook(after);
        for (int i = 0; i < MANY; i++) {
            emit(source, 3);
        }
        assertEquals(2 * MANY, before.emits);
        assertEquals(MANY, after.emits);
        assertEquals(MANY, sent(2), MANY / 20.0);
        assertEquals(MANY, sent(3), MANY / 20.0);
    }

    @Test
    void aUsersHookThatComesLateEndsTheGating() {
        TopologyContext source = hooked(topology.task(1));
        for (int i = 0; i < MANY; i++) {
            emit(source, 2);
        }
        UsersHook late = new UsersHook();
        source.addTaskHook(late);
        for (int i = 0; i < 1000; i++) {
            emit(source, 3);
        }
        assertEquals(1000, late.emits);
    }

    @Test
    void namedTwiceItCountsOnce() {
        TopologyContext source = hooked(hooked(topology.task(1)));
        emit(source, 2);
        assertEquals(1, sent(2));
    }

    @Test
    void failuresAreExactWhateverTheGate() {
        TopologyContext bolt = hooked(topology.task(2));
        for (int i = 0; i < MANY; i++) {
            new BoltFailInfo(null, 2, null).applyOn(bolt);
        }
        assertEquals(MANY, countsOf(2).failed());
    }

    @Test
    void latencyIsScaledByStormsOwnSamplingToo() {
        TopologyContext source = hooked(topology.task(1));
        for (int i = 0; i < 200; i++) {
            spoutAck(source, i % 20 == 0 ? Long.valueOf(7) : null);
        }
        assertEquals(200, countsOf(1).acked());
        long[] counts = countsOf(1).completeLatency().cumulative();
        assertEquals(200, counts[counts.length - 1]);
        assertEquals(1400, countsOf(1).completeLatency().sumMs());
    }

    @Test
    void withoutAckersNothingIsAckedNorTimed() {
        conf.put("topology.acker.executors", 0);
        TopologyContext source = hooked(topology.task(1));
        spoutAck(source, 0L);
        assertEquals(0, countsOf(1).acked());
        long[] counts = countsOf(1).completeLatency().cumulative();
        assertEquals(0, counts[counts.length - 1]);
    }

    @Test
    void aBoltThatSendsNothingIsNotLookedAt() {
        conf.put("topology.acker.executors", 0);
        TopologyContext source = hooked(topology.task(1));
        TopologyContext last = hooked(topology.task(2));
        for (int i = 0; i < 100; i++) {
            execute(last, source);
        }
        assertTrue(countsOf(2).executedFrom().isEmpty());
        // Whoever asks how fine the hook counts must be sent to Storm's own counters.
        SamplingGate gate = executors().get(1).tasks().get(0).gate();
        gate.adapt(1.0);
        assertEquals(SamplingGate.MAX_BLOCK, gate.coarsestSinceLastAsked());
        assertEquals(SamplingGate.MAX_BLOCK, gate.coarsestSinceLastAsked());
    }

    @Test
    void aBoltThatSendsNothingIsLookedAtInExactMode() {
        conf.put("topology.acker.executors", 0);
        conf.put("storm_operator.metrics.exact", true);
        TopologyContext source = hooked(topology.task(1));
        TopologyContext last = hooked(topology.task(2));
        execute(last, source);
        assertEquals(1, countsOf(2).executedFrom().get(new Source("source", "default")).get());
    }

    @Test
    void nothingThatGoesWrongReachesTheTuplePath() {
        TopologyContext bolt = hooked(topology.task(2));
        new EmitInfo(null, null, 2, null).applyOn(bolt);
        emit(bolt, 3);
    }

    @Test
    void tasksOfOneExecutorAreOneExecutor() {
        hooked(topology.task(1));
        hooked(topology.task(2));
        hooked(topology.task(3));
        assertEquals(2, executors().size());
        assertEquals(2, executors().get(1).firstTask());
        assertEquals(3, executors().get(1).lastTask());
    }

    @Test
    void theExecutorsThreadTellsItsIdAndAUsersThreadDoesNot() throws Exception {
        TopologyContext source = hooked(topology.task(1));
        emit(source, 2);
        assertNull(executors().get(0).threadId());
        AtomicReference<String> link = new AtomicReference<>();
        Thread thread = new Thread(() -> {
            emit(source, 2);
            link.set(readThreadSelf());
        }, "Thread-16-source-executor[1, 1]");
        thread.start();
        thread.join();
        assertEquals(link.get(), String.valueOf(executors().get(0).threadId()));
    }

    private static String readThreadSelf() {
        try {
            return Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString();
        } catch (java.io.IOException e) {
            return e.toString();
        }
    }
}
