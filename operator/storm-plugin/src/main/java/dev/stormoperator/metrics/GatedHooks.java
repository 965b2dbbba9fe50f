package dev.stormoperator.metrics;

import java.lang.reflect.Field;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.List;
import org.apache.storm.hooks.ITaskHook;
import org.apache.storm.task.TopologyContext;

/**
 * A task's list of hooks that says at most calls that it is empty.
 *
 * <p>Storm asks {@code hooks.isEmpty()} at every emit, execute and ack, and allocates an info object for each as soon as
 * it is not; that allocation is nearly all that a hook costs. This list says "not empty" only for the calls that its
 * gate lets through. As soon as it holds any other hook it tells the truth, because that hook must see every call;
 * {@link TrafficHook} then asks the gate itself.
 */
final class GatedHooks extends AbstractList<ITaskHook> {
    private static final String FIELD = "hooks";

    private final SamplingGate gate;
    private final List<ITaskHook> hooks;
    private final boolean closed;
    private boolean onlyOurs;

    private GatedHooks(List<ITaskHook> present, SamplingGate gate) {
        this.gate = gate;
        this.closed = gate.isClosed();
        this.hooks = new ArrayList<>(present);
        lookWhoIsHere();
    }

    /**
     * Puts a gated list in the place of the context's own.
     *
     * @throws ReflectiveOperationException or a RuntimeException if this Storm keeps its hooks otherwise
     */
    static GatedHooks install(TopologyContext context, SamplingGate gate) throws ReflectiveOperationException {
        Field field = TopologyContext.class.getDeclaredField(FIELD);
        field.setAccessible(true);
        GatedHooks gated = new GatedHooks(context.getHooks(), gate);
        field.set(context, gated);
        return gated;
    }

    /** Whether this list itself skips calls, so that those which get to a hook have passed the gate already. */
    boolean filters() {
        return onlyOurs;
    }

    private void lookWhoIsHere() {
        onlyOurs = hooks.stream().allMatch(hook -> hook instanceof TrafficHook);
    }

    @Override
    public boolean isEmpty() {
        return onlyOurs ? closed || !gate.pass() : hooks.isEmpty();
    }

    @Override
    public int size() {
        return hooks.size();
    }

    @Override
    public ITaskHook get(int index) {
        return hooks.get(index);
    }

    @Override
    public ITaskHook set(int index, ITaskHook hook) {
        ITaskHook before = hooks.set(index, hook);
        lookWhoIsHere();
        return before;
    }

    @Override
    public void add(int index, ITaskHook hook) {
        hooks.add(index, hook);
        lookWhoIsHere();
    }

    @Override
    public ITaskHook remove(int index) {
        ITaskHook removed = hooks.remove(index);
        lookWhoIsHere();
        return removed;
    }
}
