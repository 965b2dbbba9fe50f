"""Predicted against measured latency: from each of four placements of a workload what each other one would bring.

The workloads and placements of the calibration at low load, as they were measured on a real cluster (medians of p50
over its turns) and as they are simulated (means). Traffic and CPU are those of the simulated twin. The last line is
JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from calibration_cases import PLACEMENTS, Measured, load
from calibration_fit import TOPOLOGY_ID, assignment_of, simulate_case
from rich.console import Console
from rich.table import Table

from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import Assignment
from storm_operator.core.proposed_change import examine_proposal
from storm_operator.core.settings import PlacementSettings, SchedulingSettings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.simulator.model import Costs

HERE = Path(__file__).parent
MEASURED = (HERE / "calibration_measured.json", HERE / "calibration_holdout.json")


@dataclass(frozen=True, slots=True)
class Placed:
    """One placement of a workload: its snapshot, and its latency simulated and measured, in milliseconds."""

    snapshot: ClusterSnapshot
    assignment: Assignment
    latency_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class Row:
    """From one placement to another, all in milliseconds."""

    cluster: str
    workload: str
    in_force: str
    proposed: str
    before_ms: float
    predicted_ms: float
    after_ms: float

    @property
    def error_percent(self) -> float:
        return 100.0 * abs(self.predicted_ms / self.after_ms - 1.0)


def placed(turns: Sequence[Measured]) -> Placed:
    """`turns` are of one placement of one workload."""
    snapshot = simulate_case(turns[0], Costs())
    latency = snapshot.rates[TOPOLOGY_ID].latency
    assert latency is not None
    measured_ms = statistics.median(turn.latency_p50_ms for turn in turns)
    return Placed(snapshot, assignment_of(turns[0]), {"real": measured_ms, "simulated": latency.mean_ms})


def predicted_ms(before: Placed, latency_ms: float, proposal: Assignment) -> float:
    """What the operator would predict of `proposal`, had it measured `latency_ms` before."""
    rates = before.snapshot.rates[TOPOLOGY_ID]
    assert rates.latency is not None
    measured = replace(rates, latency=replace(rates.latency, mean_ms=latency_ms))
    snapshot = replace(before.snapshot, rates={TOPOLOGY_ID: measured})
    need = {executor: did.cpu_millicores or 0.0 for executor, did in snapshot.loads.items()}
    settings = PlacementSettings(scheduling=SchedulingSettings(), movable=frozenset({TOPOLOGY_ID}))
    change = examine_proposal(snapshot, Demand(need, need), proposal, settings)
    assert change is not None
    assert change.after.complete_latency_ms is not None
    return change.after.complete_latency_ms


def rows() -> Iterator[Row]:
    cases = [case for path in MEASURED for case in load(path) if case.load == "low"]
    for workload in sorted({case.workload for case in cases}):
        turns = {kind: [c for c in cases if (c.workload, c.placement) == (workload, kind)] for kind in PLACEMENTS}
        known = {kind: placed(of_kind) for kind, of_kind in turns.items() if of_kind}
        for (a, before), (b, after) in itertools.permutations(known.items(), 2):
            for cluster, latency_ms in before.latency_ms.items():
                predicted = predicted_ms(before, latency_ms, after.assignment)
                yield Row(cluster, workload, a, b, latency_ms, predicted, after.latency_ms[cluster])


def table_of(found: Sequence[Row]) -> Table:
    table = Table("cluster", "workload", "in force", "proposed", title="Latency in ms", title_justify="left")
    for caption in ("before", "predicted", "after", "error %"):
        table.add_column(caption, justify="right")
    for row in found:
        figures = (row.before_ms, row.predicted_ms, row.after_ms)
        names = (row.cluster, row.workload, row.in_force, row.proposed)
        table.add_row(*names, *(f"{ms:.2f}" for ms in figures), f"{row.error_percent:.0f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--details", type=Path, metavar="FILE", help="where to write every row, as JSON")
    given = parser.parse_args()
    found = sorted(rows(), key=lambda row: (row.cluster, row.workload))
    Console(stderr=True).print(table_of(found))
    if given.details:
        given.details.write_text(json.dumps([asdict(row) for row in found], indent=1) + "\n", encoding="utf-8")
    summary: dict[str, object] = {}
    for cluster in ("real", "simulated"):
        errors = [row.error_percent for row in found if row.cluster == cluster]
        summary[cluster] = {
            "predictions": len(errors),
            "median_error_percent": round(statistics.median(errors), 1),
            "worst_error_percent": round(max(errors), 1),
        }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
