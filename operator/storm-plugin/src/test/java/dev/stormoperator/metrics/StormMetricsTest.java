package dev.stormoperator.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.stormoperator.metrics.TaskCounts.Source;
import java.util.Map;
import java.util.Set;
import org.apache.storm.metrics2.StormMetricRegistry;
import org.apache.storm.metrics2.TaskMetrics;
import org.junit.jupiter.api.Test;

class StormMetricsTest {
    private static final int PORT = 6713;

    private final Map<String, Object> conf = TestTopology.conf();
    private final StormMetricRegistry registry = new StormMetricRegistry();
    private final TaskMetrics bolt =
            new TaskMetrics(new TestTopology(conf, PORT, registry).task(2), "bolt", 2, registry, conf);

    private Map<Source, Long> executedFrom(Set<String> components) {
        return new StormMetrics(registry).countsOf(2, components).executedFrom();
    }

    @Test
    void namesOfComponentsMayHaveColonsAndThoseOfStreamsToo() {
        bolt.boltExecuteTuple("kafka:orders", "default", 1);
        bolt.boltExecuteTuple("kafka:orders", "late:eu", 1);
        bolt.boltExecuteTuple("kafka", "late:eu", 1);
        bolt.boltExecuteTuple("__system", "__tick", 1);
        assertEquals(
                Map.of(
                        new Source("kafka:orders", "default"), 20L,
                        new Source("kafka:orders", "late:eu"), 20L,
                        new Source("kafka", "late:eu"), 20L,
                        new Source("__system", "__tick"), 20L),
                executedFrom(Set.of("kafka", "kafka:orders", "bolt")));
    }

    @Test
    void aComponentThatNobodyNamedEndsAtTheFirstColon() {
        bolt.boltExecuteTuple("__acker", "late:eu", 1);
        assertEquals(Map.of(new Source("__acker", "late:eu"), 20L), executedFrom(Set.of()));
    }
}
