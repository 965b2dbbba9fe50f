"""What sections are made of, and what they are: a sentence, plots where there is something to see, and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

USUAL_HEIGHT = 360
"""Of a plot, in pixels."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the report has read of a table: `frame`, of `total` things that there are to tell of.

    `is_made`: whether any job has made the table, for whatever cluster.
    """

    frame: pd.DataFrame
    total: int
    is_made: bool

    def nothing(self, job: str, why: str) -> str:
        """Why the frame is empty: `why` where `job`, which makes the table, has run."""
        if not self.is_made:
            return f"Nothing yet: storm-pipeline {job} makes this table, and has not run."
        return f"Nothing of this cluster: {why}, or storm-pipeline {job} has not run since."

    def left_out(self, best: str, things: str) -> str:
        """A sentence when the frame has only the `best` ("heaviest") of all `things`; else nothing."""
        shown = len(self.frame)
        if shown >= self.total:
            return ""
        return f" These are the {shown:,} {best} of {self.total:,} {things}; the others are left out."


Known = Mapping[str, Found]
"""All that the report has read of one cluster, by name."""


@dataclass(frozen=True, slots=True)
class Section:
    """`frame` is what the plots show; all of it is written beside the page. `nothing` says why, where it is empty."""

    name: str
    title: str
    words: str
    plots: Sequence[go.Figure]
    frame: pd.DataFrame
    nothing: str


def named(figure: go.Figure, x: str, y: str, height: int = USUAL_HEIGHT) -> go.Figure:
    """The figure with its axes' titles, in the page's manner."""
    figure.update_xaxes(title=x, automargin=True)
    figure.update_yaxes(title=y, automargin=True)
    return figure.update_layout(height=height, margin={"l": 60, "r": 20, "t": 40, "b": 60}, template="plotly_white")


def plain(name: object) -> str:
    """A column's name as words."""
    return str(name).replace("_", " ")
