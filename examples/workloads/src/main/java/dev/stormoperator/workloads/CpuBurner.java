package dev.stormoperator.workloads;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.function.LongSupplier;

/**
 * Busy work of a settable length in CPU time of the calling thread: a thread that is throttled or preempted takes longer
 * by the clock, not more CPU.
 */
public final class CpuBurner {

    /** A few microseconds of work between two looks at the clock, which itself costs a few tenths of one. */
    private static final int STEPS_BETWEEN_LOOKS = 1_000;

    private final LongSupplier threadCpuNanos;
    private long state = 1;

    public CpuBurner() {
        this(threadCpuClock());
    }

    CpuBurner(LongSupplier threadCpuNanos) {
        this.threadCpuNanos = threadCpuNanos;
    }

    private static LongSupplier threadCpuClock() {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        return threads.isCurrentThreadCpuTimeSupported() ? threads::getCurrentThreadCpuTime : System::nanoTime;
    }

    /** Works for {@code micros} microseconds of CPU; 0 does nothing. */
    public void burn(long micros) {
        if (micros <= 0) {
            return;
        }
        long end = threadCpuNanos.getAsLong() + micros * 1_000;
        do {
            work();
        } while (threadCpuNanos.getAsLong() < end);
    }

    /** Each step needs the one before, so that no compiler can shorten it. */
    private void work() {
        long x = state;
        for (int i = 0; i < STEPS_BETWEEN_LOOKS; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        state = x;
    }
}
