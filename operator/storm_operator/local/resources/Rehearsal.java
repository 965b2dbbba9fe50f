import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.StormSubmitter;
import org.apache.storm.testing.TestWordCounter;
import org.apache.storm.testing.TestWordSpout;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;

/** Submits a word count made of Storm's own test classes: the smallest thing that makes a worker load what workers load. */
public class Rehearsal {
    public static void main(String[] arguments) throws Exception {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("words", new TestWordSpout(true), 2);
        builder.setBolt("count", new TestWordCounter(), 2).fieldsGrouping("words", new Fields("word"));
        Config conf = new Config();
        conf.setNumWorkers(Integer.parseInt(arguments[1]));
        StormSubmitter.submitTopology(arguments[0], conf, builder.createTopology());
    }
}
