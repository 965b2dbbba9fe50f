"""What an assignment would do to traffic, CPU and latency, as far as measured rates can tell.

Complete latency is scaled from what was measured: the part of it that the network explains in the assignment in force
is replaced by what the network would take in the new one. The network part of a topology is the longest path through
its component graph, every edge weighing half a round trip, averaged over the tuples that flow between its executors;
where acks are measured, the way from the last bolt over the acker back to the spout belongs to the path.

Limits: queueing, CPU contention and the cost of serialisation are taken to stay as they are, so that relief of an
overloaded supervisor shows as less overload, not as less latency; of parallel branches only the slowest counts, by
its mean; what a tuple pays between two workers of one supervisor is the measured loopback.
"""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx

from storm_operator.core.model import (
    ACKER_COMPONENT,
    Assignment,
    ComponentKind,
    Demand,
    Executor,
    Prediction,
    Topology,
    WorkerSlot,
)
from storm_operator.core.placement.objective import network_usage, overloaded_millicores
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot

EdgeDelays = Mapping[tuple[str, str], float]


def predict(
    snapshot: ClusterSnapshot, assignment: Assignment, demand: Demand, settings: PlacementSettings
) -> Prediction:
    """`assignment` under the rates of `snapshot` and the CPU of `demand`.

    Traffic, supervisors and latency are those of the movable topologies alone (of all when none is named), as
    verification will measure them; overload counts everything that shares the supervisors.
    """
    topology_ids = settings.movable or frozenset(topology.id for topology in snapshot.topologies)
    own = assignment.restricted_to(topology_ids)
    return Prediction(
        inter_supervisor_tuples_per_second=snapshot.traffic.inter_supervisor(own),
        inter_worker_tuples_per_second=snapshot.traffic.inter_worker(own),
        network_usage=network_usage(snapshot, own),
        supervisors_used=len(own.used_supervisors()),
        overloaded_millicores=overloaded_millicores(snapshot, assignment, demand, settings),
        complete_latency_ms=predict_complete_latency_ms(snapshot, assignment, topology_ids),
    )


def predict_complete_latency_ms(
    snapshot: ClusterSnapshot, assignment: Assignment, topology_ids: frozenset[str]
) -> float | None:
    """Mean complete latency of the slowest of `topology_ids`; None where none was measured."""
    predicted = []
    for topology in snapshot.topologies:
        measured_ms = _measured_latency_ms(snapshot, topology)
        if measured_ms is not None and topology.id in topology_ids:
            elsewhere_ms = max(0.0, measured_ms - network_path_ms(snapshot, topology, snapshot.assignment))
            predicted.append(elsewhere_ms + network_path_ms(snapshot, topology, assignment))
    return max(predicted, default=None)


def network_path_ms(snapshot: ClusterSnapshot, topology: Topology, assignment: Assignment) -> float:
    """Milliseconds that a tuple tree of `topology` spends between executors, along the slowest path."""
    delays = _edge_delays_ms(snapshot, topology, assignment)
    spouts = [component.name for component in topology.components if component.kind is ComponentKind.SPOUT]
    way_back = max((delays.get((ACKER_COMPONENT, spout), 0.0) for spout in spouts), default=0.0)
    arrivals = _arrivals_ms({edge: delay for edge, delay in delays.items() if ACKER_COMPONENT not in edge})
    acked = [delay + delays.get((component, ACKER_COMPONENT), 0.0) for component, delay in arrivals.items()]
    return max(acked, default=0.0) + way_back


def _arrivals_ms(delays: EdgeDelays) -> Mapping[str, float]:
    """How long after its start the slowest tuple of a tree reaches each component.

    A cycle counts as one place: how often a tuple goes round is not known.
    """
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edges_from(delays)
    places = nx.condensation(graph)
    place_of: Mapping[str, int] = places.graph["mapping"]
    arrival = dict.fromkeys(places, 0.0)
    for place in nx.topological_sort(places):
        for source, target in graph.out_edges(places.nodes[place]["members"]):
            if place_of[target] != place:
                arrival[place_of[target]] = max(arrival[place_of[target]], arrival[place] + delays[source, target])
    return {component: arrival[place] for component, place in place_of.items()}


def _edge_delays_ms(snapshot: ClusterSnapshot, topology: Topology, assignment: Assignment) -> EdgeDelays:
    """Half a round trip for each pair of components, averaged over the tuples between their placed executors."""
    known, slot_of = frozenset(topology.executors), assignment.slot_of

    def place_of(executor: Executor) -> tuple[str, WorkerSlot] | None:
        return (executor.component, slot_of[executor]) if executor in known and executor in slot_of else None

    tuples: dict[tuple[str, str], float] = {}
    delay: dict[tuple[str, str], float] = {}
    for (source, a), (target, b), rate in snapshot.traffic.within(topology.id).flows_between(place_of).summed():
        edge = (source, target)
        tuples[edge] = tuples.get(edge, 0.0) + rate
        delay[edge] = delay.get(edge, 0.0) + rate * snapshot.distances.between(a, b) / 2.0
    return {edge: delay[edge] / tuples[edge] for edge in tuples}


def _measured_latency_ms(snapshot: ClusterSnapshot, topology: Topology) -> float | None:
    rates = snapshot.rates.get(topology.id)
    return None if rates is None or rates.latency is None or rates.latency.count <= 0.0 else rates.latency.mean_ms
