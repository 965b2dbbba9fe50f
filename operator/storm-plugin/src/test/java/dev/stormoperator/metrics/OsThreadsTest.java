package dev.stormoperator.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class OsThreadsTest {
    private static final String SPLIT = "Thread-16-split-executor[2, 3]";

    @Test
    void findsAThreadByTheFirstBytesOfItsNameOrFromJdk26OnByItsEnds() {
        assertEquals(7, OsThreads.idOf(SPLIT, Map.of("Thread-16-split", 7L, "Thread-17-count", 8L)));
        assertEquals(7, OsThreads.idOf(SPLIT, Map.of("Thread-..[2, 3]", 7L, "Thread-..[4, 4]", 8L)));
        assertEquals(7, OsThreads.idOf("a-executor[1]", Map.of("a-executor[1]", 7L)));
    }

    @Test
    void aNameThatMayMeanTwoThreadsOrNoneIsOfNobody() {
        assertNull(OsThreads.idOf(SPLIT, Map.of("Thread-16-split", 7L, "Thread-..[2, 3]", 8L)));
        assertNull(OsThreads.idOf(SPLIT, Map.of("Thread-16-spli", 7L, "Thread-..[2, 4]", 8L)));
    }

    @Test
    void findsAnIdleExecutorByItsName() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        AtomicLong id = new AtomicLong();
        Thread idle = new Thread(() -> {
            id.set(OsThreads.current());
            started.countDown();
            try {
                end.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }, "Thread-987-waiting-executor[41, 42]");
        idle.start();
        started.await();
        Map<String, Long> found = OsThreads.byNameEnding(Set.of("executor[41, 42]", "executor[9, 9]"));
        end.countDown();
        idle.join();
        assertEquals(Map.of("executor[41, 42]", id.get()), found);
    }
}
