package dev.stormoperator.metrics;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LeftSnapshotsTest {
    private static final Duration TWO_HOURS = Duration.ofHours(2);
    private static final long OWN_PID = ProcessHandle.current().pid();

    @TempDir
    Path folder;

    private final Instant now = Instant.now();

    private Path snapshot(String name, String content, Instant written) throws IOException {
        Path file = Files.writeString(folder.resolve(name), content);
        Files.setLastModifiedTime(file, FileTime.from(written));
        return file;
    }

    private static String of(long pid) {
        return "{\"version\":1,\"topology_id\":\"t-1\",\"host\":\"h\",\"port\":6700,\"pid\":" + pid + ",\"executors\":[]}";
    }

    private static long goneProcess() throws Exception {
        Process process = new ProcessBuilder("true").start();
        process.waitFor();
        return process.pid();
    }

    @Test
    void removesWhatADeadWorkerWroteLongAgo() throws Exception {
        long gone = goneProcess();
        Path left = snapshot("t-1@6700.json", of(gone), now.minus(TWO_HOURS));
        Path half = snapshot(".t-1@6701.json.tmp", of(gone), now.minus(TWO_HOURS));
        LeftSnapshots.removeFrom(folder, now);
        assertFalse(Files.exists(left));
        assertFalse(Files.exists(half));
    }

    @Test
    void keepsLastWordsThatTheAgentMayNotHaveRead() throws Exception {
        Path fresh = snapshot("t-1@6700.json", of(goneProcess()), now.minus(Duration.ofMinutes(59)));
        LeftSnapshots.removeFrom(folder, now);
        assertTrue(Files.exists(fresh));
    }

    @Test
    void keepsThatOfALivingWorkerHoweverLongItHasNotWritten() throws Exception {
        Instant later = now.plus(TWO_HOURS);
        Path living = snapshot("t-1@6700.json", of(OWN_PID), now.plusSeconds(60));
        LeftSnapshots.removeFrom(folder, later);
        assertTrue(Files.exists(living));
    }

    @Test
    void removesThatOfAWorkerWhosePidAnotherProcessHasNow() throws Exception {
        Path left = snapshot("t-1@6700.json", of(OWN_PID), now.minus(Duration.ofDays(365)));
        LeftSnapshots.removeFrom(folder, now);
        assertFalse(Files.exists(left));
    }

    @Test
    void leavesWhatIsNoSnapshotOrDoesNotSayWhoseItIs() throws Exception {
        Path strange = snapshot("notes.json", of(goneProcess()), now.minus(TWO_HOURS));
        Path nobodys = snapshot("t-1@6700.json", "{", now.minus(TWO_HOURS));
        LeftSnapshots.removeFrom(folder, now);
        assertTrue(Files.exists(strange));
        assertTrue(Files.exists(nobodys));
    }

    @Test
    void hasNothingToDoWithoutAFolder() {
        assertDoesNotThrow(() -> LeftSnapshots.removeFrom(folder.resolve("none"), now));
    }
}
