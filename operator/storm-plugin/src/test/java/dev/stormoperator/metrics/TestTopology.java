package dev.stormoperator.metrics;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.storm.Config;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.hooks.info.BoltExecuteInfo;
import org.apache.storm.hooks.info.EmitInfo;
import org.apache.storm.hooks.info.SpoutAckInfo;
import org.apache.storm.metrics2.StormMetricRegistry;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.TupleImpl;
import org.apache.storm.tuple.Values;

/** A spout (task 1) and a bolt (tasks 2 and 3, one executor) in one worker, and the calls that Storm makes to hooks. */
final class TestTopology {
    static final String ID = "test-1-1767268800";
    private static final Map<Integer, String> COMPONENTS = Map.of(1, "source", 2, "bolt", 3, "bolt");
    private static final Map<String, List<Integer>> TASKS = Map.of("source", List.of(1), "bolt", List.of(2, 3));
    private static final Map<String, Map<String, Fields>> STREAMS =
            Map.of("source", Map.of("default", new Fields("x")), "bolt", Map.of());

    private final Map<String, Object> conf;
    private final int port;
    private final StormMetricRegistry registry;
    private final Map<String, Map<String, Object>> executorData = new HashMap<>();

    TestTopology(Map<String, Object> conf, int port, StormMetricRegistry registry) {
        this.conf = conf;
        this.port = port;
        this.registry = registry;
    }

    static Map<String, Object> conf() {
        Map<String, Object> conf = new HashMap<>();
        conf.put(Config.STORM_ID, ID);
        conf.put(Config.STORM_LOCAL_HOSTNAME, "10.77.0.11");
        conf.put(Config.TOPOLOGY_ACKER_EXECUTORS, 1);
        conf.put(Config.TOPOLOGY_STATS_SAMPLE_RATE, 0.05);
        return conf;
    }

    TopologyContext task(int id) {
        Map<String, Object> shared = executorData.computeIfAbsent(COMPONENTS.get(id), any -> new HashMap<>());
        return new TopologyContext(
                topology(), conf, COMPONENTS, TASKS, STREAMS, new HashMap<>(), ID, "code", "pids", id, port,
                List.of(1, 2, 3), Map.of(), Map.of(), shared, new HashMap<>(), new AtomicBoolean(), registry);
    }

    private static StormTopology topology() {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("source", new Spout());
        builder.setBolt("bolt", new Bolt(), 1).setNumTasks(2).shuffleGrouping("source");
        return builder.createTopology();
    }

    static void emit(TopologyContext context, Integer... targets) {
        if (!context.getHooks().isEmpty()) {
            new EmitInfo(new Values("v"), "default", context.getThisTaskId(), List.of(targets)).applyOn(context);
        }
    }

    static void execute(TopologyContext context, TopologyContext source) {
        if (!context.getHooks().isEmpty()) {
            Tuple tuple = new TupleImpl(source, new Values("v"), source.getThisComponentId(), source.getThisTaskId(), "default");
            new BoltExecuteInfo(tuple, context.getThisTaskId(), -1L).applyOn(context);
        }
    }

    static void spoutAck(TopologyContext context, Long latencyMs) {
        if (!context.getHooks().isEmpty()) {
            new SpoutAckInfo("id", context.getThisTaskId(), latencyMs).applyOn(context);
        }
    }

    private static final class Spout extends BaseRichSpout {
        private static final long serialVersionUID = 1;

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {}

        @Override
        public void nextTuple() {}

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("x"));
        }
    }

    private static final class Bolt extends BaseBasicBolt {
        private static final long serialVersionUID = 1;

        @Override
        public void execute(Tuple input, BasicOutputCollector collector) {}

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }
}
