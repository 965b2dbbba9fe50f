package dev.stormoperator.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class OsThreadsTest {
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
