"""How good plans are and how long they take: `python -m plan.bench_plan --executors 10000 --supervisors 1000`.

Beside `adaptive`: KaHIP eco and METIS at the same balance, and Storm's own ResourceAwareScheduler, all on one instance.
`share` is the part of all tuples that goes between supervisors. The last line is JSON;
docs/benchmarks/plan-quality.md says what each figure is. `--all` runs from 10 to 100,000 executors, ten for each
supervisor, both with separation Always and without rivals with Auto, and writes JSON and a picture (of Always) too.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from plan.contest import RIVALS, Contest, Report, console, hold, overfills
from plan.instance import add_scale_options, scale_from
from plan.picture import picture_of
from rich.table import Table

from storm_operator.core.settings import Separation

SIZES = (10, 100, 1_000, 10_000, 100_000)
EXECUTORS_PER_SUPERVISOR = 10
FEWEST_SUPERVISORS = 2
RESULTS = Path("build/bench-plan")
PICTURE = Path("docs/images/plan-quality.svg")
COLUMNS = {
    "executors": "executors",
    "separation": "apart",
    "plan_seconds": "plan s",
    "replan_seconds": "replan s",
    "decide_seconds": "decide s",
    "peak_mb": "peak MB",
    "share": "share",
    "kahip_eco_share": "KaHIP",
    "kahip_eco_seconds": "KaHIP s",
    "kahip_eco_all_share": "KaHIP all",
    "kahip_eco_all_seconds": "all s",
    "metis_share": "METIS",
    "metis_seconds": "METIS s",
    "ras_share": "RAS",
    "ras_seconds": "RAS s",
    "even_share": "Even",
}


def main() -> None:
    options = _options()
    contest = Contest(options.policy, tuple(options.against), options.repeats, options.limit_seconds)
    scale = scale_from(options)
    if not options.all:
        report = hold(scale, contest)
        console.print(table_of([report]))
        print(json.dumps(report))
        return
    reports = []
    for executors in options.sizes:
        supervisors = max(FEWEST_SUPERVISORS, executors // EXECUTORS_PER_SUPERVISOR)
        of_size = replace(scale, executors=executors, supervisors=supervisors)
        for separation, against in ((Separation.ALWAYS, contest.rivals), (Separation.AUTO, ())):
            reports.append(hold(replace(of_size, separation=separation), replace(contest, rivals=against)))
            console.print(table_of(reports))
            _write(reports)
    print(json.dumps(reports))


def table_of(reports: Sequence[Report]) -> Table:
    """One line for each report; - for what was not measured."""
    table = Table(title="Plan quality and time", caption="* fills a supervisor beyond what may be filled of it")
    for title in COLUMNS.values():
        table.add_column(title, justify="right")
    for report in reports:
        table.add_row(*_cells(report))
    return table


def markdown_of(reports: Sequence[Report]) -> str:
    """The same table for docs/benchmarks/plan-quality.md."""
    lines = [list(COLUMNS.values()), ["---:"] * len(COLUMNS), *(_cells(report) for report in reports)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _cells(report: Report) -> list[str]:
    return [_shown(report.get(name)) + "*" * overfills(report, name) for name in COLUMNS]


def _shown(value: float | str | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if value < 1000.0 else f"{value:,.0f}"


def _write(reports: Sequence[Report]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "results.json").write_text(json.dumps(reports, indent=2), encoding="utf-8")
    (RESULTS / "table.md").write_text(markdown_of(reports), encoding="utf-8")
    drawn = [report for report in reports if report["separation"] == Separation.ALWAYS]
    PICTURE.write_text(picture_of(drawn), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add_scale_options(parser)
    parser.add_argument(
        "--all",
        action="store_true",
        help=f"--sizes in turn, each with both separations; JSON into {RESULTS}, {PICTURE}",
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--policy", default="adaptive")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit-seconds", type=float, default=600.0, help="for each that plans")
    parser.add_argument("--against", nargs="*", default=RIVALS, choices=RIVALS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
