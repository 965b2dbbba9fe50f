package dev.stormoperator.metrics;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Bounds what all pair counters of one worker may take: one cell is one {@code long}. */
final class CellBudget {
    /** 32 MB: enough for 100 tasks of two streams each, in a topology of 20,000 tasks. */
    static final long DEFAULT_CELLS = 4L << 20;

    private static final Logger LOG = LoggerFactory.getLogger(CellBudget.class);

    private final long limit;
    private final AtomicLong taken = new AtomicLong();
    private final AtomicBoolean refused = new AtomicBoolean();

    CellBudget(long limit) {
        this.limit = limit;
    }

    /** Whether {@code cells} more may be allocated; the first refusal is logged. */
    boolean take(long cells) {
        long after = taken.addAndGet(cells);
        if (after <= limit) {
            return true;
        }
        taken.addAndGet(-cells);
        if (refused.compareAndSet(false, true)) {
            LOG.warn("storm-operator: this worker's {} counters for pairs of tasks are used up; streams with further"
                    + " pairs will be missing from its snapshots' traffic", limit);
        }
        return false;
    }
}
