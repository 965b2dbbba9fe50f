package dev.stormoperator.scheduler;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.storm.Config;
import org.apache.storm.Constants;
import org.apache.storm.daemon.nimbus.Nimbus;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.SchedulerAssignmentImpl;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;
import org.apache.storm.scheduler.resource.normalization.ResourceMetrics;
import org.apache.storm.testing.TestWordCounter;
import org.apache.storm.testing.TestWordSpout;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;
import org.apache.storm.utils.Utils;

/** Storm's own scheduling objects, round after round, as Nimbus hands them to a scheduler. */
final class TestCluster {

    final Map<String, Object> conf = new HashMap<>(Utils.readDefaultConfig());
    final Set<String> blacklistedHosts = new HashSet<>();
    long nowMs;
    private final Map<String, SupervisorDetails> supervisors = new LinkedHashMap<>();
    private final Map<String, TopologyDetails> topologies = new LinkedHashMap<>();
    private final Map<String, Map<ExecutorDetails, WorkerSlot>> placed = new HashMap<>();
    private final Map<String, String> statuses = new HashMap<>();

    static ExecutorDetails executor(int start, int end) {
        return new ExecutorDetails(start, end);
    }

    static ExecutorDetails executor(int task) {
        return executor(task, task);
    }

    static WorkerSlot slot(String supervisor, int port) {
        return new WorkerSlot(supervisor, port);
    }

    /** Supervisors {@code s1..sN} on hosts {@code h1..hN} with ports 6700 and up. */
    static TestCluster of(int supervisors, int ports) {
        TestCluster cluster = new TestCluster();
        for (int i = 1; i <= supervisors; i++) {
            cluster.supervisor("s" + i, "h" + i, ports);
        }
        return cluster;
    }

    TestCluster supervisor(String id, String host, int ports) {
        List<Integer> all = java.util.stream.IntStream.range(6700, 6700 + ports).boxed().toList();
        supervisors.put(id, new SupervisorDetails(id, host, null, all, Map.of(
            Constants.COMMON_CPU_RESOURCE_NAME, 400.0, Constants.COMMON_TOTAL_MEMORY_RESOURCE_NAME, 8192.0)));
        return this;
    }

    /** A topology of one spout and one bolt, whose executors are [1,1], [2,2], ... */
    TestCluster topology(String id, int workers, int executors) {
        TopologyBuilder builder = new TopologyBuilder();
        int spouts = executors / 2;
        builder.setSpout("spout", new TestWordSpout(), spouts);
        builder.setBolt("bolt", new TestWordCounter(), executors - spouts).fieldsGrouping("spout", new Fields("word"));
        Map<ExecutorDetails, String> components = new HashMap<>();
        for (int task = 1; task <= executors; task++) {
            components.put(executor(task), task <= spouts ? "spout" : "bolt");
        }
        Map<String, Object> topologyConf = new HashMap<>(conf);
        topologyConf.put(Config.TOPOLOGY_NAME, id);
        topologyConf.put(Config.TOPOLOGY_SUBMITTER_USER, "someone");
        topologies.put(id, new TopologyDetails(id, topologyConf, builder.createTopology(), workers, components, "someone"));
        return this;
    }

    void kill(String topologyId) {
        topologies.remove(topologyId);
        placed.remove(topologyId);
    }

    /** The machine is gone and its executors have timed out. */
    void die(String supervisorId) {
        supervisors.remove(supervisorId);
        placed.values().forEach(slotOf -> slotOf.values().removeIf(slot -> slot.getNodeId().equals(supervisorId)));
    }

    /** Only the supervisor's daemon is gone, workers run on. */
    void loseDaemon(String supervisorId) {
        supervisors.remove(supervisorId);
    }

    void place(String topologyId, WorkerSlot slot, ExecutorDetails... executors) {
        for (ExecutorDetails executor : executors) {
            placed.computeIfAbsent(topologyId, id -> new HashMap<>()).put(executor, slot);
        }
    }

    /** Nimbus shows a topology that is being rebalanced without its assignment. */
    void hideAssignment(String topologyId) {
        placed.remove(topologyId);
    }

    Cluster view() {
        Map<String, SchedulerAssignmentImpl> assignments = new HashMap<>();
        placed.forEach((id, slotOf) -> assignments.put(id, new SchedulerAssignmentImpl(id, slotOf, null, null)));
        Cluster cluster = new Cluster(new Nimbus.StandaloneINimbus(),
            new ResourceMetrics(new StormMetricsRegistry()), supervisors, assignments, new Topologies(topologies), conf);
        cluster.setBlacklistedHosts(blacklistedHosts);
        cluster.setStatusMap(statuses);
        return cluster;
    }

    /** As after a start of Nimbus: nothing remembered. */
    PlanScheduler scheduler(PlanStore store) {
        PlanScheduler scheduler = new PlanScheduler(store, () -> nowMs);
        scheduler.prepare(conf, new StormMetricsRegistry());
        return scheduler;
    }

    /** One round: what the scheduler decides is where the executors then are. */
    Cluster round(IScheduler scheduler) {
        Cluster cluster = view();
        scheduler.schedule(cluster.getTopologies(), cluster);
        placed.clear();
        cluster.getAssignments().forEach((id, assignment) ->
            placed.put(id, new HashMap<>(assignment.getExecutorToSlot())));
        statuses.putAll(cluster.getStatusMap());
        return cluster;
    }

    String status(String topologyId) {
        return statuses.get(topologyId);
    }

    Map<ExecutorDetails, WorkerSlot> placedOf(String topologyId) {
        return placed.getOrDefault(topologyId, Map.of());
    }

    /** {@code {"s1:6700": [1, 2]}}: first tasks by slot, to compare at a glance. */
    Map<String, Collection<Integer>> workers(String topologyId) {
        Map<String, Collection<Integer>> workers = new TreeMap<>();
        placedOf(topologyId).forEach((executor, slot) -> workers
            .computeIfAbsent(slot.getId(), id -> new TreeSet<>()).add(executor.getStartTask()));
        Map<String, Collection<Integer>> lists = new TreeMap<>();
        workers.forEach((slot, tasks) -> lists.put(slot, List.copyOf(tasks)));
        return lists;
    }

    /** A plan document; each worker as {@code "s1 6700 1 2 3"}: supervisor, port, tasks of its executors. */
    static String plan(String planId, String topologyId, String... workers) {
        StringBuilder json = new StringBuilder();
        for (String worker : workers) {
            String[] parts = worker.split(" ");
            List<String> executors = new java.util.ArrayList<>();
            for (int i = 2; i < parts.length; i++) {
                executors.add("[" + parts[i] + "," + parts[i] + "]");
            }
            json.append(json.isEmpty() ? "" : ",").append("{\"supervisor_id\":\"").append(parts[0])
                .append("\",\"host\":\"").append(parts[0].replace('s', 'h')).append("\",\"port\":").append(parts[1])
                .append(",\"executors\":").append(executors).append("}");
        }
        return "{\"version\":1,\"plan_id\":\"" + planId + "\",\"topology_id\":\"" + topologyId + "\",\"workers\":["
            + json + "]}";
    }
}
