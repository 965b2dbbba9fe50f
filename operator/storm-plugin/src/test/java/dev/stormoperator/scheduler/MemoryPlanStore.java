package dev.stormoperator.scheduler;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** Plans in memory; can be made unreachable. */
final class MemoryPlanStore implements PlanStore {

    final Map<String, byte[]> plans = new HashMap<>();
    final Map<String, byte[]> acknowledgements = new HashMap<>();
    boolean reachable = true;
    int writes;

    void put(String topologyId, String document) {
        plans.put(topologyId, document.getBytes(StandardCharsets.UTF_8));
    }

    String acknowledgement(String topologyId) {
        byte[] document = acknowledgements.get(topologyId);
        return document == null ? null : new String(document, StandardCharsets.UTF_8);
    }

    private void reach() {
        if (!reachable) {
            throw new IllegalStateException(new java.net.ConnectException("Connection refused"));
        }
    }

    @Override
    public Optional<byte[]> readPlan(String topologyId) {
        reach();
        return Optional.ofNullable(plans.get(topologyId));
    }

    @Override
    public Optional<byte[]> readAcknowledgement(String topologyId) {
        reach();
        return Optional.ofNullable(acknowledgements.get(topologyId));
    }

    @Override
    public void writeAcknowledgement(String topologyId, byte[] document) {
        reach();
        writes++;
        acknowledgements.put(topologyId, document);
    }

    @Override
    public void forgetDeletedTopologies(Set<String> alive) {
        reach();
        plans.keySet().retainAll(alive);
        acknowledgements.keySet().retainAll(alive);
    }

    @Override
    public void close() {
    }
}
