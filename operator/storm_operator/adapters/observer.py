"""Joins Nimbus' view and the agents' metrics into the snapshot that one pass of the loop decides from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from storm_operator.adapters.metrics.source import MetricsSource
from storm_operator.core.clock_steps import was_set_back
from storm_operator.core.doubtful_supervisors import LastSeen, held_where_away, nobody_goes, with_those_away
from storm_operator.core.metrics_window import WINDOW_PERIODS
from storm_operator.core.model import Topology
from storm_operator.core.snapshot import ClusterSnapshot, LoadPeriod
from storm_operator.core.snapshot_builder import ClusterView, build_snapshot
from storm_operator.core.topology_spec import TopologySpec

LONGEST_PASS_SECONDS = 240.0
"""Two snapshots further apart have a gap between them."""


class ClusterReader(Protocol):
    """Supervisors, topologies, who lives where. Raises `AdapterError`."""

    def read_view(self, specs: Mapping[str, TopologySpec]) -> ClusterView: ...


@dataclass(slots=True)
class SnapshotObserver:
    """One view and one window for each snapshot.

    `capacities` gives the most CPU that supervisors can be given, by id, where that is not what agents measure;
    `leaving` the ids of those that are to be emptied: to the loop they are gone, so that their executors move.
    `is_going` says of a host whether its supervisor is known to end, so that it is not waited for.
    `clock` tells when the window is read; None: at the time that the pass names. `seen_at_seconds` is when the last
    snapshot was taken: the next one is of the time since then, however long the pass took, but not of time in which
    a plan was being put in force.
    """

    cluster: ClusterReader
    metrics: MetricsSource
    capacities: Callable[[], Mapping[str, float]] = dict
    leaving: Callable[[], Collection[str]] = tuple
    clock: Callable[[], float] | None = None
    seen_at_seconds: float | None = None
    last_seen: LastSeen | None = None
    is_going: Callable[[str], bool] = nobody_goes

    @property
    def hosts(self) -> frozenset[str]:
        """Of the supervisors that there were in the last pass. Storm may not see one now whose workers run on."""
        supervisors = self.last_seen.view.supervisors if self.last_seen is not None else ()
        return frozenset(supervisor.host for supervisor in supervisors)

    def observe(
        self,
        specs: Mapping[str, TopologySpec],
        history: tuple[LoadPeriod, ...],
        now_seconds: float,
        period_seconds: float,
        steady_since_seconds: float,
    ) -> ClusterSnapshot:
        view = self.cluster.read_view(specs)
        if self.clock is not None:
            # A Nimbus that takes over is waited for: counters that are read after that are not of the pass's beginning.
            now_seconds = self.clock()
        past_seconds = self._seconds_since_seen(now_seconds, period_seconds, steady_since_seconds)
        measured_seconds = max(period_seconds, past_seconds or 0.0)
        window_seconds = measured_seconds * WINDOW_PERIODS
        window = self.metrics.read_window(now_seconds, window_seconds, now_seconds - measured_seconds)
        self.seen_at_seconds = now_seconds
        view, self.last_seen = with_those_away(view, window, self.last_seen, now_seconds, self.is_going)
        shares = least_shares(view.topologies, specs)
        snapshot = build_snapshot(view, window, history, now_seconds, past_seconds, shares)
        snapshot = held_where_away(snapshot, self.last_seen.away(now_seconds))
        return with_supervisors_as_told(snapshot, self.capacities(), self.leaving())

    def _seconds_since_seen(
        self, now_seconds: float, period_seconds: float, steady_since_seconds: float
    ) -> float | None:
        """None where the last snapshot is too long ago: what is measured now is not of all the time since."""
        if self.seen_at_seconds is None:
            return None
        past_seconds, longest_seconds = now_seconds - self.seen_at_seconds, period_seconds * WINDOW_PERIODS
        if self.seen_at_seconds > steady_since_seconds or was_set_back(steady_since_seconds, now_seconds):
            longest_seconds = max(longest_seconds, LONGEST_PASS_SECONDS)
        return past_seconds if 0.0 < past_seconds < longest_seconds else None


def least_shares(topologies: Iterable[Topology], specs: Mapping[str, TopologySpec]) -> Mapping[str, float]:
    """By topology id, of those that have a spec: the share of its executors that must be measured. Pure."""
    return {
        topology.id: specs[topology.name].scheduling.minimum_completeness
        for topology in topologies
        if topology.name in specs
    }


def with_supervisors_as_told(
    snapshot: ClusterSnapshot, capacities: Mapping[str, float], leaving: Collection[str]
) -> ClusterSnapshot:
    """The snapshot with these capacities, and with the supervisors that leave apart from the others."""
    if not capacities and not leaving:
        return snapshot
    told = tuple(
        replace(supervisor, cpu_capacity_millicores=capacities.get(supervisor.id, supervisor.cpu_capacity_millicores))
        for supervisor in snapshot.supervisors
    )
    return replace(
        snapshot,
        supervisors=tuple(supervisor for supervisor in told if supervisor.id not in leaving),
        leaving=tuple(supervisor for supervisor in told if supervisor.id in leaving),
    )
