package dev.stormoperator.metrics;

import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
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
 * Runs a saturated topology in one JVM and prints what its threads spend with the hook and without.
 *
 * <p>Arguments: acks (true or false), seconds of warm-up, seconds of fine switching, number of windows, directory for
 * snapshots. Fine switching ({@link Switch}) gives one line for each segment; windows of one second with everything on
 * or off (on, off, off, on, ...) give {@code window <on|off> <CPU ns> <wall ns> <tuples executed>}, and last comes
 * {@code reporter <CPU ns> <CPU ns of all threads>}. Components do no work of their own, which is the hardest case.
 */
public final class HookCost {
    private static final Pattern REPORTER = Pattern.compile("storm-operator-.*");
    private static final Pattern ALL = Pattern.compile("(?!C[12] Compiler).*");
    private static final long SETTLING_MS = 100;
    private static final long WINDOW_MS = 1000;

    private static volatile Counted[] counted = new Counted[0];

    private HookCost() {}

    /** A counter that one thread advances; far from those of others. */
    private static final class Counted {
        private volatile long value;

        @SuppressWarnings("unused")
        private long pad0, pad1, pad2, pad3, pad4, pad5, pad6, pad7, pad8, pad9, padA, padB, padC, padD, padE, padF;
    }

    private static synchronized Counted newCounter() {
        Counted[] more = java.util.Arrays.copyOf(counted, counted.length + 1);
        Counted counter = new Counted();
        more[more.length - 1] = counter;
        counted = more;
        return counter;
    }

    /** Emits as fast as Storm takes it. */
    public static final class Source extends BaseRichSpout {
        private static final long serialVersionUID = 1;
        private static final Values[] ROWS = new Values[1024];
        private final boolean acks;
        private transient SpoutOutputCollector out;
        private transient Switch control;
        private int next;

        Source(boolean acks) {
            this.acks = acks;
        }

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
            out = collector;
            control = SwitchableHook.ofTask(context.getThisTaskId());
            for (int i = 0; i < ROWS.length; i++) {
                ROWS[i] = new Values("key-" + i * 7919 % 257);
            }
        }

        @Override
        public void nextTuple() {
            control.unit();
            Values row = ROWS[next++ & ROWS.length - 1];
            if (acks) {
                out.emit(row, next);
            } else {
                out.emit(row);
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("key"));
        }
    }

    /** Counts, passes on and acks. */
    public static final class Stage extends BaseRichBolt {
        private static final long serialVersionUID = 1;
        private final boolean isLast;
        private transient OutputCollector out;
        private transient Counted counter;
        private transient Switch control;
        private long executed;

        Stage(boolean isLast) {
            this.isLast = isLast;
        }

        @Override
        public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
            out = collector;
            counter = newCounter();
            control = SwitchableHook.ofTask(context.getThisTaskId());
        }

        @Override
        public void execute(Tuple tuple) {
            control.unit();
            if (!isLast) {
                out.emit(tuple, tuple.getValues());
            }
            out.ack(tuple);
            if ((++executed & 63) == 0) {
                counter.value = executed;
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("key"));
        }
    }

    public static void main(String[] args) throws Exception {
        boolean acks = Boolean.parseBoolean(args[0]);
        long warmUpMs = Long.parseLong(args[1]) * 1000;
        long switchingMs = Long.parseLong(args[2]) * 1000;
        int windows = Integer.parseInt(args[3]);
        try (LocalCluster cluster = new LocalCluster.Builder().withSupervisors(1).build()) {
            cluster.submitTopology("cost", conf(acks, args[4]), topology(acks));
            while (executed() == 0) {
                Thread.sleep(50);
            }
            Switch.mode = Switch.Mode.ALTERNATE;
            Thread.sleep(warmUpMs / 2);
            SwitchableReporter.warmUp();
            Thread.sleep(warmUpMs / 2);
            switchFinely(switchingMs);
            for (int i = 0; i < windows; i++) {
                measureWindow(i % 4 == 0 || i % 4 == 3);
            }
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void switchFinely(long milliseconds) throws Exception {
        long reporter = CpuClock.nanos(REPORTER);
        long all = CpuClock.nanos(ALL);
        Switch.recording = true;
        Thread.sleep(milliseconds);
        Switch.recording = false;
        System.out.println("reporter " + (CpuClock.nanos(REPORTER) - reporter) + " " + (CpuClock.nanos(ALL) - all));
        SwitchableHook.all().forEach(control -> control.print(System.out));
    }

    private static void measureWindow(boolean on) throws Exception {
        Switch.mode = on ? Switch.Mode.ALWAYS_ON : Switch.Mode.ALWAYS_OFF;
        SwitchableReporter.on = on;
        Thread.sleep(SETTLING_MS);
        long cpu = CpuClock.nanos(ALL);
        long wall = System.nanoTime();
        long tuples = executed();
        Thread.sleep(WINDOW_MS);
        cpu = CpuClock.nanos(ALL) - cpu;
        wall = System.nanoTime() - wall;
        tuples = executed() - tuples;
        System.out.println("window " + (on ? "on" : "off") + " " + cpu + " " + wall + " " + tuples);
    }

    private static org.apache.storm.generated.StormTopology topology(boolean acks) {
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("source", new Source(acks), 1);
        builder.setBolt("split", new Stage(false), 1).shuffleGrouping("source");
        builder.setBolt("count", new Stage(true), 2).fieldsGrouping("split", new Fields("key"));
        return builder.createTopology();
    }

    private static Config conf(boolean acks, String directory) {
        Config conf = new Config();
        conf.setNumWorkers(1);
        conf.setNumAckers(acks ? 1 : 0);
        conf.setMaxSpoutPending(acks ? 5000 : 100_000);
        conf.put(Config.TOPOLOGY_AUTO_TASK_HOOKS, List.of(SwitchableHook.class.getName()));
        conf.put(Config.TOPOLOGY_METRICS_REPORTERS, List.of(Map.of("class", SwitchableReporter.class.getName())));
        conf.put("storm_operator.metrics.dir", directory);
        parkWhenIdle(conf);
        return conf;
    }

    /** Waiting by parking: spinning threads would burn CPU that has nothing to do with the tuples executed. */
    private static void parkWhenIdle(Config conf) {
        String park = "org.apache.storm.policy.WaitStrategyPark";
        conf.put(Config.TOPOLOGY_BOLT_WAIT_STRATEGY, park);
        conf.put(Config.TOPOLOGY_SPOUT_WAIT_STRATEGY, park);
        conf.put(Config.TOPOLOGY_BACKPRESSURE_WAIT_STRATEGY, park);
        conf.put(Config.TOPOLOGY_BOLT_WAIT_PARK_MICROSEC, 200);
        conf.put(Config.TOPOLOGY_SPOUT_WAIT_PARK_MICROSEC, 200);
        conf.put(Config.TOPOLOGY_BACKPRESSURE_WAIT_PARK_MICROSEC, 200);
    }

    private static long executed() {
        long sum = 0;
        for (Counted counter : counted) {
            sum += counter.value;
        }
        return sum;
    }
}
