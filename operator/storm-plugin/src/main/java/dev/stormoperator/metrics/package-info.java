/**
 * What a worker measures about itself: {@link dev.stormoperator.metrics.TrafficHook} counts in the executors' own
 * threads, {@link dev.stormoperator.metrics.SnapshotReporter} adds Storm's counters and writes one file a second
 * ("Worker snapshot, version 1" in docs/reference/interfaces.md).
 *
 * <p>Nothing here may throw into, block or noticeably slow a user's tuple path.
 */
package dev.stormoperator.metrics;
