package dev.stormoperator.workloads;

import java.util.List;
import java.util.Map;
import org.apache.storm.StormSubmitter;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.topology.TopologyBuilder;

/** A topology that can be submitted from the command line. */
interface Workload {

    /** What the topology is called unless {@code --name} says otherwise. */
    String name();

    /** The rate unless {@code --rate} says otherwise. */
    String rate();

    /** The components, each with its executors unless {@code --parallelism} says otherwise. */
    Map<String, Integer> components();

    /** Further options: their default and their meaning, by name. */
    default Map<String, List<String>> ownOptions() {
        return Map.of();
    }

    void build(TopologyBuilder builder, Options options);

    /** Submits {@code workload} as {@code args} say, prints help, or ends the process with 2 and a message. */
    static void run(Workload workload, String... args) throws Exception {
        if (List.of(args).contains("--help")) {
            System.out.print(help(workload));
            return;
        }
        Options options;
        StormTopology topology;
        try {
            options = new Options(workload, args);
            topology = topology(workload, options);
        } catch (IllegalArgumentException e) {
            System.err.println(workload.getClass().getSimpleName() + ": " + e.getMessage());
            System.exit(2);
            return;
        }
        if (options.flag("dry-run")) {
            System.out.println(options.text("name") + ": " + options.parallelism());
        } else {
            StormSubmitter.submitTopology(options.text("name"), options.conf(), topology);
        }
    }

    static StormTopology topology(Workload workload, Options options) {
        TopologyBuilder builder = new TopologyBuilder();
        workload.build(builder, options);
        return builder.createTopology();
    }

    static String help(Workload workload) {
        StringBuilder help = new StringBuilder(String.format("""
            Submits %s. Options, each followed by a value:
              --name TEXT                   name of the topology (%s)
              --rate PROFILE                tuples a second, all spout tasks together (%s): steady:300,
                                            step:300,600@60, sine:100..500/120s, random:50..400/10s;seed=7,
                                            spike:200,900@60+10s
              --rate-file PATH              a file on the workers' machines, looked at once a second, whose profile
                                            takes the place of --rate
              --parallelism NUMBER | COMPONENT=NUMBER,...   executors (%s)
              --cpu-micros NUMBER | COMPONENT=NUMBER,...    CPU microseconds for each tuple (0)
              --workers NUMBER              (1)
              --ackers NUMBER               (1)
              --max-spout-pending NUMBER    0 is no limit (0)
              --reliable true|false         whether Storm tracks the spouts' tuples (true)
              --conf KEY=JSON               any setting of Storm, may be repeated; of those and options that mean the
                                            same, the later stands
              --dry-run true|false          build the topology, do not submit it (false)
            """, workload.getClass().getSimpleName(), workload.name(), workload.rate(), workload.components()));
        workload.ownOptions().forEach((option, meaning) ->
            help.append(String.format("  --%-28s%s (%s)%n", option, meaning.get(1), meaning.get(0))));
        return help.toString();
    }
}
