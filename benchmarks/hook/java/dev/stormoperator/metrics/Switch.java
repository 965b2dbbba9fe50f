package dev.stormoperator.metrics;

import com.sun.management.ThreadMXBean;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.storm.hooks.ITaskHook;
import org.apache.storm.task.TopologyContext;

/**
 * Takes one task's hook away and puts it back, from the task's own thread, every few thousand tuples, and keeps what
 * each such segment cost that thread: CPU time and allocated bytes.
 *
 * <p>CPU time of one thread over some milliseconds does not mind who else wants the processor, and with many thousand
 * segments, with and without the hook side by side, what caches do to it averages out.
 */
final class Switch {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final int MOST_SEGMENTS = 200_000;

    enum Mode { ALTERNATE, ALWAYS_ON, ALWAYS_OFF }

    static volatile Mode mode = Mode.ALWAYS_ON;
    static volatile boolean recording;

    private record Segment(boolean on, long cpuNanos, long bytes) {}

    private final String component;
    private final TopologyContext context;
    private final List<ITaskHook> with;
    private final List<ITaskHook> without;
    private final Field hooks;
    private final int unitsPerSegment;
    private final List<Segment> segments = new ArrayList<>();
    private int left = 1;
    private boolean on = true;
    private boolean isSecondOfPair;
    private boolean recordThis;
    private long cpuAtStart;
    private long bytesAtStart;

    /** @param without what stands in the place of the present hooks while they are off */
    Switch(TopologyContext context, int unitsPerSegment, List<ITaskHook> without) {
        try {
            hooks = TopologyContext.class.getDeclaredField("hooks");
            hooks.setAccessible(true);
        } catch (NoSuchFieldException e) {
            throw new IllegalStateException(e);
        }
        this.component = context.getThisComponentId();
        this.context = context;
        this.with = context.getHooks();
        this.without = without;
        this.unitsPerSegment = unitsPerSegment;
    }

    /** To be called by the task's thread, once for each unit of its work. */
    void unit() {
        if (--left <= 0) {
            nextSegment();
        }
    }

    boolean isOn() {
        return on;
    }

    private void nextSegment() {
        if (recordThis && segments.size() < MOST_SEGMENTS) {
            long cpu = THREADS.getCurrentThreadCpuTime() - cpuAtStart;
            long bytes = THREADS.getThreadAllocatedBytes(Thread.currentThread().getId()) - bytesAtStart;
            segments.add(new Segment(on, cpu, bytes));
        }
        on = choose();
        try {
            hooks.set(context, on ? with : without);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
        left = unitsPerSegment;
        recordThis = recording && mode == Mode.ALTERNATE;
        bytesAtStart = THREADS.getThreadAllocatedBytes(Thread.currentThread().getId());
        cpuAtStart = THREADS.getCurrentThreadCpuTime();
    }

    /** In pairs of one with and one without, in random order. */
    private boolean choose() {
        if (mode != Mode.ALTERNATE) {
            isSecondOfPair = false;
            return mode == Mode.ALWAYS_ON;
        }
        boolean next = isSecondOfPair ? !on : ThreadLocalRandom.current().nextBoolean();
        isSecondOfPair = !isSecondOfPair;
        return next;
    }

    /** One line for each segment: {@code segment <component> <on|off> <units> <CPU ns> <bytes>}. */
    void print(PrintStream out) {
        for (Segment segment : List.copyOf(segments)) {
            out.println("segment " + component + " " + (segment.on() ? "on" : "off") + " " + unitsPerSegment + " "
                    + segment.cpuNanos() + " " + segment.bytes());
        }
    }
}
