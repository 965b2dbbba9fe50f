import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.StormSubmitter;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.state.KeyValueState;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.topology.base.BaseStatefulBolt;
import org.apache.storm.topology.base.BaseWindowedBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.Utils;
import org.apache.storm.windowing.TupleWindow;

/** Bolts of every kind that a scheduler may meet: plain, keyed, windowed, stateful. Arguments: topology name, kinds. */
public final class ManyKinds {
    public static final class Numbers extends BaseRichSpout {
        private SpoutOutputCollector collector;
        private long next;

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void nextTuple() {
            collector.emit(new Values(next % 10), next++);
            Utils.sleep(20);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("number"));
        }
    }

    public static final class Pass extends BaseBasicBolt {
        @Override
        public void execute(Tuple tuple, BasicOutputCollector collector) {
            collector.emit(new Values(tuple.getLongByField("number")));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("number"));
        }
    }

    public static final class Window extends BaseWindowedBolt {
        @Override
        public void execute(TupleWindow window) {}
    }

    public static final class Sum extends BaseStatefulBolt<KeyValueState<String, Long>> {
        private KeyValueState<String, Long> state;
        private OutputCollector collector;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void initState(KeyValueState<String, Long> state) {
            this.state = state;
        }

        @Override
        public void execute(Tuple tuple) {
            state.put("sum", state.get("sum", 0L) + tuple.getLongByField("number"));
            collector.ack(tuple);
        }
    }

    public static void main(String[] args) throws Exception {
        if (args.length == 0) {
            throw new IllegalArgumentException("give the topology's name as the first argument");
        }
        String kinds = args.length > 1 ? args[1] : "simple";
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("numbers", new Numbers(), 1);
        builder.setBolt("pass", new Pass(), 2).setNumTasks(3).setMemoryLoad(96, 16).setCPULoad(30)
            .shuffleGrouping("numbers");
        builder.setBolt("keyed", new Pass(), 2).fieldsGrouping("pass", new Fields("number"));
        if (kinds.equals("all")) {
            builder.setBolt("window", new Window().withTumblingWindow(BaseWindowedBolt.Count.of(5)), 1).globalGrouping("pass");
            builder.setBolt("sum", new Sum(), 1).allGrouping("pass");
            builder.setBolt("late", new Pass(), 1).localOrShuffleGrouping("keyed");
        }
        Config conf = new Config();
        conf.setNumWorkers(2);
        conf.setNumAckers(1);
        conf.setFallBackOnJavaSerialization(true); // else workers die of the first checkpoint between two of them
        StormSubmitter.submitTopology(args[0], conf, builder.createTopology());
    }
}
