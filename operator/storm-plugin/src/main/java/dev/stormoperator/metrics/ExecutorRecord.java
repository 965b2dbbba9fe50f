package dev.stormoperator.metrics;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** One executor: its tasks and the thread that runs them. */
final class ExecutorRecord {
    /** Where threads are named otherwise than known here, looking must end some time. */
    private static final int MOST_LOOKS = 1000;

    private final String component;
    private final List<TaskRecord> tasks = new CopyOnWriteArrayList<>();
    private volatile Long threadId;
    private int looks;

    ExecutorRecord(String component) {
        this.component = component;
    }

    void add(TaskRecord task) {
        tasks.add(task);
    }

    /** In ascending order of id: Storm makes them so. */
    List<TaskRecord> tasks() {
        return tasks;
    }

    String component() {
        return component;
    }

    int firstTask() {
        return tasks.get(0).id();
    }

    int lastTask() {
        return tasks.get(tasks.size() - 1).id();
    }

    /** How the name of the executor's thread ends. */
    String threadNameEnding() {
        return "executor[" + firstTask() + ", " + lastTask() + "]";
    }

    /** The operating system's id of the executor's thread, or null while unknown. */
    Long threadId() {
        return threadId;
    }

    void threadIs(Long id) {
        threadId = id;
    }

    /** Takes the calling thread as the executor's if its name says so; a bolt may emit from others. */
    void noticeThread() {
        if (threadId == null && looks < MOST_LOOKS) {
            looks++;
            if (Thread.currentThread().getName().endsWith(threadNameEnding())) {
                threadId = OsThreads.current();
            }
        }
    }
}
