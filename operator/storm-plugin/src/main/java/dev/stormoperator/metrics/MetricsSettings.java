package dev.stormoperator.metrics;

import java.nio.file.Path;
import java.util.Map;
import org.apache.storm.utils.ConfigUtils;
import org.apache.storm.utils.ObjectReader;

/** The keys {@code storm_operator.metrics.*} of storm.yaml (docs/reference/interfaces.md). */
record MetricsSettings(Path directory, boolean exact, long periodMs) {
    private static final String DIRECTORY = "storm_operator.metrics.dir";
    private static final String EXACT = "storm_operator.metrics.exact";
    private static final String PERIOD_MS = "storm_operator.metrics.period.ms";
    private static final int DEFAULT_PERIOD_MS = 1000;
    private static final int SHORTEST_PERIOD_MS = 50;

    static MetricsSettings from(Map<String, Object> conf) {
        return new MetricsSettings(directory(conf), isExact(conf), periodMs(conf));
    }

    private static long periodMs(Map<String, Object> conf) {
        Object value = conf.get(PERIOD_MS);
        if (value == null) {
            return DEFAULT_PERIOD_MS;
        }
        if (value instanceof Number number && number.longValue() >= SHORTEST_PERIOD_MS) {
            return number.longValue();
        }
        throw new IllegalArgumentException(
                PERIOD_MS + " is " + value + ", must be a number of milliseconds, at least " + SHORTEST_PERIOD_MS);
    }

    /** Apart from the others because every task's hook asks for it, also where the others are malformed. */
    static boolean isExact(Map<String, Object> conf) {
        return ObjectReader.getBoolean(conf.get(EXACT), false);
    }

    private static Path directory(Map<String, Object> conf) {
        String named = ObjectReader.getString(conf.get(DIRECTORY), null);
        if (named != null) {
            return Path.of(named);
        }
        return Path.of(ConfigUtils.absoluteStormLocalDir(conf), "storm-operator-metrics");
    }
}
