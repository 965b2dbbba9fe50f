"""From recorded days to a learned profile, by the very functions that the pipeline's jobs call."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from storm_operator.core.forecast import measured_loads
from storm_operator.core.learned_profile import ComponentProfile, LearnedProfile
from storm_operator.loop_ports import PassReport
from storm_pipeline.models.backtest import Backtest, Series, judge

VALID_SECONDS = 14 * 86_400.0


@dataclass(slots=True)
class Arrivals:
    """A listener that keeps each component's arrivals in one topology, as the pipeline's silver tables would."""

    topology: str
    points: dict[str, tuple[list[float], list[float]]] = field(default_factory=dict)
    forecasters: set[str] = field(default_factory=set)

    def on_pass(self, report: PassReport) -> None:
        if report.snapshot is None or not report.snapshot.history:
            return
        newest = report.snapshot.history[-1:]
        for topology in report.snapshot.topologies:
            if topology.name != self.topology:
                continue
            self.forecasters |= {told.forecaster for (id_, _), told in report.forecasts.items() if id_ == topology.id}
            if newest[0].ended_at_seconds != report.snapshot.taken_at_seconds:
                continue
            for component in topology.components:
                for at, load in measured_loads(topology, component.name, newest):
                    times, values = self.points.setdefault(component.name, ([], []))
                    times.append(at)
                    values.append(load.arrived_per_second)

    def on_record(self, record: object) -> None:
        pass

    def series(self, period_seconds: float, until: float = math.inf) -> Mapping[str, Series]:
        """By component, the periods that ended by `until`."""
        return {
            name: Series(np.array(times), np.array(values), period_seconds).before(until)
            for name, (times, values) in self.points.items()
        }


def learn(
    series: Mapping[str, Series], cycle_seconds: float, bin_seconds: float, step: Mapping[str, float]
) -> Mapping[str, Backtest]:
    """A backtest for each component, with the season of its arrivals; `step` as `error_of` has it."""
    return {name: judge(one, cycle_seconds, bin_seconds, step[name]) for name, one in series.items()}


def profile_of(
    backtests: Mapping[str, Backtest], topology: str, cluster: str, made_at_seconds: float
) -> LearnedProfile:
    """What the operator would be given."""
    components = {
        name: ComponentProfile(found.forecaster, found.season, found.errors) for name, found in backtests.items()
    }
    return LearnedProfile(cluster, made_at_seconds, made_at_seconds + VALID_SECONDS, {topology: components})
