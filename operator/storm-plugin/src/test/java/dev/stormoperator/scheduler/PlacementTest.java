package dev.stormoperator.scheduler;

import static dev.stormoperator.scheduler.TestCluster.executor;
import static dev.stormoperator.scheduler.TestCluster.slot;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.Set;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.WorkerSlot;
import org.junit.jupiter.api.Test;

class PlacementTest {

    private static final WorkerSlot A = slot("s1", 6700);
    private static final WorkerSlot B = slot("s2", 6700);
    private static final WorkerSlot C = slot("s2", 6701);
    private static final Map<ExecutorDetails, WorkerSlot> BEFORE =
        Map.of(executor(1), A, executor(2), A, executor(3), B, executor(4), B);

    @Test
    void nothingChangesWhereEverythingIsInPlace() {
        Placement placement = Placement.between(BEFORE, Map.copyOf(BEFORE));
        assertEquals(Set.of(), placement.free());
        assertEquals(Map.of(), placement.assign());
    }

    @Test
    void aWorkerWhoseExecutorsStayIsNotTouched() {
        Placement placement = Placement.between(BEFORE,
            Map.of(executor(1), A, executor(2), A, executor(3), B, executor(4), C));
        assertEquals(Set.of(B), placement.free());
        assertEquals(Map.of(B, Set.of(executor(3)), C, Set.of(executor(4))), placement.assign());
    }

    @Test
    void twoWorkersMaySwap() {
        Placement placement = Placement.between(BEFORE,
            Map.of(executor(1), B, executor(2), B, executor(3), A, executor(4), A));
        assertEquals(Set.of(A, B), placement.free());
        assertEquals(Map.of(A, Set.of(executor(3), executor(4)), B, Set.of(executor(1), executor(2))),
            placement.assign());
    }

    @Test
    void aSlotThatEmptiesIsOnlyFreed() {
        Placement placement = Placement.between(BEFORE, Map.of(executor(1), A, executor(2), A));
        assertEquals(Set.of(B), placement.free());
        assertEquals(Map.of(), placement.assign());
    }

    @Test
    void aNewTopologyIsOnlyAssigned() {
        Placement placement = Placement.between(Map.of(), Map.of(executor(1), A));
        assertEquals(Set.of(), placement.free());
        assertEquals(Map.of(A, Set.of(executor(1))), placement.assign());
    }
}
