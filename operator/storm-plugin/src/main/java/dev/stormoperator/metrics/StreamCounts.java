package dev.stormoperator.metrics;

import java.util.Collection;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;

/** Tuples that one task sent on one stream: how many, and to which tasks. */
final class StreamCounts {
    private final AtomicLong emitted = new AtomicLong();
    private final AtomicLong transferred = new AtomicLong();
    private final CellBudget cells;
    /** Indexed by task id: ids are small and dense, and an index costs less than a hash. */
    private volatile AtomicLongArray byTarget = new AtomicLongArray(0);
    private volatile boolean cut;

    StreamCounts(CellBudget cells) {
        this.cells = cells;
    }

    void add(Collection<Integer> targets, int weight) {
        emitted.getAndAdd(weight);
        int copies = 0;
        for (Integer target : targets) {
            // Storm reports a direct emit to a task that does not subscribe as one to the task null.
            if (target != null) {
                addTo(target, weight);
                copies++;
            }
        }
        transferred.getAndAdd((long) copies * weight);
    }

    private void addTo(int target, int weight) {
        AtomicLongArray counts = byTarget;
        if (target >= counts.length() && !cut) {
            counts = grownFor(target);
        }
        if (target >= 0 && target < counts.length()) {
            counts.getAndAdd(target, weight);
        }
    }

    private synchronized AtomicLongArray grownFor(int target) {
        AtomicLongArray old = byTarget;
        if (target < old.length()) {
            return old;
        }
        int length = Math.max(16, Integer.highestOneBit(target) << 1);
        if (cut || !cells.take(length - old.length())) {
            cut = true;
            return old;
        }
        AtomicLongArray grown = new AtomicLongArray(length);
        for (int i = 0; i < old.length(); i++) {
            grown.set(i, old.get(i));
        }
        byTarget = grown;
        return grown;
    }

    long emitted() {
        return emitted.get();
    }

    long transferred() {
        return transferred.get();
    }

    /** Whether the budget was used up, so that some targets are not counted: what others got says too much of them. */
    boolean isCut() {
        return cut;
    }

    /** Counts by target task id; ids beyond its length have none. */
    AtomicLongArray byTarget() {
        return byTarget;
    }
}
