"""Grafana's transformations of tables, as far as the dashboards use them: merge, organize, groupingToMatrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboards.preview.asking import AnsweredPanel

Cell = str | float | None
Row = Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class Table:
    """Columns in order; rows in order."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def table_of(answered: AnsweredPanel) -> Table:
    """What a table panel shows."""
    frames = [
        [
            _frame_row(series.labels, series.points[-1][1], answer.ref_id, len(answered.answers))
            for series in answer.series
        ]
        for answer in answered.answers
    ]
    table = Table((), tuple(_merged(frames)))
    for transformation in answered.panel.get("transformations", ()):
        options = transformation["options"]
        if transformation["id"] == "organize":
            table = _organized(table, options)
        elif transformation["id"] == "groupingToMatrix":
            table = _matrix(table, options["rowField"], options["columnField"], options["valueField"])
    return _sorted(table, answered.panel.get("options", {}).get("sortBy", ()))


def _frame_row(labels: Mapping[str, str], value: float, ref_id: str, queries: int) -> Row:
    return {**labels, ("Value" if queries == 1 else f"Value #{ref_id}"): value}


def _merged(frames: Sequence[Sequence[Row]]) -> list[Row]:
    """Rows of several results become one where all labels that every result has are equal."""
    filled = [frame for frame in frames if frame]
    names = [{name for row in frame for name in row if not name.startswith("Value")} for frame in filled]
    shared = sorted(set.intersection(*names)) if names else []
    merged: dict[tuple[int, tuple[Cell, ...]], dict[str, Cell]] = {}
    for frame in filled:
        seen: dict[tuple[Cell, ...], int] = {}
        for row in frame:
            key = tuple(row.get(name) for name in shared)
            seen[key] = seen.get(key, -1) + 1
            merged.setdefault((seen[key], key), {}).update(row)
    return list(merged.values())


def _organized(table: Table, options: Mapping[str, Mapping[str, str]]) -> Table:
    places, titles = options["indexByName"], options["renameByName"]
    fields = sorted(options["includeByName"], key=lambda name: places[name])
    rows = tuple({titles[field]: row.get(field) for field in fields} for row in table.rows)
    return Table(tuple(titles[field] for field in fields), rows)


def _matrix(table: Table, row_field: str, column_field: str, value_field: str) -> Table:
    corner = f"{row_field}\\{column_field}"
    columns = sorted({str(row.get(column_field, "")) for row in table.rows})
    rows: dict[str, dict[str, Cell]] = {}
    for row in table.rows:
        name = str(row.get(row_field, ""))
        rows.setdefault(name, {corner: name})[str(row.get(column_field, ""))] = row.get(value_field)
    return Table((corner, *columns), tuple(rows[name] for name in sorted(rows)))


def _sorted(table: Table, sort_by: Sequence[Mapping[str, object]]) -> Table:
    if not sort_by:
        return table
    title = str(sort_by[0]["displayName"])

    def place(row: Row) -> float:
        value = row.get(title)
        return -value if isinstance(value, float) else float("inf")

    return Table(table.columns, tuple(sorted(table.rows, key=place)))
