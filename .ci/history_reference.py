"""Writes docs/reference/history.md from the tables' own descriptions; `--check` compares it with them."""

from __future__ import annotations

import sys
from pathlib import Path

from storm_operator.core.history_tables import SCHEMA_VERSION, TABLES, Column, Table

PAGE = Path(__file__).parent.parent / "docs/reference/history.md"
HEAD = f"""# Recorded history

Made by `make manifests` from `storm_operator/core/history_tables.py`. Schema version {SCHEMA_VERSION}.

`standalone --history PATH` (on Kubernetes `history.path` or `history.existingClaim` of the chart) records every period
as Parquet files (zstd) in `PATH/<table>/cluster=<cluster>/date=<date>/`; `_open/` has what is not published yet.
Dates and times are UTC. Null is unknown, never zero. A newer version only adds columns that may be null. Bronze tables
of the [pipeline](../explanation/pipeline.md) are these files; its silver tables have the same columns without
`schema_version`, `run_id` and `rows_in_period`.
"""


def page() -> str:
    return "\n".join([HEAD, *(section(table) for table in TABLES)])


def section(table: Table) -> str:
    head = f"## {table.name}\n\n{table.meaning}. One row for each {', '.join(f'`{name}`' for name in table.key)}.\n"
    return "\n".join([head, "| column | type | meaning |", "|---|---|---|", *map(line, table.columns), ""])


def line(column: Column) -> str:
    notes = [note for note in ("never null" if column.required else "", f"since {column.since}") if note]
    notes = [note for note in notes if note != "since 1"]
    said = f" ({', '.join(notes)})" if notes else ""
    return f"| `{column.name}` | {column.kind.value} | {column.meaning}{said} |"


if __name__ == "__main__":
    if "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
            sys.exit(f"{PAGE.name} is not what the tables say: run `make manifests`")
    else:
        PAGE.write_text(page(), encoding="utf-8")
