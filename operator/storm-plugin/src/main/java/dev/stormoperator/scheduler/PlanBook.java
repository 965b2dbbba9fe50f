package dev.stormoperator.scheduler;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads the plans of a round and remembers the last good one of each topology, for rounds in which that fails. */
final class PlanBook {

    private static final Logger LOG = LoggerFactory.getLogger(PlanBook.class);

    private final PlanStore store;
    private final Map<String, Plan> lastGood = new HashMap<>();

    PlanBook(PlanStore store) {
        this.store = store;
    }

    /**
     * What is known about the plan of one topology.
     *
     * @param plan       the plan to follow, or null: this reading, or the last good one when this one failed
     * @param rejection  why the document in the store cannot be followed, or null
     * @param unreadable why the store could not be read, or null
     */
    record Entry(Plan plan, MalformedPlanException rejection, String unreadable) {

        /** Without a plan and without knowing that there is none: nothing may move. */
        boolean mustNotMove() {
            return plan == null && (rejection != null || unreadable != null);
        }
    }

    /** One entry for each of {@code topologyIds}; other topologies are forgotten. */
    SortedMap<String, Entry> read(Set<String> topologyIds) {
        lastGood.keySet().retainAll(topologyIds);
        SortedMap<String, Entry> entries = new TreeMap<>();
        String unreadable = null;
        for (String topologyId : new TreeSet<>(topologyIds)) {
            if (unreadable == null) {
                try {
                    entries.put(topologyId, understand(topologyId, store.readPlan(topologyId)));
                } catch (RuntimeException e) {
                    // The others are not tried: each attempt lasts as long as the client's retries.
                    unreadable = rootCause(e);
                    LOG.warn("Plans cannot be read, those remembered stay in force", e);
                }
            }
            if (unreadable != null) {
                entries.put(topologyId, new Entry(lastGood.get(topologyId), null, unreadable));
            }
        }
        return entries;
    }

    private Entry understand(String topologyId, Optional<byte[]> document) {
        if (document.isEmpty()) {
            lastGood.remove(topologyId);
            return new Entry(null, null, null);
        }
        try {
            Plan plan = PlanParser.parse(topologyId, document.get());
            lastGood.put(topologyId, plan);
            return new Entry(plan, null, null);
        } catch (MalformedPlanException e) {
            return new Entry(lastGood.get(topologyId), e, null);
        }
    }

    private static String rootCause(Throwable problem) {
        Throwable cause = problem;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause.toString();
    }
}
