package dev.stormoperator.metrics;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Snapshots whose workers were killed: nobody else removes them, and where the folder is a small memory they fill it.
 *
 * <p>A file goes when its process is gone and it has not been written for an hour, so that the agent has long read the
 * last words in it. One that does not say whose it is stays.
 */
final class LeftSnapshots {
    private static final Logger LOG = LoggerFactory.getLogger(LeftSnapshots.class);
    private static final Pattern NAME = Pattern.compile("\\.?.+@\\d+\\.json(\\.tmp)?");
    private static final Pattern PID = Pattern.compile("\"pid\"\\s*:\\s*(\\d{1,18})");
    private static final int HEAD_BYTES = 1024;
    private static final Duration KEPT = Duration.ofHours(1);
    private static final Duration START_TOLERANCE = Duration.ofSeconds(1);

    private LeftSnapshots() {}

    /** Never throws: a worker lives on without it. */
    static void removeFrom(Path directory, Instant now) {
        if (!Files.isDirectory(directory)) {
            return;
        }
        try {
            for (Path file : snapshotsIn(directory)) {
                removeIfLeft(file, now);
            }
        } catch (IOException | RuntimeException e) {
            LOG.warn("storm-operator: cannot look for snapshots of dead workers in {}: {}", directory, e.toString());
        }
    }

    private static List<Path> snapshotsIn(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> NAME.matcher(file.getFileName().toString()).matches()).toList();
        }
    }

    private static void removeIfLeft(Path file, Instant now) {
        try {
            Instant written = Files.getLastModifiedTime(file).toInstant();
            if (written.isBefore(now.minus(KEPT)) && writerIsGone(file, written)) {
                Files.deleteIfExists(file);
                LOG.info("storm-operator: removed {}, which a worker that was killed left", file);
            }
        } catch (IOException e) {
            LOG.debug("storm-operator: cannot tell whose {} is, or not remove it: {}", file, e.toString());
        }
    }

    private static boolean writerIsGone(Path file, Instant written) throws IOException {
        Matcher pid = PID.matcher(head(file));
        if (!pid.find()) {
            return false;
        }
        return ProcessHandle.of(Long.parseLong(pid.group(1)))
                .map(process -> isLater(process, written))
                .orElse(true);
    }

    private static String head(Path file) throws IOException {
        try (InputStream content = Files.newInputStream(file)) {
            return new String(content.readNBytes(HEAD_BYTES), StandardCharsets.ISO_8859_1);
        }
    }

    /** Whether the pid belongs to a process that started after the file was written. */
    private static boolean isLater(ProcessHandle process, Instant written) {
        return process.info()
                .startInstant()
                .map(started -> started.isAfter(written.plus(START_TOLERANCE)))
                .orElse(false);
    }
}
