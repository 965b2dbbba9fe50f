"""Placement's inner loops are compiled once, not at the first plan of every process.

Compiling takes two minutes. `python -m storm_operator.machine_code` does it ahead; numba keeps the result beside the
source, or in NUMBA_CACHE_DIR. The operator's image has it in STORM_OPERATOR_MACHINE_CODE and copies it at the start,
because numba uses only what it may also write, and a container's file system is read-only.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def unpack_machine_code() -> None:
    """Copy what the image brings to where numba looks for it; nothing where neither place is named."""
    ready, wanted = os.environ.get("STORM_OPERATOR_MACHINE_CODE"), os.environ.get("NUMBA_CACHE_DIR")
    if ready and wanted and Path(ready).is_dir() and not Path(wanted).exists():
        shutil.copytree(ready, wanted)


def compile_ahead() -> None:
    """Place a small cluster, by all that placing a large one takes too."""
    from storm_operator.core.cpu_demand import Demand
    from storm_operator.core.distances import Distances
    from storm_operator.core.model import (
        Assignment,
        Component,
        ComponentKind,
        Edge,
        Executor,
        Supervisor,
        Topology,
    )
    from storm_operator.core.placement.adaptive import place_adaptive
    from storm_operator.core.placement.search.arrays import search_of
    from storm_operator.core.placement.search.problem import build_problem
    from storm_operator.core.placement.search.settling import restless, settle_from_home
    from storm_operator.core.settings import PlacementSettings
    from storm_operator.core.snapshot import ClusterSnapshot, Completeness
    from storm_operator.core.traffic import TrafficMatrix

    executors = tuple(Executor("words-1", task, task, "spout" if task <= 6 else "count") for task in range(1, 13))
    components = (
        Component("count", ComponentKind.BOLT, 6, stateful=True),
        Component("spout", ComponentKind.SPOUT, 6),
    )
    topology = Topology("words-1", "words", components, (Edge("spout", "default", "count", "fields"),), executors)
    supervisors = tuple(Supervisor(name, name, (6700, 6701), 1000.0) for name in ("a", "b"))
    rates = {(source, target): 1.0 for source in executors[:6] for target in executors[6:]}
    snapshot = ClusterSnapshot(
        taken_at_seconds=0.0,
        period_seconds=10.0,
        supervisors=supervisors,
        topologies=(topology,),
        assignment=Assignment({executors[0]: supervisors[0].slots[0]}),
        loads={},
        traffic=TrafficMatrix(rates),
        distances=Distances({}),
        completeness=Completeness(len(executors)),
    )
    needs = dict.fromkeys(executors, 100.0)
    demand = Demand(needs, needs)
    settings = PlacementSettings(movable=frozenset({"words-1"}))
    place_adaptive(snapshot, demand, settings)
    problem = build_problem(snapshot, demand, settings, frozenset())
    search = search_of(problem)
    settle_from_home(problem, search, patience=0, restless=restless(search))


if __name__ == "__main__":
    compile_ahead()
