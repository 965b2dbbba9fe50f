"""Tables as a person reads them on the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from storm_pipeline.reporting.section import plain

MOST_ROWS = 200
"""Of a table on the page; the files beside it have all."""
LEAST_SHOWN = 1e-9
"""What is less is left over from rounding."""


def heads(frame: pd.DataFrame) -> list[str]:
    """The names of a table's columns for a person; those that say nothing are left out."""
    return [plain(name) for name in _telling(frame).columns]


def cells(frame: pd.DataFrame) -> list[list[str]]:
    """A table's first rows as texts, column by column as in `heads`."""
    return [[_text(value) for value in row] for row in _telling(frame).head(MOST_ROWS).itertuples(index=False)]


def _telling(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.dropna(axis="columns", how="all")


def _text(value: Any) -> str:
    if value is None or value is pd.NaT or (isinstance(value, float) and value != value):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {number}" for name, number in value.items()) or "none"
    if isinstance(value, float):
        return "0" if abs(value) < LEAST_SHOWN else f"{value:,.4g}"
    return str(value)
