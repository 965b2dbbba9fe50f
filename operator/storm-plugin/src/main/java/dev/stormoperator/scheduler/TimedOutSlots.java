package dev.stormoperator.scheduler;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.WorkerSlot;

/**
 * Remembers in which slots of a plan workers timed out, and for how long nobody is sent there.
 *
 * <p>Nimbus hides such a port for one round, then offers it again. Executors are called home after a first time-out:
 * their worker may merely have been silent. But where no worker can start (its disk is full, say) each call costs them
 * {@code nimbus.task.launch.secs} without a worker, so after further ones the pauses grow.
 */
final class TimedOutSlots {

    private static final long MINUTE_MS = 60_000;
    private static final long FIRST_PAUSE_MS = 5 * MINUTE_MS;
    private static final long LONGEST_PAUSE_MS = 60 * MINUTE_MS;

    private final LongSupplier clockMs;
    private final Map<String, OfPlan> byTopology = new HashMap<>();

    /** {@code clockMs} may begin anywhere, but must not jump. */
    TimedOutSlots(LongSupplier clockMs) {
        this.clockMs = clockMs;
    }

    /** The slots where the last round put executors as planned, and those where workers timed out under this plan. */
    private record OfPlan(String planId, Set<WorkerSlot> used, Map<WorkerSlot, TimeOuts> timeOuts) {
    }

    private record TimeOuts(int count, long pauseMs, long untilMs) {

        static TimeOuts first(long nowMs) {
            return new TimeOuts(1, 0, nowMs);
        }

        /** One that comes long after the last pause has nothing to do with it: a worker has run there meanwhile. */
        TimeOuts again(long nowMs) {
            if (nowMs - untilMs > LONGEST_PAUSE_MS) {
                return first(nowMs);
            }
            long pause = pauseMs == 0 ? FIRST_PAUSE_MS : Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
            return new TimeOuts(count + 1, pause, nowMs + pause);
        }
    }

    /** Notes, before a round, what has timed out since the last one. What is known of other plans is forgotten. */
    void look(Cluster cluster, Collection<Plan> plans) {
        Map<String, String> planIds = plans.stream().collect(Collectors.toMap(Plan::topologyId, Plan::planId));
        byTopology.entrySet().removeIf(known -> !known.getValue().planId().equals(planIds.get(known.getKey())));
        long nowMs = clockMs.getAsLong();
        byTopology.forEach((topologyId, ofPlan) -> {
            Set<WorkerSlot> alive = Set.copyOf(Placement.current(cluster, topologyId).values());
            ofPlan.used().removeIf(slot -> {
                boolean timedOut = !alive.contains(slot) && isHidden(cluster, slot);
                if (timedOut) {
                    ofPlan.timeOuts().merge(slot, TimeOuts.first(nowMs), (before, first) -> before.again(nowMs));
                }
                return timedOut;
            });
        });
    }

    /** Where the whole supervisor is gone, nothing is said about this slot. */
    private static boolean isHidden(Cluster cluster, WorkerSlot slot) {
        SupervisorDetails supervisor = cluster.getSupervisorById(slot.getNodeId());
        return supervisor != null && !supervisor.getAllPorts().contains(slot.getPort());
    }

    /** Why executors of {@code topologyId} are not sent to {@code slot} now; it reads the same for the whole pause. */
    Optional<String> whyAvoided(String topologyId, WorkerSlot slot) {
        return Optional.ofNullable(byTopology.get(topologyId))
            .map(ofPlan -> ofPlan.timeOuts().get(slot))
            .filter(timeOuts -> clockMs.getAsLong() < timeOuts.untilMs())
            .map(timeOuts -> "is left alone for " + timeOuts.pauseMs() / MINUTE_MS + " minutes: under this plan workers"
                + " timed out there " + timeOuts.count() + " times");
    }

    /** Takes note of where a round has put executors as planned. */
    void remember(Collection<Resolution> resolutions) {
        resolutions.forEach(resolution -> {
            Plan plan = resolution.plan();
            OfPlan known = byTopology.get(plan.topologyId());
            byTopology.put(plan.topologyId(), new OfPlan(plan.planId(), new HashSet<>(resolution.placed().values()),
                known == null ? new HashMap<>() : known.timeOuts()));
        });
    }
}
