package dev.stormoperator.scheduler;

import java.util.Collections;
import java.util.Comparator;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.WorkerSlot;

/**
 * What a plan means in the cluster as it is now.
 *
 * @param placed   executors whose slot can be had
 * @param unplaced the others, with the reason
 */
record Resolution(Plan plan, Map<ExecutorDetails, WorkerSlot> placed, SortedMap<ExecutorDetails, String> unplaced) {

    /** Executors by their tasks, so that the same plan always reads the same. */
    static final Comparator<ExecutorDetails> BY_TASKS =
        Comparator.comparingInt(ExecutorDetails::getStartTask).thenComparingInt(ExecutorDetails::getEndTask);

    Resolution {
        SortedMap<ExecutorDetails, String> sorted = new TreeMap<>(BY_TASKS);
        sorted.putAll(unplaced);
        placed = Map.copyOf(placed);
        unplaced = Collections.unmodifiableSortedMap(sorted);
    }
}
