package dev.stormoperator.scheduler;

import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.SchedulerAssignment;
import org.apache.storm.scheduler.WorkerSlot;

/**
 * The difference between where the executors of one topology are and where they should be.
 *
 * <p>Storm restarts a worker when its set of executors changes, and never otherwise: slots whose set stays are in
 * neither part.
 *
 * @param free   slots in use whose executors change or leave
 * @param assign what to put where, once all of {@code free} is free
 */
record Placement(SortedSet<WorkerSlot> free, SortedMap<WorkerSlot, Set<ExecutorDetails>> assign) {

    private static final Comparator<WorkerSlot> BY_NAME =
        Comparator.comparing(WorkerSlot::getNodeId).thenComparingInt(WorkerSlot::getPort);

    Placement {
        free = Collections.unmodifiableSortedSet(free);
        assign = Collections.unmodifiableSortedMap(assign);
    }

    /** A copy of where the executors of {@code topologyId} are; empty when it has no assignment. */
    static Map<ExecutorDetails, WorkerSlot> current(Cluster cluster, String topologyId) {
        SchedulerAssignment assignment = cluster.getAssignmentById(topologyId);
        return assignment == null ? Map.of() : Map.copyOf(assignment.getExecutorToSlot());
    }

    /** What must change so that the executors of a topology move from {@code current} to {@code desired}. */
    static Placement between(Map<ExecutorDetails, WorkerSlot> current, Map<ExecutorDetails, WorkerSlot> desired) {
        Map<WorkerSlot, Set<ExecutorDetails>> before = workers(current);
        Map<WorkerSlot, Set<ExecutorDetails>> after = workers(desired);
        SortedSet<WorkerSlot> free = new TreeSet<>(BY_NAME);
        before.forEach((slot, executors) -> {
            if (!executors.equals(after.get(slot))) {
                free.add(slot);
            }
        });
        SortedMap<WorkerSlot, Set<ExecutorDetails>> assign = new TreeMap<>(BY_NAME);
        after.forEach((slot, executors) -> {
            if (!executors.equals(before.get(slot))) {
                assign.put(slot, executors);
            }
        });
        return new Placement(free, assign);
    }

    /** The executors of each slot in use. */
    static Map<WorkerSlot, Set<ExecutorDetails>> workers(Map<ExecutorDetails, WorkerSlot> slotOf) {
        Map<WorkerSlot, Set<ExecutorDetails>> workers = new HashMap<>();
        slotOf.forEach((executor, slot) -> workers.computeIfAbsent(slot, s -> new HashSet<>()).add(executor));
        return workers;
    }
}
