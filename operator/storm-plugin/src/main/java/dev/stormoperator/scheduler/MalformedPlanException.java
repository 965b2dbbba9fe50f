package dev.stormoperator.scheduler;

/** A plan document that cannot be understood. The message names the field, its value and what would be right. */
final class MalformedPlanException extends Exception {

    private static final long serialVersionUID = 1L;

    private final String planId;

    MalformedPlanException(String planId, String message) {
        super(message);
        this.planId = planId;
    }

    /** The id of the plan, or null when not even that could be read. */
    String planId() {
        return planId;
    }
}
