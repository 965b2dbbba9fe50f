package dev.stormoperator.workloads;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PacingTest {

    private static int taken(Pacer pacer, long fromNanos, long toNanos, long everyNanos, double perSecond) {
        int taken = 0;
        for (long now = fromNanos; now < toNanos; now += everyNanos) {
            taken += pacer.take(now, perSecond) ? 1 : 0;
        }
        return taken;
    }

    @Test
    void tuplesKeepToTheRate() {
        assertEquals(3000, taken(new Pacer(0), 0, 10_000_000_000L, 100_000, 300), 1);
    }

    @Test
    void aPauseIsCaughtUpForATenthOfASecondAtMost() {
        Pacer pacer = new Pacer(0);
        int burst = taken(pacer, 60_000_000_000L, 60_000_001_000L, 1, 1000);
        assertEquals(101, burst);
    }

    @Test
    void aRateOfZeroSendsNothing() {
        assertEquals(0, taken(new Pacer(0), 0, 10_000_000_000L, 1_000_000, 0));
    }

    @Test
    void theCpuBurnerStopsOnceTheThreadHasUsedItsTime() {
        long[] clock = {0};
        int[] looks = {0};
        CpuBurner burner = new CpuBurner(() -> {
            looks[0]++;
            return clock[0]++ * 10_000;
        });
        burner.burn(50);
        assertEquals(6, looks[0], "one look at the beginning, then one every 10 microseconds until 50 are over");
        burner.burn(0);
        assertEquals(6, looks[0]);
    }

    @Test
    void theCpuBurnerUsesTheCpuTimeOfItsThread() {
        java.lang.management.ThreadMXBean threads = java.lang.management.ManagementFactory.getThreadMXBean();
        CpuBurner burner = new CpuBurner();
        long before = threads.getCurrentThreadCpuTime();
        for (int i = 0; i < 100; i++) {
            burner.burn(500);
        }
        assertTrue(threads.getCurrentThreadCpuTime() - before >= 50_000_000);
    }

    private static Rate ofHundredUnless(Path file) {
        Rate rate = new Rate(RateProfile.parse("--rate", "100"), 0);
        rate.follow(file.toString());
        return rate;
    }

    @Test
    void theRateFileTakesThePlaceOfTheProfile(@TempDir Path directory) throws IOException {
        Path file = directory.resolve("rate");
        Rate rate = ofHundredUnless(file);
        assertEquals(100, rate.perSecond(5_000));
        Files.writeString(file, "step:200,300@10\n");
        Files.setLastModifiedTime(file, FileTime.fromMillis(6_000));
        assertEquals(100, rate.perSecond(5_500), "looked at less than a second ago");
        assertEquals(200, rate.perSecond(6_000));
        assertEquals(300, rate.perSecond(16_000), "ten seconds after the file was written");
        Files.writeString(file, "nonsense");
        Files.setLastModifiedTime(file, FileTime.fromMillis(17_000));
        assertEquals(300, rate.perSecond(18_000), "what is wrong changes nothing");
        Files.delete(file);
        assertEquals(300, rate.perSecond(20_000));
    }

    @Test
    void theRateFileIsLookedAtAlsoWhileTheClockIsBehindWhereItWas(@TempDir Path directory) throws IOException {
        Path file = directory.resolve("rate");
        Rate rate = ofHundredUnless(file);
        assertEquals(100, rate.perSecond(3_600_000));
        Files.writeString(file, "200");
        Files.setLastModifiedTime(file, FileTime.fromMillis(6_000));
        assertEquals(200, rate.perSecond(7_000), "an hour earlier by the clock");
    }
}
