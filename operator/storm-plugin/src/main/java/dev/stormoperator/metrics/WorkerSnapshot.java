package dev.stormoperator.metrics;

import dev.stormoperator.metrics.TaskCounts.Source;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.IntStream;
import org.apache.storm.utils.Utils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Renders the state of one worker as "Worker snapshot, version 1" (docs/reference/interfaces.md). */
final class WorkerSnapshot {
    private static final Logger LOG = LoggerFactory.getLogger(WorkerSnapshot.class);
    private static final int VERSION = 1;
    /** Of pairs of tasks. The agent tells no more of them, and nothing of a worker whose file is twice as long. */
    static final int MOST_PAIRS = 100_000;

    /** What stays the same in all snapshots of a worker. */
    record Header(String topologyId, String host, int port, long pid, long startedAtMs, boolean exact) {}

    private final Header header;
    private final WorkerMetrics worker;
    private final StormMetrics storm;
    private final int stormSamplingRate;
    private final Map<Integer, TaskMargins> margins = new HashMap<>();
    private boolean toldOfSome;

    WorkerSnapshot(Header header, WorkerMetrics worker, StormMetrics storm, int stormSamplingRate) {
        this.header = header;
        this.worker = worker;
        this.storm = storm;
        this.stormSamplingRate = stormSamplingRate;
    }

    /** Takes over what has been counted since the last time, and sets how each task is sampled until the next. */
    void advance(double secondsSinceLast) {
        for (TaskRecord task : tasks()) {
            int coarsest = task.gate().coarsestSinceLastAsked();
            boolean hookIsFiner = !task.counts().isStopped()
                    && !task.gate().isClosed()
                    && (coarsest <= stormSamplingRate || !storm.areReadable());
            margins.computeIfAbsent(task.id(), any -> new TaskMargins())
                    .advance(task.counts(), storm.countsOf(task.id(), worker.components()), hookIsFiner);
            task.gate().adapt(secondsSinceLast);
        }
    }

    private List<TaskRecord> tasks() {
        List<TaskRecord> tasks = new ArrayList<>();
        worker.executors().forEach(executor -> tasks.addAll(executor.tasks()));
        return tasks;
    }

    String toJson(long nowMs) {
        List<TaskRecord> tasks = tasks();
        tasks.removeIf(task -> !margins.containsKey(task.id()));
        List<TaskRecord> counting = tasks.stream().filter(task -> !task.counts().isStopped()).toList();
        List<TaskRecord> counted = storm.areReadable() ? tasks : counting;
        JsonWriter json = new JsonWriter().beginObject();
        json.name("version").value(VERSION);
        json.name("topology_id").value(header.topologyId());
        json.name("host").value(header.host());
        json.name("port").value(header.port());
        json.name("pid").value(header.pid());
        json.name("started_at_ms").value(header.startedAtMs());
        json.name("written_at_ms").value(nowMs);
        json.name("exact").value(header.exact());
        writeExecutors(json);
        writeExecutedFrom(json, counted);
        writeTransferred(json, counted);
        writeTraffic(json, counting);
        writeCompleteLatency(json, counting);
        return json.endObject().toString();
    }

    private void writeExecutors(JsonWriter json) {
        json.name("executors").beginArray();
        for (ExecutorRecord executor : worker.executors()) {
            if (!executor.tasks().isEmpty() && margins.containsKey(executor.lastTask())) {
                writeExecutor(json, executor);
            }
        }
        json.endArray();
    }

    private void writeExecutor(JsonWriter json, ExecutorRecord executor) {
        long executed = 0;
        long emitted = 0;
        long transferred = 0;
        long acked = 0;
        long failed = 0;
        for (TaskRecord task : executor.tasks()) {
            TaskMargins totals = margins.get(task.id());
            executed += sum(totals.executedFrom());
            emitted += sumOfUserStreams(totals.emitted());
            transferred += sumOfUserStreams(totals.transferred());
            acked += totals.acked();
            failed += task.counts().failed();
        }
        boolean isCounting = executor.tasks().stream().noneMatch(task -> task.counts().isStopped());
        boolean isCounted = isCounting || storm.areReadable();
        StormMetrics.Queue queue = storm.queueOf(executor.firstTask());
        json.beginObject();
        json.name("task_start").value(executor.firstTask());
        json.name("task_end").value(executor.lastTask());
        json.name("component").value(executor.component());
        json.name("tid").value(executor.threadId());
        json.name("executed").value(isCounted ? executed : null);
        json.name("emitted").value(isCounted ? emitted : null);
        json.name("transferred").value(isCounted ? transferred : null);
        json.name("acked").value(isCounted ? acked : null);
        json.name("failed").value(isCounting ? failed : null);
        json.name("queue_length").value(queue.length());
        json.name("queue_capacity").value(queue.capacity());
        json.name("arrival_per_second").value(queue.arrivalPerSecond());
        json.endObject();
    }

