package dev.stormoperator.scheduler;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.SchedulerAssignmentImpl;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets another scheduler place what plans leave over.
 *
 * <p>That scheduler sees the cluster without the slots and resources that plans hold, and of a planned topology only
 * the executors that have no place. Given the whole cluster it would move planned workers: Storm's default scheduler
 * spreads every topology that has fewer workers than it asked for, the resource-aware one evicts.
 */
final class Fallback {

    private static final Logger LOG = LoggerFactory.getLogger(Fallback.class);

    private final IScheduler scheduler;

    Fallback(IScheduler scheduler) {
        this.scheduler = scheduler;
    }

    /**
     * The whole placement.
     *
     * @param slotOf   by topology id
     * @param statuses what the scheduler says about the topologies that it saw
     * @param problem  why the scheduler failed, or null; then topologies without a pinned executor are where they were,
     *                 and what is not pinned of the others, whose slot a plan may have taken, is nowhere
     */
    record Completed(Map<String, Map<ExecutorDetails, WorkerSlot>> slotOf, Map<String, String> statuses,
                     String problem) {
    }

    /**
     * Completes {@code pinned} without touching {@code cluster}.
     *
     * @param pinned by topology id, where executors must be; a topology without an entry is left to the scheduler whole
     */
    Completed complete(Cluster cluster, Map<String, Map<ExecutorDetails, WorkerSlot>> pinned) {
        Cluster rest = withoutPinned(cluster, pinned);
        String problem = null;
        try {
            scheduler.schedule(rest.getTopologies(), rest);
        } catch (Throwable e) {
            LOG.error("Fallback scheduler {} failed, what it should place stays as it was", scheduler, e);
            problem = e.toString();
        }
        Map<String, Map<ExecutorDetails, WorkerSlot>> slotOf = new HashMap<>();
        for (TopologyDetails topology : cluster.getTopologies()) {
            String id = topology.getId();
            Map<ExecutorDetails, WorkerSlot> places = new HashMap<>(pinned.getOrDefault(id, Map.of()));
            if (problem == null) {
                places.putAll(Placement.current(rest, id));
                places.putAll(pinned.getOrDefault(id, Map.of()));
            } else if (!pinned.containsKey(id)) {
                places.putAll(Placement.current(cluster, id));
            }
            slotOf.put(id, places);
        }
        if (problem == null && rest.getAvailableSlots().isEmpty()) {
            pinned.keySet().forEach(id -> joinSmallestWorker(cluster.getTopologies().getById(id), slotOf.get(id)));
        }
        return new Completed(slotOf, Map.copyOf(rest.getStatusMap()), problem);
    }

    /** With no free slot left, running beside its siblings is better for an executor than not running. */
    private static void joinSmallestWorker(TopologyDetails topology, Map<ExecutorDetails, WorkerSlot> places) {
        Set<ExecutorDetails> homeless = new HashSet<>(topology.getExecutors());
        homeless.removeAll(places.keySet());
        Placement.workers(places).entrySet().stream()
            .min(Comparator.<Map.Entry<WorkerSlot, Set<ExecutorDetails>>>comparingInt(worker -> worker.getValue().size())
                .thenComparing(worker -> worker.getKey().getId()))
            .ifPresent(worker -> homeless.forEach(executor -> places.put(executor, worker.getKey())));
    }

    private static Cluster withoutPinned(Cluster cluster, Map<String, Map<ExecutorDetails, WorkerSlot>> pinned) {
        Map<String, TopologyDetails> topologies = new HashMap<>();
        Map<String, SchedulerAssignmentImpl> assignments = new HashMap<>();
        for (TopologyDetails topology : cluster.getTopologies()) {
            String id = topology.getId();
            if (!pinned.containsKey(id)) {
                topologies.put(id, topology);
                assignments.put(id, assignment(id, Placement.current(cluster, id)));
            } else if (!pinned.get(id).keySet().containsAll(topology.getExecutors())) {
                topologies.put(id, homelessPartOf(topology, pinned.get(id)));
            }
        }
        Cluster rest = new Cluster(cluster.getINimbus(), cluster.getResourceMetrics(),
            supervisorsWithout(cluster, pinned), assignments, new Topologies(topologies), cluster.getConf());
        rest.setBlacklistedHosts(cluster.getBlacklistedHosts());
        rest.setGreyListedSupervisors(new HashSet<>(cluster.getGreyListedSupervisors()));
        rest.setStatusMap(cluster.getStatusMap());
        return rest;
    }

    private static TopologyDetails homelessPartOf(TopologyDetails topology, Map<ExecutorDetails, WorkerSlot> pinned) {
        List<ExecutorDetails> homeless = new ArrayList<>(topology.getExecutors());
        homeless.removeAll(pinned.keySet());
        int workers = Math.max(1, topology.getNumWorkers() - Placement.workers(pinned).size());
        return new TopologyDetails(topology.getId(), topology.getConf(), topology.getTopology(), workers,
            topology.selectExecutorToComponent(homeless), topology.getLaunchTime(), topology.getTopologySubmitter());
    }

    /** Supervisors as they would be if they were as small as what plans leave of them. */
    private static Map<String, SupervisorDetails> supervisorsWithout(
        Cluster cluster, Map<String, Map<ExecutorDetails, WorkerSlot>> pinned) {
        Map<String, SchedulerAssignmentImpl> held = new HashMap<>();
        pinned.forEach((id, slotOf) -> held.put(id, assignment(id, slotOf)));
        Cluster onlyPinned = new Cluster(cluster.getINimbus(), cluster.getResourceMetrics(), cluster.getSupervisors(),
            held, cluster.getTopologies(), cluster.getConf());
        Map<String, SupervisorDetails> remaining = new HashMap<>();
        cluster.getSupervisors().forEach((id, supervisor) -> remaining.put(id, new SupervisorDetails(
            id, supervisor.getHost(), supervisor.getSchedulerMeta(), onlyPinned.getAvailablePorts(supervisor),
            onlyPinned.getAvailableResources(supervisor).toNormalizedMap())));
        return remaining;
    }

    private static SchedulerAssignmentImpl assignment(String topologyId, Map<ExecutorDetails, WorkerSlot> slotOf) {
        return new SchedulerAssignmentImpl(topologyId, slotOf, null, null);
    }
}
