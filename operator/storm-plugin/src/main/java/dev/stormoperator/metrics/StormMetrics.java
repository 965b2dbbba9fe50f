package dev.stormoperator.metrics;

import com.codahale.metrics.Counter;
import com.codahale.metrics.Gauge;
import dev.stormoperator.metrics.TaskCounts.Source;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import org.apache.storm.metrics2.MetricRegistryProvider;
import org.apache.storm.metrics2.StormMetricRegistry;
import org.apache.storm.metrics2.TaskMetricDimensions;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Storm's own metrics of the tasks of this worker: counters from its 5% sample, gauges of the receive queues. */
final class StormMetrics {
    private static final Logger LOG = LoggerFactory.getLogger(StormMetrics.class);
    private static final String EMITTED = "__emit-count-";
    private static final String TRANSFERRED = "__transfer-count-";
    private static final String EXECUTED = "__execute-count-";
    private static final String ACKED = "__ack-count-";
    private static final String QUEUE = "receive-queue-";

    /** Counts of one task since the worker started. */
    record Counts(Map<String, Long> emitted, Map<String, Long> transferred, Map<Source, Long> executedFrom, long acked) {
        static final Counts NONE = new Counts(Map.of(), Map.of(), Map.of(), 0);
    }

    /** One receive queue; null is unknown. */
    record Queue(Long length, Long capacity, Double arrivalPerSecond) {}

    private final MetricRegistryProvider provider;
    private final StormMetricRegistry registry;
    private final Map<Integer, Map<String, Gauge<?>>> queueGaugesByTask = new HashMap<>();

    StormMetrics(MetricRegistryProvider provider) {
        this.provider = provider;
        this.registry = provider instanceof StormMetricRegistry storms ? storms : null;
        if (registry == null) {
            LOG.warn("storm-operator: this Storm's metric registry is a {}; its counters are not read", provider.getClass());
        }
    }

    boolean areReadable() {
        return registry != null;
    }

    /** The worker's port, which Storm tells reporters only as a label of its metrics; empty until there are some. */
    OptionalInt workerPort() {
        for (TaskMetricDimensions dimensions : provider.getTaskMetrics().keySet()) {
            String port = dimensions.getDimensions().get("port");
            if (port != null) {
                return OptionalInt.of(Integer.parseInt(port));
            }
        }
        return OptionalInt.empty();
    }

    /** @param components the names of the topology's own components, to tell them from streams */
    Counts countsOf(int task, Set<String> components) {
        if (registry == null) {
            return Counts.NONE;
        }
        Map<String, Long> emitted = new HashMap<>();
        Map<String, Long> transferred = new HashMap<>();
        Map<Source, Long> executedFrom = new HashMap<>();
        long acked = 0;
        for (Map.Entry<String, Counter> entry : registry.getTaskCounters(task).entrySet()) {
            String name = entry.getKey();
            long count = entry.getValue().getCount();
            if (name.startsWith(EMITTED)) {
                emitted.put(name.substring(EMITTED.length()), count);
            } else if (name.startsWith(TRANSFERRED)) {
                transferred.put(name.substring(TRANSFERRED.length()), count);
            } else if (name.startsWith(EXECUTED)) {
                executedFrom.put(sourceIn(name.substring(EXECUTED.length()), components), count);
            } else if (name.startsWith(ACKED)) {
                acked += count;
            }
        }
        return new Counts(emitted, transferred, executedFrom, acked);
    }

    /** Both names may have colons. Storm's own components, which are not among {@code components}, have none. */
    private static Source sourceIn(String componentAndStream, Set<String> components) {
        int colon = componentAndStream.lastIndexOf(':');
        while (colon > 0 && !components.contains(componentAndStream.substring(0, colon))) {
            colon = componentAndStream.lastIndexOf(':', colon - 1);
        }
        int end = colon > 0 ? colon : componentAndStream.indexOf(':');
        return new Source(componentAndStream.substring(0, end), componentAndStream.substring(end + 1));
    }

    /** The queue of the executor that {@code task} belongs to. What waits for room in it is in it. */
    Queue queueOf(int task) {
        Number population = queueGauge(task, "population");
        Number overflow = queueGauge(task, "overflow");
        Number capacity = queueGauge(task, "capacity");
        Number arrival = queueGauge(task, "arrival_rate_secs");
        return new Queue(
                population == null ? null : population.longValue() + (overflow == null ? 0 : overflow.longValue()),
                capacity == null ? null : capacity.longValue(),
                arrival == null ? null : arrival.doubleValue());
    }

    private Number queueGauge(int task, String name) {
        Gauge<?> gauge = queueGauges(task).get(name);
        return gauge != null && gauge.getValue() instanceof Number number ? number : null;
    }

    /** Kept once they are there, which is before the task runs: Storm copies all of a task's gauges to tell one. */
    private Map<String, Gauge<?>> queueGauges(int task) {
        Map<String, Gauge<?>> known = queueGaugesByTask.getOrDefault(task, Map.of());
        if (!known.isEmpty() || registry == null) {
            return known;
        }
        Map<String, Gauge<?>> found = new HashMap<>();
        registry.getTaskGauges(task).forEach((name, gauge) -> {
            if (name.startsWith(QUEUE)) {
                found.put(name.substring(QUEUE.length()), gauge);
            }
        });
        queueGaugesByTask.put(task, found);
        return found;
    }
}
