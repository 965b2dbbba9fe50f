package dev.stormoperator.scheduler;

import java.nio.charset.CharacterCodingException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.shade.net.minidev.json.parser.ParseException;

/**
 * What became of a plan: the document, version 1, that tells the operator.
 *
 * @param planId   null when the plan was so malformed that its id is unknown
 * @param placed   executors that are where the plan says
 * @param unplaced why the others are not
 */
record Acknowledgement(String planId, String topologyId, Outcome outcome, String message, int placed,
                       Map<ExecutorDetails, String> unplaced) {

    /**
     * Executors listed without a place, and reasons told, at most. ZooKeeper hangs up on who writes more than a megabyte,
     * and a reason may name a host and a hundred ports.
     */
    private static final int MOST_LISTED = 500;
    private static final int MOST_REASONS = 20;

    enum Outcome { APPLIED, PARTIAL, REJECTED }

    static Acknowledgement of(Resolution resolution) {
        int placed = resolution.placed().size();
        int workers = new HashSet<>(resolution.placed().values()).size();
        Map<ExecutorDetails, String> unplaced = resolution.unplaced();
        String message = unplaced.isEmpty()
            ? placed + " executors in " + workers + (workers == 1 ? " worker" : " workers") + " as planned"
            : placed + " of " + (placed + unplaced.size()) + " executors as planned; " + reasons(unplaced);
        Outcome outcome = unplaced.isEmpty() ? Outcome.APPLIED : Outcome.PARTIAL;
        Plan plan = resolution.plan();
        return new Acknowledgement(plan.planId(), plan.topologyId(), outcome, message, placed, unplaced);
    }

    static Acknowledgement rejected(String topologyId, MalformedPlanException problem) {
        return new Acknowledgement(problem.planId(), topologyId, Outcome.REJECTED, problem.getMessage(), 0, Map.of());
    }

    /** The first reasons, each once, with how many executors it holds back. */
    private static String reasons(Map<ExecutorDetails, String> unplaced) {
        Map<String, Integer> counted = new LinkedHashMap<>();
        unplaced.values().forEach(reason -> counted.merge(reason, 1, Integer::sum));
        List<String> parts = new ArrayList<>();
        int others = unplaced.size();
        for (Map.Entry<String, Integer> one : counted.entrySet()) {
            if (parts.size() == MOST_REASONS) {
                parts.add(others + ": other reasons");
                break;
            }
            parts.add(one.getValue() + ": " + one.getKey());
            others -= one.getValue();
        }
        return String.join("; ", parts);
    }

    byte[] toJson(long atMs) {
        List<Map<String, Object>> left = new ArrayList<>();
        unplaced.entrySet().stream().limit(MOST_LISTED).forEach(one -> left.add(Map.of(
            "executor", List.of(one.getKey().getStartTask(), one.getKey().getEndTask()), "reason", one.getValue())));
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("version", 1);
        document.put("plan_id", planId);
        document.put("topology_id", topologyId);
        document.put("outcome", outcome.name().toLowerCase(Locale.ROOT));
        document.put("message", message);
        document.put("placed", placed);
        document.put("unplaced", left);
        document.put("at_ms", atMs);
        return Json.write(document);
    }

    /** Whether {@code document} says the same, whenever it was written. */
    boolean saysTheSameAs(byte[] document) {
        return Objects.equals(withoutTime(document), withoutTime(toJson(0)));
    }

    private static Object withoutTime(byte[] document) {
        try {
            Object value = Json.read(document);
            if (value instanceof Map<?, ?> object) {
                object.remove("at_ms");
            }
            return value;
        } catch (ParseException | CharacterCodingException e) {
            return null;
        }
    }
}
