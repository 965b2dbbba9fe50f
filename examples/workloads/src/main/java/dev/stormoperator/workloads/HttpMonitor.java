package dev.stormoperator.workloads;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Locale;
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
 * The HTTP traffic monitor of Liu et al. (figure 5): requests, retrieve, then country, isp and prefix side by side, each
 * with its own stat bolt (fields, stateful), all into alarm. The requests are generated.
 */
public final class HttpMonitor implements Workload {

    public static void main(String[] args) throws Exception {
        Workload.run(new HttpMonitor(), args);
    }

    @Override
    public String name() {
        return "http-monitor";
    }

    @Override
    public String rate() {
        return "steady:200";
    }

    @Override
    public Map<String, Integer> components() {
        Map<String, Integer> components = new LinkedHashMap<>();
        components.put("requests", 1);
        components.put("retrieve", 2);
        for (Part part : Part.values()) {
            components.put(part.component(), 2);
            components.put(part.statistic(), 2);
        }
        components.put("alarm", 1);
        return components;
    }

    @Override
    public void build(TopologyBuilder builder, Options options) {
        builder.setSpout("requests",
            options.set("requests", new Requests(options.text("rate"))), options.parallelism("requests"));
        builder.setBolt("retrieve", options.set("retrieve", new Retrieve()), options.parallelism("retrieve"))
            .shuffleGrouping("requests");
        BoltDeclarer alarm = builder.setBolt("alarm", options.set("alarm", new Alarm()), options.parallelism("alarm"));
        for (Part part : Part.values()) {
            String component = part.component();
            String statistic = part.statistic();
            builder.setBolt(component, options.set(component, new Classify(part.name())), options.parallelism(component))
                .shuffleGrouping("retrieve");
            builder.setBolt(statistic, options.set(statistic, new Statistic()), options.parallelism(statistic))
                .fieldsGrouping(component, new Fields("class"));
            alarm.shuffleGrouping(statistic);
        }
    }

    /** What a destination is grouped by. */
    public enum Part {
        COUNTRY, ISP, PREFIX;

        String component() {
            return name().toLowerCase(Locale.ROOT);
        }

        String statistic() {
            return "stat-" + component();
        }

        /** Generated addresses need no database: the first octets stand for the country and the provider. */
        String of(String address) {
            String[] octets = address.split("\\.");
            return switch (this) {
                case COUNTRY -> "country-" + Integer.parseInt(octets[0]) % 40;
                case ISP -> "isp-" + Integer.parseInt(octets[0]) % 100;
                case PREFIX -> octets[0] + "." + octets[1] + "/16";
            };
        }
    }

    /** Lines of a request log; a few destinations get most of the visits. */
    public static final class Requests extends PacedSpout {

        private static final long serialVersionUID = 1L;

        private transient SplittableRandom random;

        public Requests(String rate) {
            super(rate);
        }

        @Override
        protected void opened(TopologyContext context) {
            random = new SplittableRandom(context.getThisTaskId());
        }

        @Override
        protected Values next() {
            int popular = (int) (223 * Math.pow(random.nextDouble(), 3));
            return new Values(System.currentTimeMillis() + " 10.0." + random.nextInt(256) + "." + random.nextInt(256)
                + " " + (1 + popular) + "." + random.nextInt(4) + "." + random.nextInt(256) + "." + random.nextInt(256)
                + " GET /index.html");
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("line"));
        }
    }

    /** Timestamp and destination address of a request. */
    public static final class Retrieve extends StageBolt {

        private static final long serialVersionUID = 1L;

        @Override
        protected void process(Tuple input, BasicOutputCollector collector) {
            String[] parts = input.getString(0).split(" ");
            collector.emit(new Values(Long.valueOf(parts[0]), parts[2]));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("at_ms", "destination"));
        }
    }

    /** The class of a destination: its country, provider or prefix. */
    public static final class Classify extends StageBolt {

        private static final long serialVersionUID = 1L;

        private final Part part;

        /**
         * Groups by {@code part}.
         *
         * @param part COUNTRY, ISP or PREFIX
         */
        public Classify(String part) {
            this.part = Part.valueOf(part);
        }

        @Override
        protected void process(Tuple input, BasicOutputCollector collector) {
            collector.emit(new Values(input.getLong(0), part.of(input.getString(1))));
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("at_ms", "class"));
        }
    }

    /** Visits to each class in a timeslot of one second, told when far from the mean of the ten slots before. */
    public static final class Statistic extends StageBolt {

        private static final long serialVersionUID = 1L;
        private static final long SLOT_MILLIS = 1_000;
        private static final int SLOTS_REMEMBERED = 10;
        private static final double TOLERANCE = 0.8;

        private transient Map<String, Deque<Long>> history;
        private transient Map<String, Long> visits;
        private transient long slot;

        @Override
        protected void prepared(TopologyContext context) {
            history = new HashMap<>();
            visits = new HashMap<>();
        }

        @Override
        protected void process(Tuple input, BasicOutputCollector collector) {
            long now = input.getLong(0) / SLOT_MILLIS;
            if (now > slot) {
                visits.forEach((name, count) -> close(name, count, collector));
                visits.replaceAll((name, count) -> 0L);
                slot = now;
            }
            visits.merge(input.getString(1), 1L, Long::sum);
        }

        private void close(String name, long count, BasicOutputCollector collector) {
            Deque<Long> slots = history.computeIfAbsent(name, n -> new ArrayDeque<>());
            double normal = slots.stream().mapToLong(Long::longValue).average().orElse(count);
            if (Math.abs(count - normal) > TOLERANCE * Math.max(1, normal)) {
                collector.emit(new Values(name, count, normal));
            }
            slots.addLast(count);
            if (slots.size() > SLOTS_REMEMBERED) {
                slots.removeFirst();
            }
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("class", "visits", "normal"));
        }
    }

    /** Where an operator would be told. */
    public static final class Alarm extends StageBolt {

        private static final long serialVersionUID = 1L;

        @Override
        protected void process(Tuple input, BasicOutputCollector collector) {
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
        }
    }
}
