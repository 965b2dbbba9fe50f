package dev.stormoperator.scheduler;

import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;

/**
 * Finds the slots that plans mean in the cluster as it is now, and says for each executor why it cannot have its own.
 *
 * <p>Storm checks nothing of this: it would run a port that the supervisor does not offer, and an unknown supervisor
 * breaks {@code getTopologyInfo}.
 */
final class PlanResolver {

    private final Cluster cluster;
    private final TimedOutSlots timedOut;
    private final Map<WorkerSlot, String> ownerOf = new HashMap<>();

    private PlanResolver(Cluster cluster, TimedOutSlots timedOut) {
        this.cluster = cluster;
        this.timedOut = timedOut;
    }

    /**
     * Resolves the plans of several topologies together, since one may take a slot that another leaves.
     *
     * @param plans at most one for a topology; a plan for a topology that the cluster does not know is left out
     * @return by topology id, sorted
     */
    static SortedMap<String, Resolution> resolve(Cluster cluster, Collection<Plan> plans, TimedOutSlots timedOut) {
        return new PlanResolver(cluster, timedOut).resolve(plans);
    }

    private SortedMap<String, Resolution> resolve(Collection<Plan> plans) {
        List<Plan> ordered = plans.stream()
            .filter(plan -> cluster.getTopologies().getById(plan.topologyId()) != null)
            .sorted(Comparator.comparing(Plan::topologyId))
            .toList();
        claimForTopologiesWithout(ordered);
        // Who lives in a slot and may stay there goes before those who want to come.
        ordered.forEach(plan -> claim(plan, cluster.getUsedSlotsByTopologyId(plan.topologyId())::contains));
        ordered.forEach(plan -> claim(plan, slot -> true));
        SortedMap<String, Resolution> resolutions = new TreeMap<>();
        ordered.forEach(plan -> resolutions.put(plan.topologyId(), resolve(plan)));
        return resolutions;
    }

    private void claimForTopologiesWithout(List<Plan> plans) {
        Set<String> planned = plans.stream().map(Plan::topologyId).collect(Collectors.toSet());
        for (TopologyDetails topology : cluster.getTopologies()) {
            if (!planned.contains(topology.getId())) {
                cluster.getUsedSlotsByTopologyId(topology.getId()).forEach(slot -> ownerOf.put(slot, topology.getId()));
            }
        }
    }

    private void claim(Plan plan, Predicate<WorkerSlot> wanted) {
        plan.workers().stream().map(worker -> target(worker).slot()).filter(wanted)
            .forEach(slot -> ownerOf.putIfAbsent(slot, plan.topologyId()));
    }

    private Resolution resolve(Plan plan) {
        Set<ExecutorDetails> unnamed =
            new HashSet<>(cluster.getTopologies().getById(plan.topologyId()).getExecutors());
        Map<ExecutorDetails, WorkerSlot> current = Placement.current(cluster, plan.topologyId());
        Map<ExecutorDetails, WorkerSlot> placed = new HashMap<>();
        SortedMap<ExecutorDetails, String> unplaced = new TreeMap<>(Resolution.BY_TASKS);
        Set<WorkerSlot> used = new HashSet<>();
        for (Plan.Worker worker : plan.workers()) {
            Target target = target(worker, plan.topologyId(), used);
            used.add(target.slot());
            for (ExecutorDetails executor : worker.executors()) {
                // A worker that lives where the plan wants it stays, even while its supervisor's daemon is away.
                boolean already = target.slot().equals(current.get(executor));
                if (!unnamed.remove(executor)) {
                    unplaced.put(executor, "the topology has no such executor");
                } else if (target.problem() == null || already) {
                    placed.put(executor, target.slot());
                } else {
                    unplaced.put(executor, target.problem());
                }
            }
        }
        unnamed.forEach(executor -> unplaced.put(executor, "the plan does not name it"));
        return new Resolution(plan, placed, unplaced);
    }

    /** The slot that a worker of the plan means, and what keeps new executors out of it (null: nothing). */
    private record Target(WorkerSlot slot, String problem) {
    }

    private Target target(Plan.Worker worker, String topologyId, Set<WorkerSlot> used) {
        Target target = target(worker);
        if (target.problem() != null) {
            return target;
        }
        String name = "slot " + worker.host() + ":" + worker.port();
        String owner = ownerOf.get(target.slot());
        if (!topologyId.equals(owner)) {
            return new Target(target.slot(), name + " is occupied by topology " + owner);
        }
        if (used.contains(target.slot())) {
            return new Target(target.slot(), name + " is what another worker of the plan resolves to");
        }
        return timedOut.whyAvoided(topologyId, target.slot())
            .map(reason -> new Target(target.slot(), name + " " + reason))
            .orElse(target);
    }

    private Target target(Plan.Worker worker) {
        WorkerSlot named = new WorkerSlot(worker.supervisorId(), worker.port());
        SupervisorDetails supervisor = cluster.getSupervisorById(worker.supervisorId());
        if (supervisor == null) {
            List<SupervisorDetails> sameHost = cluster.getSupervisorsByHost(worker.host());
            if (sameHost.isEmpty()) {
                return new Target(named, "supervisor " + worker.host() + " is dead");
            }
            supervisor = sameHost.stream()
                .filter(candidate -> candidate.getAllPorts().contains(worker.port()))
                .min(Comparator.comparing(SupervisorDetails::getId))
                .orElse(null);
        }
        if (supervisor == null) {
            return new Target(named, "supervisor " + worker.supervisorId() + " is dead and no other on host "
                + worker.host() + " has port " + worker.port());
        }
        WorkerSlot slot = new WorkerSlot(supervisor.getId(), worker.port());
        if (cluster.isBlackListed(supervisor.getId())) {
            return new Target(slot, "supervisor " + worker.host() + " is blacklisted");
        }
        if (!supervisor.getAllPorts().contains(worker.port())) {
            // Either it never had that port, or a worker there has timed out: Storm then hides the port for one round.
            return new Target(slot, "supervisor " + worker.host() + " offers no port " + worker.port()
                + " in this round, but " + new TreeSet<>(supervisor.getAllPorts()));
        }
        return new Target(slot, null);
    }
}
