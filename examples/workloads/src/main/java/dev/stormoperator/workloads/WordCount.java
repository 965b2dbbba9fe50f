package dev.stormoperator.workloads;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.apache.storm.state.KeyValueState;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseStatefulBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/** Sentences are split into words, words are counted: sentences, split (shuffle), count (fields, stateful). */
public final class WordCount implements Workload {

    public static void main(String[] args) throws Exception {
        Workload.run(new WordCount(), args);
    }

    @Override
    public String name() {
        return "wordcount";
    }

    @Override
    public String rate() {
        return "steady:100";
    }

    @Override
    public Map<String, Integer> components() {
        Map<String, Integer> components = new LinkedHashMap<>();
        components.put("sentences", 1);
        components.put("split", 2);
        components.put("count", 2);
        return components;
    }

    @Override
    public Map<String, List<String>> ownOptions() {
        return Map.of("checkpointed", List.of("false",
            "count with Storm's checkpointed state; tuples are then acked once per checkpoint (1 s)"));
    }

    @Override
    public void build(TopologyBuilder builder, Options options) {
        builder.setSpout("sentences",
            options.set("sentences", new Sentences(options.text("rate"))), options.parallelism("sentences"));
        builder.setBolt("split", options.set("split", new Split()), options.parallelism("split"))
            .shuffleGrouping("sentences");
        Fields word = new Fields("word");
        if (options.flag("checkpointed")) {
            builder.setBolt("count", new CheckpointedCount(options.cpuMicros("count")), options.parallelism("count"))
                .fieldsGrouping("split", word);
        } else {
            builder.setBolt("count", options.set("count", new Count()), options.parallelism("count"))
                .fieldsGrouping("split", word);
        }
    }

    /** Sentences of five words, some words much more frequent than others. */
    public static final class Sentences extends PacedSpout {

        private static final long serialVersionUID = 1L;
        private static final int WORDS = 1_000;

        private transient SplittableRandom random;

        public Sentences(String rate) {
            super(rate);
        }

        @Override
        protected void opened(TopologyContext context) {
            random = new SplittableRandom(context.getThisTaskId());
        }

        @Override
        protected Values next() {
            StringBuilder sentence = new StringBuilder();
            for (int i = 0; i < 5; i++) {
                double skewed = Math.pow(random.nextDouble(), 3);
                sentence.append(i == 0 ? "" : " ").append("word").append((int) (WORDS * skewed));
            }
            return new Values(sentence.toString());
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("sentence"));
        }
    }

    /** Sentences into words. */
    public static final class Split extends StageBolt {

        private static final long serialVersionUID = 1L;

        @Override
        protected void process(Tuple input, BasicOutputCollector collector) {
            for (String word : input.getString(0).split(" ")) {
                collector.emit(new Values(word));
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word"));
        }
    }

    /** Words and how often each was seen by this task, in memory: lost when the worker restarts. */
    public static final class Count extends StageBolt {

        private static final long serialVersionUID = 1L;

        private transient Map<String, Long> counts;

        @Override
        protected void prepared(TopologyContext context) {
            counts = new HashMap<>();
        }

        @Override
        protected void process(Tuple input, BasicOutputCollector collector) {
            String word = input.getString(0);
            collector.emit(new Values(word, counts.merge(word, 1L, Long::sum)));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word", "count"));
        }
    }

    /** The same with state that Storm checkpoints, in the store of {@code topology.state.provider}. */
    public static final class CheckpointedCount extends BaseStatefulBolt<KeyValueState<String, Long>> {

        private static final long serialVersionUID = 1L;

        private final long cpuMicros;
        private transient CpuBurner burner;
        private transient KeyValueState<String, Long> counts;
        private transient OutputCollector collector;

        /** {@code cpuMicros}: CPU to spend on each tuple, as all other bolts of these topologies do. */
        public CheckpointedCount(long cpuMicros) {
            this.cpuMicros = cpuMicros;
        }

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector out) {
            burner = new CpuBurner();
            collector = out;
        }

        @Override
        public void initState(KeyValueState<String, Long> state) {
            counts = state;
        }

        @Override
        public void execute(Tuple input) {
            burner.burn(cpuMicros);
            String word = input.getString(0);
            long count = counts.get(word, 0L) + 1;
            counts.put(word, count);
            collector.emit(input, new Values(word, count));
            collector.ack(input);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word", "count"));
        }
    }
}
