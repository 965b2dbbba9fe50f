package dev.stormoperator.workloads;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.BoltDeclarer;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/**
 * The reference topology of Aniello, Baldoni, Querzoni, "Adaptive Online Scheduling in Storm", DEBS 2013, section 4.1:
 * a spout, then simple bolts (shuffle) and stateful bolts (fields) in turn, last a bolt that only acks.
 *
 * <p>Components are called by kind and stage: {@code spout1}, {@code simple2}, {@code stateful3}, ..., {@code ack7}.
 * {@code --parallelism} and {@code --cpu-micros} go by kind. The defaults are those of the paper's figure 3 at 100
 * tuples a second for each spout executor. A bolt passes on half of the values and replaces the others by one constant
 * of its executor, so that some pairs of executors talk much more than others.
 */
public final class ReferenceChain implements Workload {

    public static void main(String[] args) throws Exception {
        Workload.run(new ReferenceChain(), args);
    }

    @Override
    public String name() {
        return "reference-chain";
    }

    @Override
    public String rate() {
        return "steady:400";
    }

    @Override
    public Map<String, Integer> components() {
        Map<String, Integer> kinds = new LinkedHashMap<>();
        kinds.put("spout", 4);
        kinds.put("simple", 3);
        kinds.put("stateful", 2);
        kinds.put("ack", 3);
        return kinds;
    }

    @Override
    public Map<String, List<String>> ownOptions() {
        return Map.of(
            "stages", List.of("7", "length of the chain, spout and ack bolt included, 3 or more"),
            "variance", List.of("0.2", "V: how far the spout executors' rates are from their mean at most, as a fraction"));
    }

    @Override
    public void build(TopologyBuilder builder, Options options) {
        int stages = options.whole("stages", 3);
        double variance = options.fraction("variance", 0, 1);
        String before = "spout1";
        builder.setSpout(before, options.set("spout", new Numbers(options.text("rate"), variance)),
            options.parallelism("spout"));
        for (int stage = 2; stage <= stages; stage++) {
            boolean last = stage == stages;
            boolean simple = stage % 2 == 0;
            String kind = last ? "ack" : simple ? "simple" : "stateful";
            StageBolt bolt = options.set(kind, last ? new Ack() : new Forward());
            BoltDeclarer declared = builder.setBolt(kind + stage, bolt, options.parallelism(kind));
            if (simple) {
                declared.shuffleGrouping(before);
            } else {
                declared.fieldsGrouping(before, new Fields("value"));
            }
            before = kind + stage;
        }
    }

    /** Counts up; the executors' rates lie evenly between (1 - variance) and (1 + variance) times their mean. */
    public static final class Numbers extends PacedSpout {

        private static final long serialVersionUID = 1L;

        private final double variance;
        private transient long value;

        public Numbers(String rate, double variance) {
            super(rate);
            this.variance = variance;
        }

        @Override
        protected double share(int index, int tasks) {
            double position = tasks == 1 ? 0 : 2.0 * index / (tasks - 1) - 1;
            return (1 + variance * position) / tasks;
        }

        @Override
        protected Values next() {
            return new Values(value++);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("value"));
        }
    }

    /** Passes a value on, or with probability 1/2 the constant of this executor in its place. */
    public static final class Forward extends StageBolt {

        private static final long serialVersionUID = 1L;

        private transient SplittableRandom random;
        private transient long constant;

        @Override
        protected void prepared(TopologyContext context) {
            constant = context.getThisTaskId();
            random = new SplittableRandom(constant);
        }

        @Override
        protected void process(Tuple input, BasicOutputCollector collector) {
            collector.emit(new Values(random.nextBoolean() ? input.getLong(0) : Long.valueOf(constant)));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("value"));
        }
    }

    /** The end of the chain. */
    public static final class Ack extends StageBolt {

        private static final long serialVersionUID = 1L;

        @Override
        protected void process(Tuple input, BasicOutputCollector collector) {
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
        }
    }
}
