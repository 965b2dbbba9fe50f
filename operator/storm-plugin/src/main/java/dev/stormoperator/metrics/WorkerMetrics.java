package dev.stormoperator.metrics;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * The executors of one worker: where its hooks and its reporter, which Storm makes apart from each other, meet.
 *
 * <p>A JVM is one worker, except in Storm's local mode; hence the registry by topology and port.
 */
final class WorkerMetrics {
    private record Key(String topologyId, int port) {}

    private static final Map<Key, WorkerMetrics> WORKERS = new ConcurrentHashMap<>();

    private final List<ExecutorRecord> executors = new CopyOnWriteArrayList<>();
    private volatile Set<String> components = Set.of();
    private final CellBudget cells = new CellBudget(CellBudget.DEFAULT_CELLS);

    static WorkerMetrics of(String topologyId, int port) {
        return WORKERS.computeIfAbsent(new Key(topologyId, port), any -> new WorkerMetrics());
    }

    static void forget(String topologyId, int port) {
        WORKERS.remove(new Key(topologyId, port));
    }

    ExecutorRecord newExecutor(String component) {
        ExecutorRecord executor = new ExecutorRecord(component);
        executors.add(executor);
        return executor;
    }

    /** Executors all of whose tasks may not be there yet while the worker starts. */
    List<ExecutorRecord> executors() {
        return executors;
    }

    /** Names of the topology's own components, without those that Storm adds; empty before the first task is there. */
    Set<String> components() {
        return components;
    }

    void componentsAre(Set<String> names) {
        components = names;
    }

    CellBudget cells() {
        return cells;
    }
}
