"""The most that each executor needed of late. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from storm_operator.core.model import Executor, Topology
from storm_operator.core.snapshot import ClusterSnapshot


def fading_peaks(
    needs: Mapping[Executor, float], known: Mapping[Executor, float], snapshot: ClusterSnapshot, fade_seconds: float
) -> dict[Executor, float]:
    """Up at once, down by a share of the way in each period. `known` are those of the period before."""
    faded_share = min(1.0, snapshot.period_seconds / max(fade_seconds, 1.0))
    peaks = _of_those_there(known, snapshot.topologies)
    for executor, need in needs.items():
        peak = peaks.get(executor, need)
        peaks[executor] = max(need, peak - faded_share * (peak - need))
    return peaks


def at_most(ceiling: float, peaks: Mapping[Executor, float]) -> dict[Executor, float]:
    """No peak above `ceiling`."""
    return {executor: min(peak, ceiling) for executor, peak in peaks.items()}


def _of_those_there(known: Mapping[Executor, float], topologies: Iterable[Topology]) -> dict[Executor, float]:
    """Where a component has another number of executors, each task brings its part to the one that has it now.

    Else the first change of a number would forget the peak that it was made by, and the next one follow at once.
    """
    running = {topology.id: frozenset(topology.executors) for topology in topologies}
    own = {executor: peak for executor, peak in known.items() if executor.topology_id in running}
    peaks = {executor: peak for executor, peak in own.items() if executor in running[executor.topology_id]}
    former = own.keys() - peaks.keys()
    of_task = {(e.topology_id, task): own[e] / len(e.tasks) for e in former for task in e.tasks}
    for topology_id in {executor.topology_id for executor in former}:
        for executor in running[topology_id] - peaks.keys():
            parts = [of_task[topology_id, task] for task in executor.tasks if (topology_id, task) in of_task]
            if parts:
                peaks[executor] = math.fsum(parts)
    return peaks
