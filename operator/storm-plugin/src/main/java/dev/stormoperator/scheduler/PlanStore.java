package dev.stormoperator.scheduler;

import java.util.Optional;
import java.util.Set;

/**
 * Where plans and acknowledgements are kept.
 *
 * <p>Every method throws a {@link RuntimeException} when the store cannot be reached: unknown is not the same as absent.
 */
interface PlanStore extends AutoCloseable {

    Optional<byte[]> readPlan(String topologyId);

    Optional<byte[]> readAcknowledgement(String topologyId);

    void writeAcknowledgement(String topologyId, byte[] document);

    /** Deletes what is kept for topologies that Storm no longer has; those in {@code alive} it surely has. */
    void forgetDeletedTopologies(Set<String> alive);

    @Override
    void close();
}
