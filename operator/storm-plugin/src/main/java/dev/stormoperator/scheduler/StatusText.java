package dev.stormoperator.scheduler;

import java.util.Optional;
import org.apache.storm.scheduler.Cluster;

/** What a topology's status ({@code sched_status} of Nimbus) says after a round. */
final class StatusText {

    private static final String OURS = "Plan";
    private static final String FALLBACK_FAILED = " failed, nothing was changed: ";

    private final Cluster cluster;
    private final Fallback.Completed whole;
    private final String fallbackName;

    StatusText(Cluster cluster, Fallback.Completed whole, String fallbackName) {
        this.cluster = cluster;
        this.whole = whole;
        this.fallbackName = fallbackName;
    }

    /** The status of a topology; empty when Storm's own should stay. */
    Optional<String> of(String topologyId, PlanBook.Entry entry, Resolution resolution) {
        if (entry.rejection() != null) {
            return Optional.of(OURS + " rejected: " + entry.rejection().getMessage() + "; " + inForce(entry)
                + homeless(topologyId));
        }
        if (entry.unreadable() != null) {
            return Optional.of(OURS + "s cannot be read: " + entry.unreadable() + "; " + inForce(entry)
                + homeless(topologyId));
        }
        if (resolution != null) {
            return Optional.of(OURS + " " + entry.plan().planId() + ": " + Acknowledgement.of(resolution).message()
                + homeless(topologyId));
        }
        return withoutPlan(topologyId);
    }

    private static String inForce(PlanBook.Entry entry) {
        return entry.plan() == null ? "placed executors stay where they are"
            : "plan " + entry.plan().planId() + " stays in force";
    }

    private Optional<String> withoutPlan(String topologyId) {
        if (whole.problem() != null) {
            return Optional.of(fallbackName + FALLBACK_FAILED + whole.problem());
        }
        String said = whole.statuses().get(topologyId);
        if (said != null && !said.equals(cluster.getStatus(topologyId))) {
            return Optional.of(said);
        }
        return said != null && isOurs(said) ? Optional.of("No plan: left to " + fallbackName) : Optional.empty();
    }

    /** Whether it is of an earlier round: the fallback scheduler does not say such things, nor take them back. */
    private static boolean isOurs(String status) {
        return status.startsWith(OURS) || status.contains(FALLBACK_FAILED);
    }

    private String homeless(String topologyId) {
        int all = cluster.getTopologies().getById(topologyId).getExecutors().size();
        int without = all - whole.slotOf().get(topologyId).size();
        if (without == 0) {
            return "";
        }
        return "; " + without + " executors do not run: " + fallbackName + " " + whyHomeless(topologyId);
    }

    private String whyHomeless(String topologyId) {
        if (whole.problem() != null) {
            return "failed: " + whole.problem();
        }
        String said = whole.statuses().get(topologyId);
        boolean news = said != null && !isOurs(said);
        return "found no place for them" + (news ? " (" + said + ")" : "");
    }
}
