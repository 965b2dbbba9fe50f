package dev.stormoperator.scheduler;

import java.util.Map;
import org.apache.storm.scheduler.DefaultScheduler;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.resource.ResourceAwareScheduler;

/** The scheduler for what plans leave over, by its name in storm.yaml. */
final class FallbackSchedulers {

    static final String KEY = "storm_operator.fallback.scheduler";

    private FallbackSchedulers() {
    }

    /** {@code default}, {@code resource-aware}, or the name of a class that implements {@link IScheduler}. */
    static IScheduler fromConf(Map<String, Object> conf) {
        Object name = conf.getOrDefault(KEY, "default");
        if ("default".equals(name)) {
            return new DefaultScheduler();
        }
        if ("resource-aware".equals(name)) {
            return new ResourceAwareScheduler();
        }
        try {
            Class<? extends IScheduler> type = Class.forName(String.valueOf(name)).asSubclass(IScheduler.class);
            if (type != PlanScheduler.class) {
                return type.getDeclaredConstructor().newInstance();
            }
        } catch (ReflectiveOperationException | ClassCastException e) {
            throw wrong(name, e);
        }
        throw wrong(name, null);
    }

    private static IllegalArgumentException wrong(Object name, Exception cause) {
        return new IllegalArgumentException(KEY + ": \"" + name + "\" should be default, resource-aware, or the name of "
            + "another class that implements " + IScheduler.class.getName() + " and has a constructor without arguments",
            cause);
    }
}
