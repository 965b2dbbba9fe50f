"""Leave nothing behind: whatever a cluster of this name has running or made, found by its names and marks alone.

Works without the state file and after any crash, however far the cluster had come up.
"""

from __future__ import annotations

from storm_operator.local.cgroups import remove_cluster_cgroups, usable_hierarchy
from storm_operator.local.network import remove_network
from storm_operator.local.processes import end_processes


def sweep(cluster: str) -> None:
    """End processes, then remove cgroups, namespaces and interfaces. Doing it twice does no harm."""
    end_processes(cluster)
    hierarchy = usable_hierarchy()
    if hierarchy:
        remove_cluster_cgroups(cluster, hierarchy)
    remove_network(cluster)
