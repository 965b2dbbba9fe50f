"""Forecast against actual: what each component was expected to have to process, and what arrived. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storm_operator.core.forecast import ComponentKey, LoadForecast, measured_loads
from storm_operator.core.snapshot import ClusterSnapshot

SAME_PERIOD_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class LoadView:
    """One component in the period that has just ended: what was forecast for it a period ago, what arrived, and what
    is forecast for the period that begins. Tuples per second; None is unknown."""

    topology: str
    component: str
    forecast_per_second: float | None
    arrived_per_second: float | None
    next_per_second: float | None


def load_views(
    snapshot: ClusterSnapshot,
    forecasts: Mapping[ComponentKey, LoadForecast],
    forecasts_before: Mapping[ComponentKey, LoadForecast],
) -> tuple[LoadView, ...]:
    """Of every component, in order. A period that a plan disturbed is none to compare with: its actual is unknown."""
    newest = snapshot.history[-1:]
    if newest and abs(newest[0].ended_at_seconds - snapshot.taken_at_seconds) > SAME_PERIOD_SECONDS:
        newest = ()
    views = []
    for topology in snapshot.topologies:
        for component in topology.components:
            measured = measured_loads(topology, component.name, newest)
            before = forecasts_before.get((topology.id, component.name))
            following = forecasts.get((topology.id, component.name))
            views.append(
                LoadView(
                    topology.id,
                    component.name,
                    before.arrivals_per_second if before else None,
                    measured[0][1].arrived_per_second if measured else None,
                    following.arrivals_per_second if following else None,
                )
            )
    return tuple(views)
