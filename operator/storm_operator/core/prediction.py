"""What an assignment would do to traffic, CPU and latency, as far as measured rates can tell.

Complete latency is scaled from what was measured: the part of it that the network explains in the assignment in force
is replaced by what the network would take in the new one (`network_paths`: as Storm's ackers measure it, without the
first message's way to the acker and without the acker's answer to the spout).

Limits: queueing and CPU contention are taken to stay as they are. Where a plan is made to end them, `proposed_change`
leaves its latency open. How far predictions are off: docs/explanation/prediction.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decision import Prediction
from storm_operator.core.model import Assignment
from storm_operator.core.network_paths import network_paths_ms
from storm_operator.core.placed_traffic import rows_of_topologies
from storm_operator.core.placement.objective import SeenAssignment, see
from storm_operator.core.settings import PlacementSettings
from storm_operator.core.snapshot import ClusterSnapshot


def predict(
    snapshot: ClusterSnapshot, assignment: Assignment, demand: Demand, settings: PlacementSettings
) -> Prediction:
    """`assignment` under the rates of `snapshot` and the CPU of `demand`.

    Traffic and latency are those of the movable topologies alone (of all when none is named), as verification will
    measure them; overload and supervisors in use count everything that shares the supervisors.
    """
    topology_ids = settings.movable or frozenset(topology.id for topology in snapshot.topologies)
    in_force, then = (see(snapshot, a, demand, settings) for a in (snapshot.assignment, assignment))
    return predict_change(snapshot, in_force, then, topology_ids)[1]


def predict_change(
    snapshot: ClusterSnapshot, in_force: SeenAssignment, then: SeenAssignment, topology_ids: Collection[str]
) -> tuple[Prediction, Prediction]:
    """As `predict`, for the topologies named: of the assignment in force, and of another one."""
    measured_ms = {topology_id: _measured_latency_ms(snapshot, topology_id) for topology_id in topology_ids}
    known_ms = {topology_id: ms for topology_id, ms in measured_ms.items() if ms is not None}
    topologies = [topology for topology in snapshot.topologies if topology.id in known_ms]
    paths, paths_then = (
        network_paths_ms(topologies, snapshot.traffic, seen.traffic, snapshot.distances.between_workers_ms)
        for seen in (in_force, then)
    )
    return (
        _prediction(snapshot, in_force, topology_ids, _slowest_ms(known_ms, paths, paths)),
        _prediction(snapshot, then, topology_ids, _slowest_ms(known_ms, paths, paths_then)),
    )


def _prediction(
    snapshot: ClusterSnapshot, seen: SeenAssignment, topology_ids: Collection[str], complete_latency_ms: float | None
) -> Prediction:
    own = seen.traffic.within(rows_of_topologies(snapshot.traffic, topology_ids))
    return Prediction(
        inter_supervisor_tuples_per_second=own.inter_supervisor(),
        inter_worker_tuples_per_second=own.inter_worker(),
        network_usage=own.network_usage(snapshot.distances.between_workers_ms),
        supervisors_used=len(seen.assignment.used_supervisors()),
        overloaded_millicores=seen.overloaded_millicores,
        complete_latency_ms=complete_latency_ms,
    )


def _slowest_ms(
    measured_ms: Mapping[str, float], in_force: Mapping[str, float], then: Mapping[str, float]
) -> float | None:
    """Mean complete latency of the slowest topology; None where none was measured. All are by topology id."""
    predicted = [
        max(0.0, measured_ms[topology_id] - in_force[topology_id]) + path_ms for topology_id, path_ms in then.items()
    ]
    return max(predicted, default=None)


def _measured_latency_ms(snapshot: ClusterSnapshot, topology_id: str) -> float | None:
    rates = snapshot.rates.get(topology_id)
    return None if rates is None or rates.latency is None or rates.latency.count <= 0.0 else rates.latency.mean_ms
