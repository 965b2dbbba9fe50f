package dev.stormoperator.scheduler;

import java.nio.charset.CharacterCodingException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.WorkerSlot;
import org.apache.storm.shade.net.minidev.json.parser.ParseException;

/** Reads plan documents. Knows the format alone; whether the cluster can follow a plan is {@link PlanResolver}'s job. */
final class PlanParser {

    static final long VERSION = 1;

    private static final int LONGEST_VALUE_IN_MESSAGES = 120;

    private final Set<ExecutorDetails> named = new HashSet<>();
    private final Set<WorkerSlot> slots = new HashSet<>();
    private String planId;

    private PlanParser() {
    }

    /**
     * Reads the plan for {@code topologyId}.
     *
     * @throws MalformedPlanException when the document is not a plan of version 1 for this topology
     */
    static Plan parse(String topologyId, byte[] document) throws MalformedPlanException {
        return new PlanParser().plan(topologyId, document);
    }

    private Plan plan(String topologyId, byte[] document) throws MalformedPlanException {
        Map<?, ?> plan = object(json(document), "plan");
        if (plan.get("plan_id") instanceof String id && !id.isBlank()) {
            planId = id;
        }
        Object version = plan.get("version");
        if (!(version instanceof Integer number) || number != VERSION) {
            throw wrong("version", version, "the number " + VERSION);
        }
        text(plan, "plan_id", "plan_id");
        String named = text(plan, "topology_id", "topology_id");
        if (!named.equals(topologyId)) {
            throw wrong("topology_id", named, "\"" + topologyId + "\", the topology whose node it is in");
        }
        List<Plan.Worker> workers = new ArrayList<>();
        for (Object worker : list(plan.get("workers"), "workers")) {
            workers.add(worker(worker, "workers[" + workers.size() + "]"));
        }
        return new Plan(planId, topologyId, workers);
    }

    private Object json(byte[] document) throws MalformedPlanException {
        try {
            return Json.read(document);
        } catch (ParseException | CharacterCodingException e) {
            throw new MalformedPlanException(null, "plan: not JSON in UTF-8: " + shortened(e.getMessage()));
        }
    }

    private Plan.Worker worker(Object value, String field) throws MalformedPlanException {
        Map<?, ?> worker = object(value, field);
        String supervisorId = text(worker, "supervisor_id", field + ".supervisor_id");
        String host = text(worker, "host", field + ".host");
        int port = whole(worker.get("port"), 1, 65535, field + ".port");
        if (!slots.add(new WorkerSlot(supervisorId, port))) {
            throw wrong(field, supervisorId + ":" + port, "a slot that no other worker of the plan names");
        }
        Set<ExecutorDetails> executors = new LinkedHashSet<>();
        for (Object executor : list(worker.get("executors"), field + ".executors")) {
            executors.add(executor(executor, field + ".executors[" + executors.size() + "]"));
        }
        return new Plan.Worker(supervisorId, host, port, executors);
    }

    private ExecutorDetails executor(Object value, String field) throws MalformedPlanException {
        List<?> tasks = list(value, field);
        if (tasks.size() != 2) {
            throw wrong(field, value, "[task_start, task_end]");
        }
        int start = whole(tasks.get(0), 1, Integer.MAX_VALUE, field + "[0]");
        int end = whole(tasks.get(1), start, Integer.MAX_VALUE, field + "[1]");
        ExecutorDetails executor = new ExecutorDetails(start, end);
        if (!named.add(executor)) {
            throw wrong(field, value, "an executor that the plan names once");
        }
        return executor;
    }

    private Map<?, ?> object(Object value, String field) throws MalformedPlanException {
        if (value instanceof Map<?, ?> object) {
            return object;
        }
        throw wrong(field, value, "an object");
    }

    private List<?> list(Object value, String field) throws MalformedPlanException {
        if (value instanceof List<?> list) {
            return list;
        }
        throw wrong(field, value, "a list");
    }

    private String text(Map<?, ?> object, String key, String field) throws MalformedPlanException {
        if (object.get(key) instanceof String text && !text.isBlank()) {
            return text;
        }
        throw wrong(field, object.get(key), "a text that is not empty");
    }

    private int whole(Object value, int least, int most, String field) throws MalformedPlanException {
        if (value instanceof Integer number && number >= least && number <= most) {
            return number;
        }
        String upTo = most == Integer.MAX_VALUE ? " or more" : " to " + most;
        throw wrong(field, value, "a whole number, " + least + upTo);
    }

    private MalformedPlanException wrong(String field, Object value, String right) {
        String shown = value instanceof String ? "\"" + value + "\"" : String.valueOf(value);
        return new MalformedPlanException(planId, field + ": " + shortened(shown) + " should be " + right);
    }

    private static String shortened(String text) {
        return text.length() <= LONGEST_VALUE_IN_MESSAGES ? text : text.substring(0, LONGEST_VALUE_IN_MESSAGES) + "...";
    }
}
