"""Sections over the data itself: what was taken in, what was set aside and why, when nothing was recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pandas as pd
import plotly.graph_objects as go

from storm_pipeline.reporting.section import Known, Section, named

BECAME = {"rows_kept": "kept", "duplicates": "duplicates", "quarantined": "set aside"}
"""What becomes of the rows that are read, all of them."""
HALF_A_ROW = 0.5
SECONDS_PER_HOUR = 3600.0


def _quality(known: Known) -> Section:
    found = known["rows_by_table"]
    frame = found.frame
    plots = []
    if not frame.empty:
        figure = go.Figure()
        for column, name in BECAME.items():
            figure.add_bar(x=frame["table"].tolist(), y=frame[column].tolist(), name=name)
        # Few are set aside, and those are to be seen, be it one.
        most = max(1, frame[list(BECAME)].to_numpy().max())
        figure.update_yaxes(type="log", range=[math.log10(HALF_A_ROW), math.log10(most / HALF_A_ROW)])
        plots.append(named(figure.update_layout(barmode="group"), "table", "rows (logarithmic)"))
    words = (
        "Rows of recorded files by table, over all batches of ingest: read is kept + duplicates + quarantined, always. "
        "The periods are the first and the last of rows that were not set aside."
    )
    nothing = found.nothing("ingest", "no recorded file of it was taken in")
    return Section("quality", "Quality of the data", words, plots, frame, nothing)


def _quarantine(known: Known) -> Section:
    found, taken_in = known["rows_by_reason"], known["rows_by_table"]
    frame = found.frame
    plots = []
    if not frame.empty:
        figure = go.Figure()
        for reason, own in frame.groupby("reason", sort=False):
            figure.add_bar(x=own["table"].tolist(), y=own["rows"].tolist(), name=str(reason))
        plots.append(named(figure.update_layout(barmode="stack", showlegend=True), "table", "rows set aside"))
    words = (
        "Rows that were not taken in, by table and reason; a file that cannot be read whole counts as one. "
        "They are kept in the table quarantine." + found.left_out("most frequent", "reasons")
    )
    # The first row that is set aside makes the table.
    nothing = taken_in.nothing("ingest", "no recorded file of it was taken in")
    if not taken_in.frame.empty:
        nothing = "Nothing: every row that was read has been taken in, or was there already."
    return Section("quarantine", "What was set aside", words, plots, frame, nothing)


def _gaps(known: Known) -> Section:
    found = known["gaps"]
    frame = found.frame.sort_values("gap_start")
    plots = []
    if not frame.empty:
        figure = go.Figure()
        for reason, own in frame.groupby("reason"):
            times, seconds = own["gap_start"].tolist(), own["seconds"].tolist()
            figure.add_scatter(x=times, y=seconds, name=str(reason), mode="markers")
        figure.update_xaxes(autorangeoptions={"include": _recorded(known)}).update_yaxes(rangemode="tozero")
        plots.append(named(figure.update_layout(showlegend=True), "begin of the gap", "seconds"))
    hours = frame["seconds"].sum() / SECONDS_PER_HOUR
    words = (
        "Times in which nothing was recorded, and why as far as that is known. What is missing never counts as zero."
        f"{found.left_out('longest', 'gaps')} Those of the table are {hours:,.3g} hours together."
    )
    nothing = found.nothing("ingest", "its recording has no gap")
    return Section("gaps", "Gaps in the recording", words, plots, frame, nothing)


def _recorded(known: Known) -> list[object]:
    """From when to when there are recorded periods: between them a gap is short or long."""
    frame = known["rows_by_table"].frame
    ends = (frame["first_period"].min(), frame["last_period"].max())
    return [end for end in ends if not pd.isna(end)]


INTAKE: Sequence[Callable[[Known], Section]] = (_quality, _quarantine, _gaps)
"""In their order on the page."""
