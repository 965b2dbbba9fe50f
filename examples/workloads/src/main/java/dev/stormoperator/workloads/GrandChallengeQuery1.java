package dev.stormoperator.workloads;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/**
 * Query 1 of the DEBS 2013 Grand Challenge as Aniello et al. (DEBS 2013, section 4.2) laid it out: sensor (8 executors),
 * speed (4, shuffle), analysis (2, fields by player, stateful). The players' movements are generated.
 *
 * <p>32 sensors at 200 Hz make 6,400 tuples a second, the default; {@code --rate steady:640} is a tenth of that.
 */
public final class GrandChallengeQuery1 implements Workload {

    static final int SENSORS = 32;
    static final int SENSORS_PER_PLAYER = 2;

    public static void main(String[] args) throws Exception {
        Workload.run(new GrandChallengeQuery1(), args);
    }

    @Override
    public String name() {
        return "grand-challenge-query1";
    }

    @Override
    public String rate() {
        return "steady:" + SENSORS * 200;
    }

    @Override
    public Map<String, Integer> components() {
        Map<String, Integer> components = new LinkedHashMap<>();
        components.put("sensor", 8);
        components.put("speed", 4);
        components.put("analysis", 2);
        return components;
    }

    @Override
    public void build(TopologyBuilder builder, Options options) {
        builder.setSpout("sensor",
            options.set("sensor", new Sensors(options.text("rate"))), options.parallelism("sensor"));
        builder.setBolt("speed", options.set("speed", new Speed()), options.parallelism("speed"))
            .shuffleGrouping("sensor");
        builder.setBolt("analysis", options.set("analysis", new Analysis()), options.parallelism("analysis"))
            .fieldsGrouping("speed", new Fields("player"));
    }

    /** Each task plays its part of the sensors in turn; a sensor runs in circles at a pace of its own. */
    public static final class Sensors extends PacedSpout {

        private static final long serialVersionUID = 1L;

        private transient int sensor;
        private transient int tasks;
        private transient int index;

        public Sensors(String rate) {
            super(rate);
        }

        @Override
        protected void opened(TopologyContext context) {
            index = context.getThisTaskIndex();
            tasks = context.getComponentTasks(context.getThisComponentId()).size();
            sensor = index % SENSORS;
        }

        @Override
        protected Values next() {
            int current = sensor;
            sensor += tasks;
            if (sensor >= SENSORS) {
                sensor = index % SENSORS;
            }
            double seconds = System.nanoTime() / 1e9;
            double turn = seconds * (0.05 + 0.01 * current);
            double pace = 3 + 3 * Math.sin(seconds / 20 + current);
            return new Values(current, System.currentTimeMillis(), 50 * Math.cos(turn), 30 * Math.sin(turn),
                pace * Math.sin(turn), pace * Math.cos(turn));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("sensor", "at_ms", "x", "y", "vx", "vy"));
        }
    }

    /** The instantaneous speed, in meters a second, of the player who wears a sensor. */
    public static final class Speed extends StageBolt {

        private static final long serialVersionUID = 1L;

        @Override
        protected void process(Tuple input, BasicOutputCollector collector) {
            double speed = Math.hypot(input.getDoubleByField("vx"), input.getDoubleByField("vy"));
            collector.emit(new Values(input.getIntegerByField("sensor") / SENSORS_PER_PLAYER,
                input.getLongByField("at_ms"), speed));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("player", "at_ms", "speed"));
        }
    }

    /** How long each player has stood, walked, jogged, run and sprinted. */
    public static final class Analysis extends StageBolt {

        private static final long serialVersionUID = 1L;
        /** Upper bounds of standing, trot, low, medium and high speed run, in meters a second; the rest is sprint. */
        private static final double[] BOUNDS = {1 / 3.6, 11 / 3.6, 14 / 3.6, 17 / 3.6, 24 / 3.6};

        private transient Map<Integer, long[]> millisByIntensity;
        private transient Map<Integer, Long> lastSeen;

        @Override
        protected void prepared(TopologyContext context) {
            millisByIntensity = new HashMap<>();
            lastSeen = new HashMap<>();
        }

        @Override
        protected void process(Tuple input, BasicOutputCollector collector) {
            int player = input.getIntegerByField("player");
            long at = input.getLongByField("at_ms");
            int intensity = 0;
            while (intensity < BOUNDS.length && input.getDoubleByField("speed") > BOUNDS[intensity]) {
                intensity++;
            }
            Long before = lastSeen.put(player, at);
            if (before != null) {
                millisByIntensity.computeIfAbsent(player, p -> new long[BOUNDS.length + 1])[intensity] +=
                    Math.max(0, at - before);
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
        }
    }
}
