package dev.stormoperator.metrics;

import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What one task sent and received, counted by its hook in the task's thread and read by the snapshot writer.
 *
 * <p>Atomic adds, although there is nearly always one writer: bolts may emit from threads of their own, and on the few
 * calls that are looked at an uncontended add costs nothing that could be measured.
 */
final class TaskCounts {
    /** Where an executed tuple came from. */
    record Source(String component, String stream) {}

    private final Map<String, StreamCounts> streams = new ConcurrentHashMap<>();
    private final Map<Source, AtomicLong> executedFrom = new ConcurrentHashMap<>();
    private final AtomicLong acked = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private final LatencyHistogram completeLatency = new LatencyHistogram();
    private final CellBudget cells;
    private volatile boolean stopped;

    TaskCounts(CellBudget cells) {
        this.cells = cells;
    }

    void emitted(String stream, Collection<Integer> targets, int weight) {
        StreamCounts counts = streams.get(stream);
        if (counts == null) {
            counts = streams.computeIfAbsent(stream, name -> new StreamCounts(cells));
        }
        counts.add(targets, weight);
    }

    void executed(String component, String stream, int weight) {
        Source source = new Source(component, stream);
        AtomicLong count = executedFrom.get(source);
        if (count == null) {
            count = executedFrom.computeIfAbsent(source, any -> new AtomicLong());
        }
        count.getAndAdd(weight);
    }

    void ackedSome(int weight) {
        acked.getAndAdd(weight);
    }

    void failedOne() {
        failed.getAndIncrement();
    }

    void completed(long latencyMs, long weight) {
        completeLatency.record(latencyMs, weight);
    }

    /** What is there stays as it is, though the task goes on: nobody may take it for what the task does. */
    void stop() {
        stopped = true;
    }

    boolean isStopped() {
        return stopped;
    }

    Map<String, StreamCounts> streams() {
        return streams;
    }

    Map<Source, AtomicLong> executedFrom() {
        return executedFrom;
    }

    long acked() {
        return acked.get();
    }

    /** Exact: failures reach hooks whatever the gate says. */
    long failed() {
        return failed.get();
    }

    LatencyHistogram completeLatency() {
        return completeLatency;
    }
}
