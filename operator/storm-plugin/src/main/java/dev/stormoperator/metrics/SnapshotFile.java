package dev.stormoperator.metrics;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** The file of one worker's snapshots: whoever reads it sees a whole one, or none. */
final class SnapshotFile {
    private final Path path;
    private final Path temporary;

    SnapshotFile(Path directory, String topologyId, int port) {
        String name = topologyId + "@" + port + ".json";
        path = directory.resolve(name);
        // A dot first, so that a reader who lists the directory for *.json passes it by; one name per worker, so that
        // what a killed worker leaves is overwritten by the next.
        temporary = directory.resolve("." + name + ".tmp");
    }

    Path path() {
        return path;
    }

    void write(String content) throws IOException {
        try {
            Files.writeString(temporary, content);
        } catch (NoSuchFileException e) {
            Files.createDirectories(path.getParent());
            Files.writeString(temporary, content);
        }
        Files.move(temporary, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }

    void delete() throws IOException {
        Files.deleteIfExists(temporary);
        Files.deleteIfExists(path);
    }
}