    private static long sum(Map<?, BestCount> counts) {
        return counts.values().stream().mapToLong(BestCount::total).sum();
    }

    private static long sumOfUserStreams(Map<String, BestCount> counts) {
        return counts.entrySet().stream()
                .filter(entry -> !Utils.isSystemId(entry.getKey()))
                .mapToLong(entry -> entry.getValue().total())
                .sum();
    }

    private void writeExecutedFrom(JsonWriter json, List<TaskRecord> tasks) {
        json.name("executed_from").beginArray();
        for (TaskRecord task : tasks) {
            for (Map.Entry<Source, BestCount> entry : margins.get(task.id()).executedFrom().entrySet()) {
                json.beginObject().name("task").value(task.id());
                json.name("source_component").value(entry.getKey().component());
                json.name("stream").value(entry.getKey().stream());
                json.name("tuples").value(entry.getValue().total()).endObject();
            }
        }
        json.endArray();
    }

    private void writeTransferred(JsonWriter json, List<TaskRecord> tasks) {
        json.name("transferred").beginArray();
        for (TaskRecord task : tasks) {
            for (Map.Entry<String, BestCount> entry : margins.get(task.id()).transferred().entrySet()) {
                json.beginObject().name("task").value(task.id());
                json.name("stream").value(entry.getKey());
                json.name("tuples").value(entry.getValue().total()).endObject();
            }
        }
        json.endArray();
    }

    private void writeTraffic(JsonWriter json, List<TaskRecord> tasks) {
        json.name("traffic").beginArray();
        LargestPairs largest = new LargestPairs(tuplesOfPairs(tasks), MOST_PAIRS);
        if (largest.areSome() && !toldOfSome) {
            toldOfSome = true;
            LOG.warn("storm-operator: more than {} pairs of tasks exchange tuples here: only those with most are told",
                    MOST_PAIRS);
        }
        for (TaskRecord task : tasks) {
            for (Map.Entry<String, StreamCounts> entry : task.counts().streams().entrySet()) {
                // Of a row with gaps the operator would take these for zero; a row that is missing it estimates.
                if (!entry.getValue().isCut()) {
                    writePairs(json, task.id(), entry.getKey(), entry.getValue().byTarget(), largest);
                }
            }
        }
        json.endArray();
    }

    private static long[] tuplesOfPairs(List<TaskRecord> tasks) {
        return tasks.stream()
                .flatMap(task -> task.counts().streams().values().stream())
                .filter(stream -> !stream.isCut())
                .map(StreamCounts::byTarget)
                .flatMapToLong(byTarget -> IntStream.range(0, byTarget.length()).mapToLong(byTarget::get))
                .filter(tuples -> tuples > 0)
                .toArray();
    }

    private static void writePairs(
            JsonWriter json, int source, String stream, AtomicLongArray byTarget, LargestPairs largest) {
        for (int target = 0; target < byTarget.length(); target++) {
            long tuples = byTarget.get(target);
            if (tuples > 0 && largest.isNext(tuples)) {
                json.beginObject().name("source_task").value(source);
                json.name("stream").value(stream);
                json.name("target_task").value(target);
                json.name("tuples").value(tuples).endObject();
            }
        }
    }

    private static void writeCompleteLatency(JsonWriter json, List<TaskRecord> tasks) {
        json.name("complete_latency").beginArray();
        for (TaskRecord task : tasks) {
            if (task.isSpout()) {
                writeHistogram(json, task.id(), task.counts().completeLatency());
            }
        }
        json.endArray();
    }

    private static void writeHistogram(JsonWriter json, int task, LatencyHistogram histogram) {
        double[] bounds = LatencyHistogram.boundsMs();
        long[] counts = histogram.cumulative();
        json.beginObject().name("task").value(task);
        json.name("sum_ms").value(histogram.sumMs());
        json.name("count").value(counts[counts.length - 1]);
        json.name("buckets").beginArray();
        for (int i = 0; i < counts.length; i++) {
            Double bound = i < bounds.length ? bounds[i] : null;
            json.beginArray().value(bound).value(counts[i]).endArray();
        }
        json.endArray().endObject();
    }
}
