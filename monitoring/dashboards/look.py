"""What all panels have in common: source, place, unit, thresholds, colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from grafana_foundation_sdk.builders import bargauge, heatmap, stat, statushistory, table, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import dashboard as model

DATASOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
GREEN, YELLOW, ORANGE, RED = "green", "yellow", "orange", "red"
NEUTRAL = "text"
"""Grafana's colour of plain text: for values that are neither good nor bad."""

AnyPanel = stat.Panel | timeseries.Panel | table.Panel | statushistory.Panel | heatmap.Panel | bargauge.Panel
P = TypeVar("P", stat.Panel, timeseries.Panel, table.Panel, statushistory.Panel, heatmap.Panel, bargauge.Panel)
Thresholds = Sequence[tuple[float, str]]
"""(from this value on, colour), rising; below the first it is `base`, green unless something else is said."""


@dataclass(frozen=True, slots=True)
class Look:
    """What all panels have: where they stand and how values read."""

    unit: str
    width: int
    height: int
    thresholds: Thresholds = ()
    base: str = GREEN
    decimals: int | None = None
    maximum: float | None = None


def dressed(panel: P, title: str, description: str, look: Look) -> P:
    if not description:
        raise ValueError(f"panel {title!r}: description is empty; say what it shows and when to worry")
    panel = panel.title(title).description(description).datasource(DATASOURCE).span(look.width).height(look.height)
    panel = panel.thresholds(steps(look.thresholds, look.base))
    if look.unit:
        panel = panel.unit(look.unit)
    if look.decimals is not None:
        panel = panel.decimals(look.decimals)
    if look.maximum is not None:
        panel = panel.max(look.maximum)
    return panel


def steps(thresholds: Thresholds, base: str = GREEN) -> build.ThresholdsConfig:
    """What has no thresholds is neither good nor bad, and not green."""
    all_steps = [
        model.Threshold(value=None, color=base if thresholds else NEUTRAL),
        *(model.Threshold(value=at, color=c) for at, c in thresholds),
    ]
    return build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(all_steps)
