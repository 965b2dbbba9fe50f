"""The simulator against a real local cluster: same topologies, same placements, both measured; the last line is JSON.

Every case (workload, placement, load) belongs to one of two halves, like the fields of a chess board. Costs are fitted
to one half; the errors that count are those on the other, which the fit has not seen.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from calibration_cases import LOADS, PLACEMENTS, WORKLOADS, Measured, load, measure_workload, save
from calibration_fit import TOPOLOGY_ID, fit, simulate_case
from rich.console import Console

from storm_operator.local.build import plugin_jar, workloads_jar
from storm_operator.simulator.model import Costs

DEFAULT_FILE = Path("build/calibration/measured.json")


def is_fitted(case: Measured) -> bool:
    """Whether the case belongs to the half that costs are fitted to."""
    names = [workload.name for workload in WORKLOADS]
    return (names.index(case.workload) + PLACEMENTS.index(case.placement) + LOADS.index(case.load)) % 2 == 0


def measure(path: Path, turns: int, seconds: float, console: Console) -> list[Measured]:
    """All cases, one cluster after the other, kept in `path` as they come."""
    found: list[Measured] = []
    for turn in range(turns):
        for workload in WORKLOADS:
            for case in measure_workload(workload, str(workloads_jar()), plugin_jar(), turn, seconds):
                found.append(case)
                save(found, path)
                console.log(
                    f"turn {turn + 1}, {case.workload}, {case.placement}, {case.load}: "
                    f"{case.acked_per_second:.0f}/s, {case.latency_p50_ms:.2f} ms"
                )
    return found


def compare(cases: Sequence[Measured], costs: Costs) -> list[dict[str, object]]:
    """A row for each case: measured (median of its turns), simulated, error in percent."""
    rows = []
    for key in sorted({case.case for case in cases}):
        turns = [case for case in cases if case.case == key]
        middle = sorted(turns, key=lambda case: case.acked_per_second)[len(turns) // 2]
        rates = simulate_case(middle, costs).rates[TOPOLOGY_ID]
        assert rates.latency is not None
        assert rates.acked_per_second is not None
        latency = statistics.median(case.latency_p50_ms for case in turns)
        acked = statistics.median(case.acked_per_second for case in turns)
        rows.append(
            {
                "workload": key[0],
                "placement": key[1],
                "load": key[2],
                "fitted": is_fitted(middle),
                "measured_p50_ms": round(latency, 2),
                "simulated_p50_ms": round(rates.latency.p50_ms, 2),
                "latency_error_percent": round(100.0 * abs(rates.latency.p50_ms / latency - 1.0), 1),
                "measured_per_second": round(acked, 1),
                "simulated_per_second": round(rates.acked_per_second, 1),
                "measured_p99_ms": round(statistics.median(case.latency_p99_ms for case in turns), 1),
                "simulated_p99_ms": round(rates.latency.p99_ms, 1),
                "p99_error_percent": round(
                    100.0 * abs(rates.latency.p99_ms / statistics.median(c.latency_p99_ms for c in turns) - 1.0), 1
                ),
                "throughput_error_percent": round(100.0 * abs(rates.acked_per_second / acked - 1.0), 1),
            }
        )
    return rows


def markdown(rows: Sequence[dict[str, object]]) -> str:
    """The rows as a table for docs; errors in percent."""
    lines = [
        "| workload | placement | load | half | p50 ms | simulated | error | trees/s | simulated | error | p99 ms"
        " | simulated |",
        "|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    figures = (
        *("measured_p50_ms", "simulated_p50_ms", "latency_error_percent"),
        *("measured_per_second", "simulated_per_second", "throughput_error_percent"),
        *("measured_p99_ms", "simulated_p99_ms"),
    )
    for row in rows:
        texts = [str(row[name]) for name in ("workload", "placement", "load")]
        shown = [f"{row[name]}%" if name.endswith("percent") else str(row[name]) for name in figures]
        lines.append(f"| {' | '.join([*texts, 'fitted' if row['fitted'] else 'unseen', *shown])} |")
    return "\n".join(lines)


def median_error(rows: Sequence[dict[str, object]], figure: str, loads: Sequence[str] = LOADS) -> float:
    """Median of an error over the half that the fit has not seen."""
    return statistics.median(float(str(row[figure])) for row in rows if not row["fitted"] and row["load"] in loads)


def main(
    turns: int = 1,
    seconds: float = 12.0,
    measured: Annotated[Path | None, typer.Option(help="Do not measure: take what an earlier run measured.")] = None,
    fitting: Annotated[
        bool, typer.Option(help="Without: Storm's costs are the defaults, and no case has been seen.")
    ] = True,
    keep: Annotated[Path, typer.Option(help="Where to keep what is measured.")] = DEFAULT_FILE,
) -> None:
    """Measure (about six minutes for each workload and turn), fit one half, state the error on the other."""
    console = Console(file=sys.stderr, width=140)
    cases = measure(keep, turns, seconds, console) if measured is None else load(measured)
    costs = fit([case for case in cases if is_fitted(case)]) if fitting else Costs()
    rows = compare(cases, costs)
    if not fitting:
        rows = [{**row, "fitted": False} for row in rows]
    print(markdown(rows))
    final = fit(cases) if fitting else costs
    errors = {
        "cases": len(rows),
        "unseen_cases": sum(1 for row in rows if not row["fitted"]),
        "median_latency_error_percent": median_error(rows, "latency_error_percent"),
        "median_latency_error_percent_low_load": median_error(rows, "latency_error_percent", ("low",)),
        "median_throughput_error_percent": median_error(rows, "throughput_error_percent"),
        "median_throughput_error_percent_saturated": median_error(rows, "throughput_error_percent", ("saturated",)),
        "median_p99_error_percent": median_error(rows, "p99_error_percent"),
        "costs_from_all_cases" if fitting else "costs": {
            name: round(value, 4) for name, value in asdict(final).items()
        },
    }
    print(json.dumps(errors))


if __name__ == "__main__":
    typer.run(main)
