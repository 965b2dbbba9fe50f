package dev.stormoperator.workloads;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.storm.shade.net.minidev.json.JSONValue;
import org.apache.storm.task.TopologyContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What one task has sent and received, exactly, in a file that tests compare with measurements:
 * {@code <directory>/<topology id>-<task>.json}, written about every second, and within a tenth of one after the file
 * {@code <directory>/write-now} has changed. Counts are since the task started.
 */
final class GroundTruth {

    static final String REQUEST = "write-now";

    private static final long MILLIS_BETWEEN_WRITES = 1_000;
    private static final Logger LOG = LoggerFactory.getLogger(GroundTruth.class);
    private static final ScheduledExecutorService WRITER = Executors.newSingleThreadScheduledExecutor(run -> {
        Thread thread = new Thread(run, "ground-truth");
        thread.setDaemon(true);
        return thread;
    });

    /** One end of an edge: the other task, and the stream. */
    record Edge(int task, String stream) implements Comparable<Edge> {
        @Override
        public int compareTo(Edge other) {
            return task != other.task ? Integer.compare(task, other.task) : stream.compareTo(other.stream);
        }
    }

    private final String topologyId;
    private final int task;
    private final String component;
    private final Path directory;
    private final Map<Edge, Long> sent = new TreeMap<>();
    private final Map<Edge, Long> received = new TreeMap<>();
    private FileTime lastRequest;
    private long writtenAtMillis;

    GroundTruth(Path directory, String topologyId, int task, String component) {
        this.directory = directory;
        this.topologyId = topologyId;
        this.task = task;
        this.component = component;
    }

    /** Counts for the task of {@code context} and writes from now on. */
    static GroundTruth of(TopologyContext context, String directory) {
        GroundTruth truth = new GroundTruth(Path.of(directory), context.getStormId(), context.getThisTaskId(),
            context.getThisComponentId());
        WRITER.scheduleWithFixedDelay(() -> truth.writeIfDue(System.currentTimeMillis()), 100, 100, TimeUnit.MILLISECONDS);
        return truth;
    }

    /** A tuple went out on {@code stream} to each of {@code targets}. */
    synchronized void sent(String stream, List<Integer> targets) {
        targets.forEach(target -> sent.merge(new Edge(target, stream), 1L, Long::sum));
    }

    /** A tuple came in from {@code source} on {@code stream}. */
    synchronized void received(String stream, int source) {
        received.merge(new Edge(source, stream), 1L, Long::sum);
    }

    void writeIfDue(long nowMillis) {
        try {
            FileTime request = request();
            boolean requested = request != null && !request.equals(lastRequest);
            if (requested || Math.abs(nowMillis - writtenAtMillis) >= MILLIS_BETWEEN_WRITES) {
                write(nowMillis);
                lastRequest = request;
                writtenAtMillis = nowMillis;
            }
        } catch (IOException | RuntimeException e) {
            LOG.warn("Ground truth of task {} cannot be written to {}", task, directory, e);
        }
    }

    private FileTime request() throws IOException {
        try {
            return Files.getLastModifiedTime(directory.resolve(REQUEST));
        } catch (NoSuchFileException e) {
            return null;
        }
    }

    private void write(long nowMillis) throws IOException {
        Files.createDirectories(directory);
        String name = topologyId + "-" + task + ".json";
        Path temporary = directory.resolve(name + ".tmp");
        Files.write(temporary, json(nowMillis).getBytes(StandardCharsets.UTF_8));
        Files.move(temporary, directory.resolve(name), StandardCopyOption.ATOMIC_MOVE);
    }

    private synchronized String json(long nowMillis) {
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("topology_id", topologyId);
        document.put("task", task);
        document.put("component", component);
        document.put("pid", ProcessHandle.current().pid());
        document.put("written_at_ms", nowMillis);
        document.put("sent", counts(sent, "target_task"));
        document.put("received", counts(received, "source_task"));
        return JSONValue.toJSONString(document);
    }

    private static List<Map<String, Object>> counts(Map<Edge, Long> counted, String taskField) {
        List<Map<String, Object>> counts = new ArrayList<>();
        counted.forEach((edge, tuples) -> {
            Map<String, Object> count = new LinkedHashMap<>();
            count.put(taskField, edge.task());
            count.put("stream", edge.stream());
            count.put("tuples", tuples);
            counts.add(count);
        });
        return counts;
    }
}
