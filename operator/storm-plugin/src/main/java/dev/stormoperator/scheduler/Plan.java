package dev.stormoperator.scheduler;

import java.util.List;
import java.util.Set;
import org.apache.storm.scheduler.ExecutorDetails;

/**
 * Where the executors of one topology should live: a plan document, version 1, that is well formed.
 *
 * @param planId     names the plan in acknowledgements, statuses and logs
 * @param topologyId the topology that it places
 * @param workers    each names a slot at most once; together they name each executor at most once
 */
record Plan(String planId, String topologyId, List<Worker> workers) {

    Plan {
        workers = List.copyOf(workers);
    }

    /**
     * One worker process and what it runs.
     *
     * @param supervisorId tried first
     * @param host         tried when no supervisor has that id: a machine that lost its disk returns under a new one
     */
    record Worker(String supervisorId, String host, int port, Set<ExecutorDetails> executors) {

        Worker {
            executors = Set.copyOf(executors);
        }
    }
}
