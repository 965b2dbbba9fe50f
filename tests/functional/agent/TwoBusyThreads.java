import java.nio.file.Files;
import java.nio.file.Path;

/** Two threads that burn CPU until the program is told to end by the end of its input; prints their thread ids. */
public class TwoBusyThreads {
    static volatile long sink;

    public static void main(String[] arguments) throws Exception {
        for (String name : new String[] {"first", "second"}) {
            Thread thread = new Thread(() -> burn(name), name);
            thread.setDaemon(true);
            thread.start();
        }
        System.in.read();
    }

    static void burn(String name) {
        try {
            String task = Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString();
            synchronized (System.out) {
                System.out.println(name + " " + task);
            }
        } catch (java.io.IOException failure) {
            throw new java.io.UncheckedIOException(failure);
        }
        for (long i = 0; ; i++) {
            sink = i;
        }
    }
}
