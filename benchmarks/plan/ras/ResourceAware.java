import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.storm.Config;
import org.apache.storm.Constants;
import org.apache.storm.DaemonConfig;
import org.apache.storm.daemon.nimbus.Nimbus;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.SchedulerAssignment;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.resource.ResourceAwareScheduler;
import org.apache.storm.scheduler.resource.normalization.ResourceMetrics;
import org.apache.storm.testing.TestWordCounter;
import org.apache.storm.testing.TestWordSpout;
import org.apache.storm.topology.BoltDeclarer;
import org.apache.storm.topology.ComponentConfigurationDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.utils.Utils;

/**
 * Calls Storm's ResourceAwareScheduler on a cluster read from JSON (see storms_own.py) and writes what it decided:
 * {@code ResourceAware cluster.json answer.json}. The seconds are of {@code schedule} alone.
 *
 * <p>What each component needs is declared, since that is all this scheduler goes by: CPU the mean of its executors, and
 * so little memory that CPU alone decides.
 */
public final class ResourceAware {

    private static final double MEMORY_MB = 1.0;
    private static final double SUPERVISOR_MEMORY_MB = 1e6;
    private static final int TIMEOUT_SECONDS = 3600;
    private static final String USER = "bench";

    private ResourceAware() {
    }

    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        JsonNode json = mapper.readTree(new File(arguments[0]));
        Map<String, Object> conf = new HashMap<>(Utils.readDefaultConfig());
        conf.put(DaemonConfig.SCHEDULING_TIMEOUT_SECONDS_PER_TOPOLOGY, TIMEOUT_SECONDS);
        Map<String, TopologyDetails> topologies = new LinkedHashMap<>();
        json.get("topologies").forEach(each -> topologies.put(each.get("id").asText(), topology(each, conf)));
        StormMetricsRegistry metrics = new StormMetricsRegistry();
        Cluster cluster = new Cluster(new Nimbus.StandaloneINimbus(), new ResourceMetrics(metrics),
            supervisors(json.get("supervisors")), new HashMap<>(), new Topologies(topologies), conf);
        ResourceAwareScheduler scheduler = new ResourceAwareScheduler();
        scheduler.prepare(conf, metrics);
        long began = System.nanoTime();
        scheduler.schedule(cluster.getTopologies(), cluster);
        double seconds = (System.nanoTime() - began) / 1e9;
        mapper.writeValue(new File(arguments[1]), answer(mapper, cluster, seconds));
        System.exit(0);
    }

    private static Map<String, SupervisorDetails> supervisors(JsonNode json) {
        Map<String, SupervisorDetails> supervisors = new LinkedHashMap<>();
        for (JsonNode each : json) {
            String id = each.get("id").asText();
            List<Integer> ports = IntStream.range(0, each.get("ports").size())
                .mapToObj(at -> each.get("ports").get(at).asInt()).toList();
            supervisors.put(id, new SupervisorDetails(id, each.get("host").asText(), null, ports, Map.of(
                Constants.COMMON_CPU_RESOURCE_NAME, each.get("cpu_percent").asDouble(),
                Constants.COMMON_TOTAL_MEMORY_RESOURCE_NAME, SUPERVISOR_MEMORY_MB)));
        }
        return supervisors;
    }

    private static TopologyDetails topology(JsonNode json, Map<String, Object> defaults) {
        Map<String, Object> conf = new HashMap<>(defaults);
        conf.put(Config.TOPOLOGY_NAME, json.get("id").asText());
        conf.put(Config.TOPOLOGY_SUBMITTER_USER, USER);
        conf.put(Config.TOPOLOGY_WORKER_MAX_HEAP_SIZE_MB, SUPERVISOR_MEMORY_MB);
        conf.put(Config.TOPOLOGY_ACKER_RESOURCES_ONHEAP_MEMORY_MB, MEMORY_MB);
        conf.put(Config.TOPOLOGY_ACKER_EXECUTORS, 0);
        TopologyBuilder builder = new TopologyBuilder();
        Map<ExecutorDetails, String> components = new HashMap<>();
        for (JsonNode component : json.get("components")) {
            String name = component.get("name").asText();
            int first = component.get("first_task").asInt();
            int count = component.get("executors").asInt();
            double percent = component.get("cpu_percent").asDouble();
            IntStream.range(first, first + count).forEach(task -> components.put(new ExecutorDetails(task, task), name));
            if (component.get("kind").asText().equals("acker")) {
                conf.put(Config.TOPOLOGY_ACKER_EXECUTORS, count);
                conf.put(Config.TOPOLOGY_ACKER_CPU_PCORE_PERCENT, percent);
            } else {
                declare(builder, component, count, percent);
            }
        }
        StormTopology built = builder.createTopology();
        int workers = json.get("workers").asInt();
        return new TopologyDetails(json.get("id").asText(), conf, built, workers, components, USER);
    }

    private static void declare(TopologyBuilder builder, JsonNode component, int count, double percent) {
        String name = component.get("name").asText();
        ComponentConfigurationDeclarer<?> declared;
        if (component.get("kind").asText().equals("spout")) {
            declared = builder.setSpout(name, new TestWordSpout(), count);
        } else {
            BoltDeclarer bolt = builder.setBolt(name, new TestWordCounter(), count);
            component.get("parents").forEach(parent -> bolt.shuffleGrouping(parent.asText()));
            declared = bolt;
        }
        declared.setCPULoad(percent);
        declared.setMemoryLoad(MEMORY_MB);
    }

    private static ObjectNode answer(ObjectMapper mapper, Cluster cluster, double seconds) {
        ObjectNode answer = mapper.createObjectNode().put("seconds", seconds);
        ArrayNode places = answer.putArray("places");
        for (SchedulerAssignment assignment : cluster.getAssignments().values()) {
            assignment.getExecutorToSlot().forEach((executor, slot) -> places.addArray()
                .add(assignment.getTopologyId()).add(executor.getStartTask()).add(slot.getNodeId()).add(slot.getPort()));
        }
        ObjectNode statuses = answer.putObject("not_placed");
        for (TopologyDetails topology : cluster.getTopologies()) {
            if (!cluster.getUnassignedExecutors(topology).isEmpty()) {
                statuses.put(topology.getId(), cluster.getStatusMap().get(topology.getId()));
            }
        }
        return answer;
    }
}
