package dev.stormoperator.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class BestCountTest {
    @Test
    void growsByTheFinerCounterOfEachPeriod() {
        BestCount count = new BestCount();
        count.advance(7, 0, true);
        assertEquals(7, count.total());
        count.advance(1000, 980, false);
        assertEquals(987, count.total());
        count.advance(1003, 1000, true);
        assertEquals(990, count.total());
    }
}
