package dev.stormoperator.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SnapshotFileTest {
    @TempDir
    Path folder;

    private List<String> names() throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).toList();
        }
    }

    @Test
    void overwritesWhatADeadWorkerLeftAndIsGoneAfterwards() throws IOException {
        Files.writeString(folder.resolve("t-1@6700.json"), "old");
        Files.writeString(folder.resolve(".t-1@6700.json.tmp"), "half of an old o");
        SnapshotFile file = new SnapshotFile(folder, "t-1", 6700);
        file.write("new");
        assertEquals("new", Files.readString(folder.resolve("t-1@6700.json")));
        assertEquals(List.of("t-1@6700.json"), names());
        file.delete();
        assertEquals(List.of(), names());
    }

    @Test
    void makesItsDirectory() throws IOException {
        SnapshotFile file = new SnapshotFile(folder.resolve("a/b"), "t-1", 6700);
        file.write("x");
        assertTrue(Files.exists(folder.resolve("a/b/t-1@6700.json")));
    }

    @Test
    void aReaderNeverSeesAPart() throws Exception {
        SnapshotFile file = new SnapshotFile(folder, "t-1", 6700);
        String first = "a".repeat(200_000);
        String second = "b".repeat(100_000);
        file.write(first);
        AtomicBoolean done = new AtomicBoolean();
        CompletableFuture<Boolean> sawAPart = CompletableFuture.supplyAsync(() -> {
            boolean part = false;
            while (!done.get()) {
                try {
                    String seen = Files.readString(file.path());
                    part |= !seen.equals(first) && !seen.equals(second);
                } catch (IOException e) {
                    part = true;
                }
            }
            return part;
        });
        for (int i = 0; i < 200; i++) {
            file.write(i % 2 == 0 ? second : first);
        }
        done.set(true);
        assertFalse(sawAPart.get());
    }
}
