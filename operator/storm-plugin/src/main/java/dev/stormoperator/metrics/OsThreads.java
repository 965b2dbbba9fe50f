package dev.stormoperator.metrics;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;

/** Which thread of the operating system a Java thread is, from /proc alone (Linux). */
final class OsThreads {
    private static final Path SELF = Path.of("/proc/thread-self");
    private static final Path ALL = Path.of("/proc/self/task");
    /** The kernel keeps this many bytes of a thread's name. */
    private static final int NAME_BYTES = 15;
    /** What JDK 26 and later give the kernel of a longer name: so many first and last bytes, and dots between. */
    private static final int FIRST_BYTES = 7;
    private static final int LAST_BYTES = 6;
    private static final String BETWEEN = "..";

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
     * <p>For executors that have not done anything yet. The kernel's name is a part of the Java name
     * ("Thread-16-split-executor[2, 3]"): its first bytes, which hold a number that only one thread has, or from JDK 26
     * on its two ends, which hold the end of the executor's tasks. A name that two threads share is left out.
     */
    static Map<String, Long> byNameEnding(Set<String> endings) {
        Map<String, Long> found = new HashMap<>();
        Map<String, Long> byKernelName = byKernelName();
        for (Thread thread : liveThreads()) {
            String name = thread.getName();
            int bracket = name.lastIndexOf("executor[");
            if (bracket >= 0 && endings.contains(name.substring(bracket))) {
                Long id = idOf(name, byKernelName);
                if (id != null) {
                    found.put(name.substring(bracket), id);
                }
            }
        }
        return found;
    }

    /** Id of the thread of a Java name; null where none or more than one may be meant. */
    static Long idOf(String javaName, Map<String, Long> byKernelName) {
        Set<Long> ids = kernelNames(javaName).stream()
                .map(byKernelName::get)
                .filter(Objects::nonNull)
                .collect(Collectors.toSet());
        return ids.size() == 1 ? ids.iterator().next() : null;
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

    /** The form with dots is what the JDK's change says (JDK-8368124); it was not tried on a JDK that has it. */
    private static Set<String> kernelNames(String javaName) {
        byte[] bytes = javaName.getBytes(StandardCharsets.UTF_8);
        if (bytes.length <= NAME_BYTES) {
            return Set.of(text(bytes, 0, bytes.length).stripTrailing());
        }
        String ends = text(bytes, 0, FIRST_BYTES) + BETWEEN + text(bytes, bytes.length - LAST_BYTES, LAST_BYTES);
        return new HashSet<>(List.of(text(bytes, 0, NAME_BYTES).stripTrailing(), ends.stripTrailing()));
    }

    private static String text(byte[] bytes, int from, int length) {
        return new String(bytes, from, length, StandardCharsets.ISO_8859_1);
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
