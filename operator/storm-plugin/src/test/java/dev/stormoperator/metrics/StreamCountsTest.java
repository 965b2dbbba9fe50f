package dev.stormoperator.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class StreamCountsTest {
    @Test
    void countsEachTargetWithItsWeight() {
        StreamCounts counts = new StreamCounts(new CellBudget(1000));
        counts.add(List.of(3, 70), 4);
        counts.add(List.of(3), 1);
        assertEquals(5, counts.byTarget().get(3));
        assertEquals(4, counts.byTarget().get(70));
        assertEquals(5, counts.emitted());
        assertEquals(9, counts.transferred());
    }

    @Test
    void aDirectEmitToNobodyIsEmittedButNotTransferred() {
        StreamCounts counts = new StreamCounts(new CellBudget(1000));
        counts.add(Collections.singletonList(null), 2);
        counts.add(List.of(), 2);
        assertEquals(4, counts.emitted());
        assertEquals(0, counts.transferred());
    }

    @Test
    void memoryIsBoundedAndTotalsStayRight() {
        StreamCounts counts = new StreamCounts(new CellBudget(64));
        counts.add(Arrays.asList(10, 100_000, -1), 1);
        assertEquals(16, counts.byTarget().length());
        assertEquals(1, counts.byTarget().get(10));
        assertEquals(3, counts.transferred());
    }

    @Test
    void theBudgetIsSharedAndARefusalTakesNothing() {
        CellBudget budget = new CellBudget(40);
        new StreamCounts(budget).add(List.of(20), 1);
        StreamCounts refused = new StreamCounts(budget);
        refused.add(List.of(1), 1);
        assertEquals(0, refused.byTarget().length());
        assertEquals(true, budget.take(8));
    }
}
