package dev.stormoperator.scheduler;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.storm.cluster.ClusterStateContext;
import org.apache.storm.cluster.ClusterUtils;
import org.apache.storm.cluster.DaemonType;
import org.apache.storm.cluster.IStateStorage;
import org.apache.storm.shade.org.apache.zookeeper.data.ACL;
import org.apache.storm.utils.Utils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Plans in ZooKeeper, under {@code <storm.zookeeper.root>/storm-operator}, by Nimbus' own client: its servers, its
 * authentication, its access rules.
 */
final class ZooKeeperPlanStore implements PlanStore {

    static final String ROOT = "/storm-operator";

    private static final String PLANS = ROOT + "/plans";
    private static final String ACKNOWLEDGEMENTS = ROOT + "/acks";
    private static final List<String> KEPT_PER_TOPOLOGY = List.of(PLANS, ACKNOWLEDGEMENTS, ROOT + "/cpu-limits");

    private static final Logger LOG = LoggerFactory.getLogger(ZooKeeperPlanStore.class);

    private final Map<String, Object> conf;
    private final List<ACL> acls;
    private IStateStorage storage;

    /** Connects at the first use, so that a ZooKeeper that is away cannot keep Nimbus from starting. */
    ZooKeeperPlanStore(Map<String, Object> conf) {
        this.conf = conf;
        this.acls = DaemonType.NIMBUS.getDefaultZkAcls(conf);
    }

    @Override
    public Optional<byte[]> readPlan(String topologyId) {
        return read(PLANS, topologyId);
    }

    @Override
    public Optional<byte[]> readAcknowledgement(String topologyId) {
        return read(ACKNOWLEDGEMENTS, topologyId);
    }

    @Override
    public void writeAcknowledgement(String topologyId, byte[] document) {
        storage().set_data(ACKNOWLEDGEMENTS + "/" + topologyId, document, acls);
    }

    @Override
    public void forgetDeletedTopologies(Set<String> alive) {
        for (String parent : KEPT_PER_TOPOLOGY) {
            if (storage().node_exists(parent, false)) {
                storage().get_children(parent, false).stream()
                    .filter(topologyId -> !alive.contains(topologyId) && !isKnownToStorm(topologyId))
                    .forEach(topologyId -> delete(parent + "/" + topologyId));
            }
        }
    }

    /** A topology may be missing from a scheduling round (its files are not here yet) and still exist. */
    private boolean isKnownToStorm(String topologyId) {
        return storage().node_exists(ClusterUtils.stormPath(topologyId), false);
    }

    private void delete(String path) {
        LOG.info("Deleting {}: its topology is gone", path);
        storage().delete_node(path);
    }

    private Optional<byte[]> read(String parent, String topologyId) {
        return Optional.ofNullable(storage().get_data(parent + "/" + topologyId, false));
    }

    private IStateStorage storage() {
        if (storage == null) {
            try {
                storage = ClusterUtils.mkStateStorage(conf, conf, new ClusterStateContext(DaemonType.NIMBUS, conf));
            } catch (Exception e) {
                throw Utils.wrapInRuntime(e);
            }
        }
        return storage;
    }

    @Override
    public void close() {
        if (storage != null) {
            storage.close();
        }
    }
}
