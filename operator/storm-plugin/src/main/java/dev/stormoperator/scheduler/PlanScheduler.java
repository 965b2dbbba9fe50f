package dev.stormoperator.scheduler;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.SchedulerAssignment;
import org.apache.storm.scheduler.SchedulerAssignmentImpl;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Nimbus' scheduler under storm-operator ({@code storm.scheduler}): puts plans in force, changing only the slots that
 * differ, and leaves everything else to the scheduler named by {@value FallbackSchedulers#KEY}.
 *
 * <p>Never throws out of {@link #schedule}: whatever fails, the cluster is left as it was and the topologies' status
 * says why.
 */
public final class PlanScheduler implements IScheduler {

    private static final Logger LOG = LoggerFactory.getLogger(PlanScheduler.class);

    private final TimedOutSlots timedOut;
    private PlanStore store;
    private PlanBook book;
    private IScheduler fallback;

    /** Used by Nimbus; {@link #prepare} opens the store. */
    public PlanScheduler() {
        this(null);
    }

    PlanScheduler(PlanStore store) {
        this(store, () -> TimeUnit.NANOSECONDS.toMillis(System.nanoTime()));
    }

    PlanScheduler(PlanStore store, LongSupplier clockMs) {
        this.store = store;
        this.timedOut = new TimedOutSlots(clockMs);
    }

    /**
     * Reads the settings.
     *
     * @throws IllegalArgumentException when the fallback scheduler is none; Nimbus then does not start
     */
    @Override
    public void prepare(Map<String, Object> conf, StormMetricsRegistry metricsRegistry) {
        fallback = FallbackSchedulers.fromConf(conf);
        fallback.prepare(conf, metricsRegistry);
        if (store == null) {
            store = new ZooKeeperPlanStore(conf);
        }
        book = new PlanBook(store);
        LOG.info("What plans leave over is placed by {}", fallback.getClass().getName());
    }

    @Override
    public void schedule(Topologies topologies, Cluster cluster) {
        try {
            SortedMap<String, PlanBook.Entry> entries = book.read(new HashSet<>(topologies.getAllIds()));
            List<Plan> plans = entries.values().stream().map(PlanBook.Entry::plan).filter(Objects::nonNull).toList();
            timedOut.look(cluster, plans);
            SortedMap<String, Resolution> resolutions = PlanResolver.resolve(cluster, plans, timedOut);
            Map<String, Map<ExecutorDetails, WorkerSlot>> pinned = pin(cluster, entries, resolutions);
            Fallback.Completed whole = new Fallback(fallback).complete(cluster, pinned);
            change(cluster, whole.slotOf());
            timedOut.remember(resolutions.values());
            report(cluster, entries, resolutions, whole);
        } catch (Throwable e) {
            LOG.error("This round of scheduling failed, every executor stays where it was", e);
            topologies.getAllIds().forEach(id ->
                setStatus(cluster, id, "Plan scheduler failed, nothing was changed: " + e));
        }
    }

    /** The executors that the fallback must not move. */
    private static Map<String, Map<ExecutorDetails, WorkerSlot>> pin(
        Cluster cluster, Map<String, PlanBook.Entry> entries, Map<String, Resolution> resolutions) {
        Map<String, Map<ExecutorDetails, WorkerSlot>> pinned = new HashMap<>();
        entries.forEach((id, entry) -> {
            Map<ExecutorDetails, WorkerSlot> current = Placement.current(cluster, id);
            if (resolutions.containsKey(id)) {
                pinned.put(id, withThoseWhoMayStay(id, current, resolutions));
            } else if (entry.mustNotMove() && !current.isEmpty()) {
                pinned.put(id, current);
            }
        });
        return pinned;
    }

    /** An executor that cannot go where its plan says stays where it is, unless another topology's plan wants that slot. */
    private static Map<ExecutorDetails, WorkerSlot> withThoseWhoMayStay(
        String id, Map<ExecutorDetails, WorkerSlot> current, Map<String, Resolution> resolutions) {
        Set<WorkerSlot> taken = resolutions.values().stream()
            .filter(other -> !other.plan().topologyId().equals(id))
            .flatMap(other -> other.placed().values().stream())
            .collect(Collectors.toSet());
        Map<ExecutorDetails, WorkerSlot> pinned = new HashMap<>(resolutions.get(id).placed());
        current.forEach((executor, slot) -> {
            if (!taken.contains(slot)) {
                pinned.putIfAbsent(executor, slot);
            }
        });
        return pinned;
    }

    /** Changes the slots that differ, of all topologies or of none. */
    private static void change(Cluster cluster, Map<String, Map<ExecutorDetails, WorkerSlot>> desired) {
        Map<String, SchedulerAssignment> before = cluster.getAssignments().values().stream()
            .collect(Collectors.toMap(SchedulerAssignment::getTopologyId, SchedulerAssignmentImpl::new));
        Map<String, Placement> changes = new HashMap<>();
        desired.forEach((id, slotOf) -> changes.put(id, Placement.between(Placement.current(cluster, id), slotOf)));
        try {
            // All slots are freed before any is given: topologies may swap them.
            changes.values().forEach(change -> cluster.freeSlots(change.free()));
            changes.forEach((id, change) -> change.assign().forEach((slot, executors) -> {
                LOG.info("{} on {}: {}", id, slot, executors);
                cluster.assign(slot, id, executors);
            }));
        } catch (Throwable e) {
            cluster.setAssignments(before, true);
            throw e;
        }
    }

    private void report(Cluster cluster, Map<String, PlanBook.Entry> entries, Map<String, Resolution> resolutions,
                        Fallback.Completed whole) {
        StatusText statuses = new StatusText(cluster, whole, fallback.getClass().getSimpleName());
        entries.forEach((id, entry) ->
            statuses.of(id, entry, resolutions.get(id)).ifPresent(status -> setStatus(cluster, id, status)));
        try {
            if (entries.values().stream().allMatch(entry -> entry.unreadable() == null)) {
                entries.forEach((id, entry) -> acknowledgement(entry, id, resolutions.get(id)).ifPresent(this::write));
                store.forgetDeletedTopologies(entries.keySet());
            }
        } catch (RuntimeException e) {
            LOG.warn("Plans are in force but could not be acknowledged; the next round tries again", e);
        }
    }

    private static Optional<Acknowledgement> acknowledgement(PlanBook.Entry entry, String id, Resolution resolution) {
        if (entry.rejection() != null) {
            return Optional.of(Acknowledgement.rejected(id, entry.rejection()));
        }
        return Optional.ofNullable(resolution).map(Acknowledgement::of);
    }

    /** Compares with the store, not with memory: another Nimbus may have led in between. */
    private void write(Acknowledgement acknowledgement) {
        String id = acknowledgement.topologyId();
        if (store.readAcknowledgement(id).filter(acknowledgement::saysTheSameAs).isEmpty()) {
            LOG.info("Plan of {}: {}", id, acknowledgement);
            store.writeAcknowledgement(id, acknowledgement.toJson(System.currentTimeMillis()));
        }
    }

    /** Storm logs each status that is set: only news. */
    private static void setStatus(Cluster cluster, String topologyId, String status) {
        if (!status.equals(cluster.getStatus(topologyId))) {
            cluster.setStatus(topologyId, status);
        }
    }

    @Override
    public void nodeAssignmentSent(String node, boolean successful) {
        fallback.nodeAssignmentSent(node, successful);
    }

    @Override
    @SuppressWarnings("rawtypes")
    public Map config() {
        return fallback.config();
    }

    @Override
    public void cleanup() {
        fallback.cleanup();
        store.close();
    }
}
