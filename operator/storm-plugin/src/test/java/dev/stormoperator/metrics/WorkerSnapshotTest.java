package dev.stormoperator.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.stormoperator.metrics.SamplingGate.Budget;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.storm.metrics2.StormMetricRegistry;
import org.apache.storm.shade.net.minidev.json.JSONArray;
import org.apache.storm.shade.net.minidev.json.JSONObject;
import org.apache.storm.shade.net.minidev.json.JSONValue;
import org.junit.jupiter.api.Test;

class WorkerSnapshotTest {
    private static final int SOURCES = 50;
    private static final int TARGETS = 5_000;

    @Test
    void ofAllPairsOfAWideTopologyThoseWithMostTuplesAreTold() {
        WorkerMetrics worker = WorkerMetrics.of("wide-1-1", 6720);
        ExecutorRecord executor = worker.newExecutor("split");
        List<Integer> targets = IntStream.rangeClosed(1, TARGETS).boxed().toList();
        for (int source = 1; source <= SOURCES; source++) {
            TaskCounts counts = new TaskCounts(worker.cells());
            counts.emitted("default", targets, source);
            executor.add(new TaskRecord(source, false, new SamplingGate(Budget.UNLIMITED, source), counts));
        }
        WorkerSnapshot.Header header = new WorkerSnapshot.Header("wide-1-1", "h", 6720, 1, 0, false);
        WorkerSnapshot snapshot =
                new WorkerSnapshot(header, worker, new StormMetrics(new StormMetricRegistry()), 20);
        snapshot.advance(1);
        JSONArray rows = (JSONArray) ((JSONObject) JSONValue.parse(snapshot.toJson(1))).get("traffic");
        assertEquals(WorkerSnapshot.MOST_PAIRS, rows.size());
        int smallestTold = SOURCES + 1 - WorkerSnapshot.MOST_PAIRS / TARGETS;
        assertTrue(rows.stream().allMatch(row -> ((JSONObject) row).getAsNumber("tuples").intValue() >= smallestTold));
        WorkerMetrics.forget("wide-1-1", 6720);
    }

    @Test
    void aStreamOfWhichSomePairsCannotBeCountedHasNoRows() {
        WorkerMetrics worker = WorkerMetrics.of("wide-1-2", 6721);
        CellBudget cells = new CellBudget(64);
        TaskCounts counts = new TaskCounts(cells);
        counts.emitted("cut", List.of(3, 9_000), 5);
        counts.emitted("whole", List.of(3), 5);
        worker.newExecutor("split").add(new TaskRecord(1, false, new SamplingGate(Budget.UNLIMITED, 1), counts));
        WorkerSnapshot.Header header = new WorkerSnapshot.Header("wide-1-2", "h", 6721, 1, 0, false);
        WorkerSnapshot snapshot =
                new WorkerSnapshot(header, worker, new StormMetrics(new StormMetricRegistry()), 20);
        snapshot.advance(1);
        JSONObject written = (JSONObject) JSONValue.parse(snapshot.toJson(1));
        assertEquals(List.of("whole"), streamsOf(written, "traffic"));
        assertEquals(List.of("cut", "whole"), streamsOf(written, "transferred"));
        WorkerMetrics.forget("wide-1-2", 6721);
    }

    private static List<Object> streamsOf(JSONObject written, String table) {
        return ((JSONArray) written.get(table))
                .stream().map(row -> ((JSONObject) row).get("stream")).sorted().toList();
    }

    @Test
    void ofPairsWithAsManyTuplesSomeAreTold() {
        LargestPairs largest = new LargestPairs(new long[] {3, 7, 3, 3, 9}, 3);
        List<Long> told = List.of(3L, 3L, 7L, 3L, 9L, 9L).stream().filter(largest::isNext).toList();
        assertEquals(List.of(3L, 7L, 9L), told);
    }
}
