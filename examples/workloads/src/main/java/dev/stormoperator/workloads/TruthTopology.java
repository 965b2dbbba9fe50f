package dev.stormoperator.workloads;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.apache.storm.grouping.ShuffleGrouping;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.BoltDeclarer;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/**
 * Knows exactly which task sent how much to which: the yardstick for traffic measurements, see {@link GroundTruth}.
 *
 * <p>One source into an edge of each kind: shuffle (plain), load-aware shuffle (Storm's default), fields on a skewed key,
 * fields again on the same key behind it, all, and localOrShuffle.
 */
public final class TruthTopology implements Workload {

    private static final Fields KEY = new Fields("key");

    public static void main(String[] args) throws Exception {
        Workload.run(new TruthTopology(), args);
    }

    @Override
    public String name() {
        return "truth";
    }

    @Override
    public String rate() {
        return "steady:300";
    }

    @Override
    public Map<String, Integer> components() {
        Map<String, Integer> components = new LinkedHashMap<>();
        components.put("source", 2);
        components.put("shuffle", 3);
        components.put("load-aware", 3);
        components.put("fields", 3);
        components.put("fields-again", 3);
        components.put("all", 2);
        components.put("local", 3);
        return components;
    }

    @Override
    public Map<String, List<String>> ownOptions() {
        return Map.of("truth-dir", List.of("", "directory on the workers' machines for the ground truth; required"));
    }

    @Override
    public void build(TopologyBuilder builder, Options options) {
        String directory = options.text("truth-dir");
        if (directory.isEmpty()) {
            throw new IllegalArgumentException("--truth-dir: should name a directory");
        }
        builder.setSpout("source",
            options.set("source", new Source(options.text("rate"), directory)), options.parallelism("source"));
        bolt(builder, options, "shuffle").customGrouping("source", new ShuffleGrouping());
        bolt(builder, options, "load-aware").shuffleGrouping("source");
        bolt(builder, options, "fields").fieldsGrouping("source", KEY);
        bolt(builder, options, "fields-again").fieldsGrouping("fields", KEY);
        bolt(builder, options, "all").allGrouping("source");
        bolt(builder, options, "local").localOrShuffleGrouping("source");
    }

    private static BoltDeclarer bolt(TopologyBuilder builder, Options options, String component) {
        return builder.setBolt(component, options.set(component, new PassOn(options.text("truth-dir"))),
            options.parallelism(component));
    }

    /** Tuples with a key, of which few make most of the traffic. */
    public static final class Source extends PacedSpout {

        private static final long serialVersionUID = 1L;
        private static final int KEYS = 200;

        private final String directory;
        private transient GroundTruth truth;
        private transient SplittableRandom random;

        public Source(String rate, String directory) {
            super(rate);
            this.directory = directory;
        }

        @Override
        protected void opened(TopologyContext context) {
            truth = GroundTruth.of(context, directory);
            random = new SplittableRandom(context.getThisTaskId());
        }

        @Override
        protected Values next() {
            return new Values((int) (KEYS * Math.pow(random.nextDouble(), 3)));
        }

        @Override
        protected void emitted(List<Integer> targets) {
            truth.sent("default", targets);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(KEY);
        }
    }

    /** Counts what comes in and passes it on to whoever listens. */
    public static final class PassOn extends StageBolt {

        private static final long serialVersionUID = 1L;

        private final String directory;
        private transient GroundTruth truth;

        public PassOn(String directory) {
            this.directory = directory;
        }

        @Override
        protected void prepared(TopologyContext context) {
            truth = GroundTruth.of(context, directory);
        }

        @Override
        protected void process(Tuple input, BasicOutputCollector collector) {
            truth.received(input.getSourceStreamId(), input.getSourceTask());
            truth.sent("default", collector.emit(new Values(input.getValue(0))));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(KEY);
        }
    }
}
