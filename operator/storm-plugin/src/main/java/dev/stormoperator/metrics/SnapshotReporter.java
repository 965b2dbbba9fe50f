package dev.stormoperator.metrics;

import com.codahale.metrics.MetricRegistry;
import java.io.IOException;
import java.net.UnknownHostException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.storm.Config;
import org.apache.storm.metrics2.MetricRegistryProvider;
import org.apache.storm.metrics2.reporters.StormReporter;
import org.apache.storm.utils.ConfigUtils;
import org.apache.storm.utils.Utils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes this worker's snapshot file, once a period, from one background thread.
 *
 * <p>Switched on for every topology by {@code storm.topology.metrics.system.reporters} in storm.yaml. It also puts
 * {@link TrafficHook} on the topology's list of task hooks, since a topology that names hooks of its own would
 * otherwise replace the list of storm.yaml.
 */
public class SnapshotReporter implements StormReporter {
    private static final Logger LOG = LoggerFactory.getLogger(SnapshotReporter.class);
    private static final double NANOS_PER_SECOND = 1e9;

    private final Thread removeAtExit = new Thread(this::removeFile, "storm-operator-metrics-exit");
    private final long startedAtMs = System.currentTimeMillis();
    private Map<String, Object> conf;
    private StormMetrics storm;
    private MetricsSettings settings;
    private ScheduledExecutorService timer;
    private SnapshotFile file;
    private WorkerMetrics worker;
    private WorkerSnapshot snapshot;
    private int port;
    private long lastNanos;
    private boolean failing;
    private boolean stopped;

    @Override
    public void prepare(MetricRegistryProvider provider, Map<String, Object> topoConf, Map<String, Object> reporterConf) {
        try {
            conf = topoConf;
            settings = MetricsSettings.from(topoConf);
            storm = new StormMetrics(provider);
            addHook(topoConf);
        } catch (RuntimeException | LinkageError e) {
            // Storm would let the worker die of it.
            settings = null;
            LOG.error("storm-operator: this worker will write no metrics: {}", e.toString(), e);
        }
    }

    @Override
    @Deprecated
    public void prepare(MetricRegistry registry, Map<String, Object> topoConf, Map<String, Object> reporterConf) {
        LOG.error("storm-operator: this worker will write no metrics: its Storm is older than 2.3");
    }

    private static void addHook(Map<String, Object> topoConf) {
        List<Object> hooks = new ArrayList<>();
        if (topoConf.get(Config.TOPOLOGY_AUTO_TASK_HOOKS) instanceof List<?> present) {
            hooks.addAll(present);
        }
        if (hooks.stream().noneMatch(SnapshotReporter::isTrafficHook)) {
            hooks.add(TrafficHook.class.getName());
            topoConf.put(Config.TOPOLOGY_AUTO_TASK_HOOKS, hooks);
        }
    }

    private static boolean isTrafficHook(Object className) {
        try {
            return TrafficHook.class.isAssignableFrom(Class.forName(String.valueOf(className)));
        } catch (ClassNotFoundException | LinkageError e) {
            return false;
        }
    }

    @Override
    public void start() {
        if (settings == null) {
            return;
        }
        timer = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task, "storm-operator-metrics");
            thread.setDaemon(true);
            return thread;
        });
        lastNanos = System.nanoTime();
        timer.scheduleWithFixedDelay(this::report, settings.periodMs(), settings.periodMs(), TimeUnit.MILLISECONDS);
        Runtime.getRuntime().addShutdownHook(removeAtExit);
    }

    @Override
    public void stop() {
        if (timer == null) {
            return;
        }
        timer.shutdown();
        removeFile();
        WorkerMetrics.forget(topologyId(), port);
        try {
            Runtime.getRuntime().removeShutdownHook(removeAtExit);
        } catch (IllegalStateException e) {
            // The JVM is exiting, and has run it or will.
        }
    }

    @Override
    public void close() {
        stop();
    }

    /** One period's work; never throws, since that would end the timer. */
    void report() {
        try {
            writeSnapshot();
            failing = false;
        } catch (Throwable e) { // a worker may outlive an OutOfMemoryError, too
            boolean isNew = !failing;
            failing = true;
            if (isNew) {
                warn(e);
            }
        }
    }

    private void warn(Throwable failure) {
        try {
            LOG.warn("storm-operator: cannot write the snapshot of this worker (trying again each {} ms): {}",
                    settings.periodMs(), failure.toString(), failure);
        } catch (Throwable again) {
            // There is no memory to say it with.
        }
    }

    private synchronized void writeSnapshot() throws IOException {
        if (stopped || file == null && !workerIsKnown()) {
            return;
        }
        long now = System.nanoTime();
        snapshot.advance(shareOfTimeInUse() * (now - lastNanos) / NANOS_PER_SECOND);
        lastNanos = now;
        findThreads();
        file.write(snapshot.toJson(System.currentTimeMillis()));
    }

    /** How much of the time the hook was in place: always, but in the benchmark of its cost. */
    double shareOfTimeInUse() {
        return 1;
    }

    /** Where the snapshots are, or null as long as that is not known. */
    synchronized Path snapshotPath() {
        return file == null ? null : file.path();
    }

    private boolean workerIsKnown() {
        OptionalInt knownPort = storm.workerPort();
        if (knownPort.isEmpty()) {
            return false;
        }
        port = knownPort.getAsInt();
        worker = WorkerMetrics.of(topologyId(), port);
        WorkerSnapshot.Header header = new WorkerSnapshot.Header(
                topologyId(), host(), port, ProcessHandle.current().pid(), startedAtMs, settings.exact());
        snapshot = new WorkerSnapshot(header, worker, storm, ConfigUtils.samplingRate(conf));
        LeftSnapshots.removeFrom(settings.directory(), Instant.now());
        file = new SnapshotFile(settings.directory(), topologyId(), port);
        return true;
    }

    private String topologyId() {
        return (String) conf.get(Config.STORM_ID);
    }

    private String host() {
        if (conf.get(Config.STORM_LOCAL_HOSTNAME) instanceof String named) {
            return named;
        }
        try {
            return Utils.hostname();
        } catch (UnknownHostException e) {
            return "localhost";
        }
    }

    /** Executors that have been idle since they started have not told their thread. */
    private void findThreads() {
        Set<String> endings = new HashSet<>();
        for (ExecutorRecord executor : worker.executors()) {
            if (executor.threadId() == null && !executor.tasks().isEmpty()) {
                endings.add(executor.threadNameEnding());
            }
        }
        if (endings.isEmpty()) {
            return;
        }
        Map<String, Long> found = OsThreads.byNameEnding(endings);
        for (ExecutorRecord executor : worker.executors()) {
            if (executor.threadId() == null && !executor.tasks().isEmpty()) {
                executor.threadIs(found.get(executor.threadNameEnding()));
            }
        }
    }

    private synchronized void removeFile() {
        stopped = true;
        if (file == null) {
            return;
        }
        try {
            file.delete();
        } catch (IOException e) {
            LOG.warn("storm-operator: cannot remove {}: {}", file.path(), e.toString());
        }
    }
}
