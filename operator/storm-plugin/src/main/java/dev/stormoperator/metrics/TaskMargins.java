package dev.stormoperator.metrics;

import dev.stormoperator.metrics.TaskCounts.Source;
import java.util.Collections;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Totals of one task, by stream and by source, from whichever sample is finer: Storm's (one in twenty) or the hook's.
 * While the hook looks at every call they are exact.
 */
final class TaskMargins {
    private final Map<String, BestCount> emitted = new TreeMap<>();
    private final Map<String, BestCount> transferred = new TreeMap<>();
    private final Map<Source, BestCount> executedFrom = new TreeMap<>(TaskMargins::compare);
    private final BestCount acked = new BestCount();

    private static int compare(Source a, Source b) {
        int byComponent = a.component().compareTo(b.component());
        return byComponent != 0 ? byComponent : a.stream().compareTo(b.stream());
    }

    void advance(TaskCounts hook, StormMetrics.Counts storm, boolean hookIsFiner) {
        Map<String, StreamCounts> streams = hook.streams();
        for (String stream : union(streams.keySet(), storm.emitted().keySet())) {
            StreamCounts counts = streams.get(stream);
            count(emitted, stream)
                    .advance(counts == null ? 0 : counts.emitted(), storm.emitted().getOrDefault(stream, 0L), hookIsFiner);
            count(transferred, stream)
                    .advance(
                            counts == null ? 0 : counts.transferred(),
                            storm.transferred().getOrDefault(stream, 0L),
                            hookIsFiner);
        }
        for (Source source : union(hook.executedFrom().keySet(), storm.executedFrom().keySet())) {
            var counted = hook.executedFrom().get(source);
            count(executedFrom, source)
                    .advance(counted == null ? 0 : counted.get(), storm.executedFrom().getOrDefault(source, 0L), hookIsFiner);
        }
        acked.advance(hook.acked(), storm.acked(), hookIsFiner);
    }

    private static <K> BestCount count(Map<K, BestCount> counts, K key) {
        return counts.computeIfAbsent(key, any -> new BestCount());
    }

    private static <K> Set<K> union(Set<K> a, Set<K> b) {
        Set<K> all = new HashSet<>(a);
        all.addAll(b);
        return all;
    }

    Map<String, BestCount> emitted() {
        return Collections.unmodifiableMap(emitted);
    }

    Map<String, BestCount> transferred() {
        return Collections.unmodifiableMap(transferred);
    }

    Map<Source, BestCount> executedFrom() {
        return Collections.unmodifiableMap(executedFrom);
    }

    long acked() {
        return acked.total();
    }
}
