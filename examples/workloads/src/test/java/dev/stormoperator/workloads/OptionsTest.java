package dev.stormoperator.workloads;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.storm.Config;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OptionsTest {

    @Test
    void everythingHasADefault() {
        Options options = new Options(new WordCount());
        assertEquals("wordcount", options.text("name"));
        assertEquals(2, options.parallelism("count"));
        assertEquals(1, options.conf().get(Config.TOPOLOGY_WORKERS));
    }

    @Test
    void optionsAndSettingsOfStormArePassedOn() {
        Options options = new Options(new WordCount(), "--name", "wc", "--parallelism", "3", "--parallelism", "count=5",
            "--workers", "4", "--ackers", "0", "--max-spout-pending", "50", "--conf", "topology.debug=true",
            "--conf", "topology.priority=7", "--conf", "some.text=a=b");
        assertEquals(3, options.parallelism("split"));
        assertEquals(5, options.parallelism("count"));
        assertEquals(4, options.conf().get(Config.TOPOLOGY_WORKERS));
        assertEquals(0, options.conf().get(Config.TOPOLOGY_ACKER_EXECUTORS));
        assertEquals(50, options.conf().get(Config.TOPOLOGY_MAX_SPOUT_PENDING));
        assertEquals(true, options.conf().get("topology.debug"));
        assertEquals(7, options.conf().get("topology.priority"));
        assertEquals("a=b", options.conf().get("some.text"));
    }

    @Test
    void ofAnOptionAndASettingOfStormThatMeanTheSameTheLaterStands() {
        Options settings = new Options(new WordCount(), "--workers", "2", "--conf", "topology.workers=3",
            "--conf", "topology.acker.executors=0", "--conf", "topology.max.spout.pending=9");
        assertEquals(3, settings.conf().get(Config.TOPOLOGY_WORKERS));
        assertEquals(0, settings.conf().get(Config.TOPOLOGY_ACKER_EXECUTORS));
        assertEquals(9, settings.conf().get(Config.TOPOLOGY_MAX_SPOUT_PENDING));
        Options options = new Options(new WordCount(), "--conf", "topology.workers=3", "--workers", "2",
            "--conf", "topology.max.spout.pending=9", "--max-spout-pending", "0");
        assertEquals(2, options.conf().get(Config.TOPOLOGY_WORKERS));
        assertNull(options.conf().get(Config.TOPOLOGY_MAX_SPOUT_PENDING));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        --paralelism | 2       | "--paralelism" should be one of the options that --help names
        name         | wc      | "name" should be one of the options that --help names
        --parallelism| 0       | --parallelism: "0" should be a whole number, 1 or more
        --parallelism| splt=2  | --parallelism: "splt=2" should be COMPONENT=NUMBER with one of the components [sentences, split, count]
        --cpu-micros | count=x | --cpu-micros: "x" should be a whole number, 0 or more
        --workers    | two     | --workers: "two" should be a whole number, 1 or more
        --reliable   | maybe   | --reliable: "maybe" should be true or false
        --conf       | a       | --conf: "a" should be KEY=VALUE, VALUE in JSON or a plain text
        --rate       | fast    | --rate: "fast" should be steady:RATE, e.g. steady:300
        """, quoteCharacter = '\'')
    void aWrongOptionIsRefusedByNameAndValue(String option, String value, String message) {
        assertEquals(message, assertThrows(IllegalArgumentException.class,
            () -> new Options(new WordCount(), option, value)).getMessage());
    }

    @Test
    void anOptionNeedsAValue() {
        assertEquals("--name should be followed by a value", assertThrows(IllegalArgumentException.class,
            () -> new Options(new WordCount(), "--name")).getMessage());
    }

    @Test
    void helpNamesEveryOption() {
        for (Workload workload : List.of(new WordCount(), new ReferenceChain(), new TruthTopology())) {
            String help = Workload.help(workload);
            workload.ownOptions().keySet().forEach(option -> assertTrue(help.contains("--" + option + " "), option));
            assertTrue(help.contains(workload.components().toString()));
        }
    }
}
