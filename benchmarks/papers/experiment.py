"""One experiment of a paper: a case for each setting, played by every contestant with several seeds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from papers.contestants import Contestant

from storm_operator.simulated_loop import Scenario, SimulatedStage
from storm_operator.simulation_report import SimulationReport
from storm_operator.simulator.totals import Totals

Figures = dict[str, float]
"""One run's figures by name; what is unknown is not in it."""


@dataclass(slots=True)
class Run:
    """A finished run, with what a report does not keep. Lists have an entry for each period after the warm-up.

    `supervisor_cores` is by supervisor (sorted by id), `limits` each component's mean limit in millicores. `acked` and
    `failed` are trees per second of each topology, over all of that time: also of periods of which the operator knows
    no rate, since the spout's worker restarted, and nothing is acked at first and what had waited then.
    """

    report: SimulationReport
    stage: SimulatedStage
    acked: Mapping[str, float] = field(default_factory=dict)
    failed: Mapping[str, float] = field(default_factory=dict)
    supervisor_cores: list[np.ndarray] = field(default_factory=list)
    limits: list[Mapping[str, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Case:
    """One setting. `scenario` makes it from a seed, `figures` reads what the paper's table or figure shows."""

    name: str
    scenario: Callable[[int], Scenario]
    contestants: tuple[Contestant, ...]
    figures: Callable[[Run], Figures]
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By contestant and figure, in the figure's own unit."""
    prepare: Callable[[Scenario, Contestant, int], tuple[Scenario, Contestant]] | None = None
    """For what depends on another run: this contestant's own scenario, and the contestant as it is with this seed."""
    headline: str = ""
    """The figure that contestants are compared with the first one by; empty: the first of the figures."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and range over the seeds."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))


def play(scenario: Scenario, contestant: Contestant) -> Run:
    """The scenario with this contestant in charge."""
    stage = SimulatedStage(replace(scenario, start=contestant.start(scenario)))
    specs = contestant.specs(scenario.model)
    for topology in stage.engine.wiring.topologies:
        limits = contestant.fixed_limits(topology.executors)
        if limits:
            stage.engine.cluster.set_limits(topology.id, limits)
    run = Run(stage.report(contestant.name), stage)
    before = stage.engine.totals.summed()
    while not stage.is_over:
        began = stage.engine.now
        stage.run_period(specs)
        if began >= scenario.warm_up_seconds:
            _note(run, before, stage.engine.now - began)
        before = stage.engine.totals.summed()
    run.report = stage.report(contestant.name)
    counted = stage.counted
    seconds = max(scenario.end_seconds - scenario.warm_up_seconds, 1e-9)  # a short look at the start counts nothing
    names = [topology.name for topology in stage.engine.topologies]
    run.acked = dict(zip(names, (counted.acked / seconds).tolist(), strict=True))
    run.failed = dict(zip(names, (counted.failed / seconds).tolist(), strict=True))
    return run


def _note(run: Run, before: Totals, seconds: float) -> None:
    engine = run.stage.engine
    used_ms = engine.totals.since(before).supervisor_cpu_ms
    run.supervisor_cores.append(used_ms / max(seconds, 1e-9) / 1000.0)
    by_component: dict[str, list[float]] = {}
    for limits in engine.cluster.limits.values():
        for executor, millicores in limits.items():
            by_component.setdefault(executor.component, []).append(millicores)
    run.limits.append({name: statistics.fmean(values) for name, values in by_component.items()})


def figures_of(case: Case, contestant: Contestant, seed: int) -> Figures:
    """One run of a case."""
    scenario = case.scenario(seed)
    if case.prepare is not None:
        scenario, contestant = case.prepare(scenario, contestant, seed)
    return case.figures(play(scenario, contestant))


def spreads(runs: Sequence[Figures]) -> dict[str, Spread]:
    """Over the seeds; a figure that no run knows is left out."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: Spread.of([run[name] for run in runs if name in run]) for name in names}
