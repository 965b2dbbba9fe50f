import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.StormSubmitter;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.Utils;

/** About a hundred tuples a second from one spout to two bolts, acked, in two workers. */
public class SteadyTopology {
    public static class Numbers extends BaseRichSpout {
        private SpoutOutputCollector collector;
        private long next;

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void nextTuple() {
            collector.emit(new Values(next), next);
            next++;
            Utils.sleep(10);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("number"));
        }
    }

    public static class Sink extends BaseBasicBolt {
        @Override
        public void execute(Tuple tuple, BasicOutputCollector collector) {
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
        }
    }

    public static void main(String[] arguments) throws Exception {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("numbers", new Numbers());
        builder.setBolt("sink", new Sink(), 2).fieldsGrouping("numbers", new Fields("number"));
        Config conf = new Config();
        conf.setNumWorkers(2);
        StormSubmitter.submitTopology(arguments[0], conf, builder.createTopology());
    }
}
