package dev.stormoperator.metrics;

import java.util.AbstractList;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.storm.hooks.ITaskHook;
import org.apache.storm.task.TopologyContext;

/** The hook, with a switch in each task; the components of the benchmark drive theirs, Storm's own are driven here. */
public final class SwitchableHook extends TrafficHook {
    private static final int UNITS_PER_SEGMENT = 2000;
    private static final int CALLS_PER_SEGMENT = 3 * UNITS_PER_SEGMENT;
    private static final Map<Integer, Switch> SWITCHES = new ConcurrentHashMap<>();

    static Switch ofTask(int task) {
        return SWITCHES.get(task);
    }

    static Iterable<Switch> all() {
        return SWITCHES.values();
    }

    @Override
    public void prepare(Map<String, Object> conf, TopologyContext context) {
        super.prepare(conf, context);
        int task = context.getThisTaskId();
        if (task < 0) {
            return;
        }
        if (!context.getThisComponentId().startsWith("__")) {
            SWITCHES.put(task, new Switch(context, UNITS_PER_SEGMENT, new ArrayList<>()));
        } else {
            driveItself(context, task);
        }
    }

    /** Storm's own components do not call us, so that their list of hooks must; with the hook and without alike. */
    private static void driveItself(TopologyContext context, int task) {
        try {
            var field = TopologyContext.class.getDeclaredField("hooks");
            field.setAccessible(true);
            List<ITaskHook> gated = context.getHooks();
            SwitchedList list = new SwitchedList(gated);
            field.set(context, list);
            list.control = new Switch(context, CALLS_PER_SEGMENT, list);
            SWITCHES.put(task, list.control);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static final class SwitchedList extends AbstractList<ITaskHook> {
        private final List<ITaskHook> gated;
        private Switch control;

        SwitchedList(List<ITaskHook> gated) {
            this.gated = gated;
        }

        @Override
        public boolean isEmpty() {
            control.unit();
            return !control.isOn() || gated.isEmpty();
        }

        @Override
        public int size() {
            return gated.size();
        }

        @Override
        public ITaskHook get(int index) {
            return gated.get(index);
        }

        @Override
        public void add(int index, ITaskHook hook) {
            gated.add(index, hook);
        }
    }
}
