package dev.stormoperator.metrics;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/**
 * Runs two saturated topologies of all groupings in two workers each (one with load-aware shuffle, one without), whose
 * components count what they send to whom, from what {@code emit} returns.
 *
 * <p>Arguments: seconds, directory. After that time as warm-up, each worker's snapshot and the truth of the same moment
 * are kept in {@code begin/} in the directory, and after that time once more in {@code end/}.
 */
public final class HookError {
    private static final int MOST_TASKS = 128;

    /** Sent tuples by target task; the key is worker, task and component, with tabs between. */
    private static final Map<String, AtomicLongArray> TRUTH = new ConcurrentHashMap<>();

    private static final int WORKERS = 4;
    private static final Semaphore KEPT = new Semaphore(0);
    private static volatile String keep;

    private HookError() {}

    private static AtomicLongArray truthOf(TopologyContext context) {
        String key = context.getStormId() + "@" + context.getThisWorkerPort() + "\t" + context.getThisTaskId() + "\t"
                + context.getThisComponentId();
        return TRUTH.computeIfAbsent(key, any -> new AtomicLongArray(MOST_TASKS));
    }

    private static void count(AtomicLongArray truth, List<Integer> targets) {
        for (Integer target : targets) {
            truth.setOpaque(target, truth.getOpaque(target) + 1);
        }
    }

    /** Keys as skewed as words: the second half as frequent as the first, the third a third. */
    public static final class Source extends BaseRichSpout {
        private static final long serialVersionUID = 1;
        private static final int KEYS = 200;
        private transient SpoutOutputCollector out;
        private transient AtomicLongArray truth;
        private transient Values[] rows;
        private int next;

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
            out = collector;
            truth = truthOf(context);
            rows = new Values[8192];
            double sum = 0;
            for (int key = 1; key <= KEYS; key++) {
                sum += 1.0 / key;
            }
            java.util.Random random = new java.util.Random(context.getThisTaskId());
            for (int i = 0; i < rows.length; i++) {
                double rest = random.nextDouble() * sum;
                int key = 1;
                while ((rest -= 1.0 / key) > 0 && key < KEYS) {
                    key++;
                }
                rows[i] = new Values("key-" + key);
            }
        }

        @Override
        public void nextTuple() {
            next++;
            count(truth, out.emit(rows[next & rows.length - 1], next));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("key"));
        }
    }

    /** Passes on and acks. */
    public static final class Stage extends BaseRichBolt {
        private static final long serialVersionUID = 1;
        private transient OutputCollector out;
        private transient AtomicLongArray truth;

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            out = collector;
            truth = truthOf(context);
        }

        @Override
        public void execute(Tuple tuple) {
            count(truth, out.emit(tuple, tuple.getValues()));
            out.ack(tuple);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("key"));
        }
    }

    /** Keeps, when asked to, the snapshot of its worker together with the truth of that moment. */
    public static final class Reporter extends SnapshotReporter {
        private String kept;

        @Override
        void report() {
            String wanted = keep;
            Path snapshot = snapshotPath();
            if (snapshot == null || wanted == null || wanted.equals(kept)) {
                super.report();
                return;
            }
            String truth = truthOf(snapshot.getFileName().toString().replace(".json", ""));
            super.report();
            try {
                Path folder = Files.createDirectories(snapshot.resolveSibling(wanted));
                Files.writeString(folder.resolve(snapshot.getFileName().toString().replace(".json", ".truth")), truth);
                Files.copy(snapshot, folder.resolve(snapshot.getFileName()));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            kept = wanted;
            KEPT.release();
        }
    }

    /** One line for each pair of tasks: source task, its component, target task, tuples sent. */
    private static String truthOf(String worker) {
        StringBuilder text = new StringBuilder();
        TRUTH.forEach((key, truth) -> {
            String[] parts = key.split("\t");
            for (int target = 0; parts[0].equals(worker) && target < MOST_TASKS; target++) {
                if (truth.getOpaque(target) > 0) {
                    text.append(parts[1]).append(' ').append(parts[2]).append(' ').append(target).append(' ');
                    text.append(truth.getOpaque(target)).append('\n');
                }
            }
        });
        return text.toString();
    }

    public static void main(String[] args) throws Exception {
        long milliseconds = Long.parseLong(args[0]) * 1000;
        try (LocalCluster cluster = new LocalCluster.Builder().withSupervisors(2).withPortsPerSupervisor(2).build()) {
            cluster.submitTopology("even", conf(args[1], true), topology());
            cluster.submitTopology("load-aware", conf(args[1], false), topology());
            Thread.sleep(milliseconds);
            keep("begin");
            Thread.sleep(milliseconds);
            keep("end");
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void keep(String folder) throws InterruptedException {
        keep = folder;
        if (!KEPT.tryAcquire(WORKERS, 120, TimeUnit.SECONDS)) {
            throw new IllegalStateException("not all of " + WORKERS + " workers wrote a snapshot within two minutes");
        }
    }

    private static Config conf(String directory, boolean evenShuffle) {
        Config conf = new Config();
        conf.setNumWorkers(WORKERS / 2);
        conf.setNumAckers(2);
        // Few in flight, so that what is executed in half a minute is what is sent in it.
        conf.setMaxSpoutPending(100);
        conf.put(Config.TOPOLOGY_DISABLE_LOADAWARE_MESSAGING, evenShuffle);
        conf.put(Config.TOPOLOGY_AUTO_TASK_HOOKS, List.of(TrafficHook.class.getName()));
        conf.put(Config.TOPOLOGY_METRICS_REPORTERS, List.of(Map.of("class", Reporter.class.getName())));
        conf.put("storm_operator.metrics.dir", directory);
        return conf;
    }

    private static StormTopology topology() {
        TopologyBuilder builder = new TopologyBuilder();
        Fields key = new Fields("key");
        builder.setSpout("source", new Source(), 2);
        builder.setBolt("shuffled", new Stage(), 4).shuffleGrouping("source");
        builder.setBolt("by-key", new Stage(), 4).fieldsGrouping("shuffled", key);
        builder.setBolt("by-key-again", new Stage(), 4).fieldsGrouping("by-key", key);
        builder.setBolt("copies", new Stage(), 2).allGrouping("by-key-again");
        builder.setBolt("near", new Stage(), 4).localOrShuffleGrouping("by-key-again");
        return builder.createTopology();
    }
}
