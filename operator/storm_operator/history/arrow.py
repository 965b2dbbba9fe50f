"""Recorded rows as Arrow tables: the types of `core.history_tables`, and the bookkeeping columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from storm_operator.core.history_rows import Columns
from storm_operator.core.history_tables import SCHEMA_VERSION, Column, Kind, Table

MICROSECONDS = 1_000_000
TIME = pa.timestamp("us", tz="UTC")
TYPES: Mapping[Kind, Any] = {
    Kind.TEXT: pa.string(),
    Kind.TEXTS: pa.list_(pa.string()),
    Kind.WHOLE: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.TRUTH: pa.bool_(),
    Kind.TIME: TIME,
}


@dataclass(frozen=True, slots=True)
class PeriodStamp:
    """What every row of one period says of it. `period_seconds` None: the cluster could not be seen."""

    run_id: str
    period_end_seconds: float
    period_seconds: float | None

    @property
    def date(self) -> str:
        """The UTC date that the period ended on, as folders are named."""
        return f"{datetime.fromtimestamp(self.period_end_seconds, UTC):%Y-%m-%d}"


def arrow_schema(table: Table) -> Any:
    """The Arrow schema of a recorded file of `table`."""
    fields = [pa.field(column.name, TYPES[column.kind]) for column in table.columns]
    return pa.schema(fields, {"storm.history.table": table.name, "storm.history.version": str(SCHEMA_VERSION)})


def arrow_table(table: Table, stamp: PeriodStamp, columns: Columns) -> Any:
    """The rows of one period; a column that `columns` lacks is unknown in all of them."""
    rows = len(next(iter(columns.values())))
    known = {
        **columns,
        "schema_version": np.full(rows, SCHEMA_VERSION),
        "run_id": np.full(rows, stamp.run_id, dtype=object),
        "period_end": [stamp.period_end_seconds] * rows,
        "period_seconds": [stamp.period_seconds] * rows,
        "rows_in_period": np.full(rows, rows),
    }
    arrays = [_array(column, known.get(column.name), rows) for column in table.columns]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(table))


def _array(column: Column, values: Any, rows: int) -> Any:
    if values is None:
        return pa.nulls(rows, TYPES[column.kind])
    if column.kind is Kind.TIME:
        values = [None if value is None else round(value * MICROSECONDS) for value in values]
    return pa.array(values, type=TYPES[column.kind])
