package dev.stormoperator.metrics;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** Which thread of the operating system a Java thread is, from /proc alone (Linux). */
final class OsThreads {
    private static final Path SELF = Path.of("/proc/thread-self");
    private static final Path ALL = Path.of("/proc/self/task");
    /** The kernel keeps this many bytes of a thread's name. */
    private static final int NAME_BYTES = 15;

    private OsThreads() {}

    /** Id of the calling thread, or null where it cannot be known. */
    static Long current() {
        try {
            return Long.valueOf(Files.readSymbolicLink(SELF).getFileName().toString());
        } catch (IOException | RuntimeException e) {
            return null;
        }
    }

    /**
     * Ids of the live Java threads whose name ends with one of {@code endings}, by ending.
     *
     * <p>For executors that have not done anything yet. The kernel's name is the first bytes of the Java name, which
     * for Storm's executors hold a number that only one thread has ("Thread-16-split-executor[2, 3]"); a name that two
     * threads share is left out.
     */
    static Map<String, Long> byNameEnding(Set<String> endings) {
        Map<String, Long> found = new HashMap<>();
        Map<String, Long> byKernelName = byKernelName();
        for (Thread thread : liveThreads()) {
            String name = thread.getName();
            int bracket = name.lastIndexOf("executor[");
            if (bracket >= 0 && endings.contains(name.substring(bracket))) {
                Long id = byKernelName.get(kernelName(name));
                if (id != null) {
                    found.put(name.substring(bracket), id);
                }
            }
        }
        return found;
    }

    private static Map<String, Long> byKernelName() {
        Map<String, Long> ids = new HashMap<>();
        Set<String> shared = new HashSet<>();
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(ALL)) {
            for (Path thread : threads) {
                readName(thread, ids, shared);
            }
        } catch (IOException | RuntimeException e) {
            return Map.of();
        }
        ids.keySet().removeAll(shared);
        return ids;
    }

    private static void readName(Path thread, Map<String, Long> ids, Set<String> shared) {
        try {
            String name = Files.readString(thread.resolve("comm"), StandardCharsets.ISO_8859_1).stripTrailing();
            if (ids.put(name, Long.valueOf(thread.getFileName().toString())) != null) {
                shared.add(name);
            }
        } catch (IOException e) {
            // It ended between the listing and the reading.
        }
    }

    private static String kernelName(String javaName) {
        byte[] bytes = javaName.getBytes(StandardCharsets.UTF_8);
        int length = Math.min(bytes.length, NAME_BYTES);
        return new String(bytes, 0, length, StandardCharsets.ISO_8859_1).stripTrailing();
    }

    private static Thread[] liveThreads() {
        ThreadGroup root = Thread.currentThread().getThreadGroup();
        while (root.getParent() != null) {
            root = root.getParent();
        }
        Thread[] threads = new Thread[root.activeCount() * 2 + 16];
        int count = root.enumerate(threads);
        return Arrays.copyOf(threads, count);
    }
}
