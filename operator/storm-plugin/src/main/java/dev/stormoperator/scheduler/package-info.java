/**
 * The plan scheduler for Nimbus: puts the operator's plans in force, leaves the rest to a scheduler of Storm's own.
 *
 * <p>The way of a round: {@code PlanBook} reads the plans, {@code PlanResolver} finds the slots they mean,
 * {@code Fallback} places what is left over, {@code Placement} says which slots differ, {@code PlanScheduler} changes
 * those and acknowledges. The documents in ZooKeeper are described in docs/reference/interfaces.md.
 */
package dev.stormoperator.scheduler;
