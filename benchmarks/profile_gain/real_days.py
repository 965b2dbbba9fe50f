"""A learned profile against Liu's regression on compressed days of a real Storm cluster; the last line is JSON.

Two topologies that are alike run side by side under one control loop, with the same load from second to second. Both
are forecast by Liu's regression; from the first judged day on one of them goes by the profile that was learned from its
own earlier days. Their executors' CPU limits are held against the CPU that they needed.
"""

from __future__ import annotations

import json
import math
import statistics
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from profile_gain.learning import Arrivals, learn, profile_of
from rich.console import Console

from storm_operator.assembly import Assembly, assemble
from storm_operator.connection_options import connection_of
from storm_operator.core.learned_profile import LearnedProfile, ProfileReading
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.core.settings import Forecast, Mode, ResourceSettings
from storm_operator.core.topology_spec import JarSource, TopologySpec
from storm_operator.demo.run import write_rate
from storm_operator.demo.scenario import PERIOD_SECONDS, scheduling
from storm_operator.local.build import plugin_jar, workloads_jar
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.spec import LocalClusterSpec
from storm_operator.loop_ports import Audience, PassReport
from storm_operator.simulator.daily_load import DailyLoad
from storm_pipeline.models.backtest import Series

BASELINE, LEARNED = "plain", "learned"
CLUSTER = "real-days"
BASE_PER_SECOND = 40.0
RATE_SECONDS = 0.5
"""How often the rate of the load is told."""
SPIKES, UNKNOWN_SPIKES = 4, 1
SPIKE_PERIODS = (2.0, 5.0)
"""So long is a spike."""
LATE_PERIODS = 1.0
EXECUTORS = {"sentences": 1, "split": 2, "count": 3}
CPU_MICROS = {"split": 200, "count": 250}
RESOURCES = ResourceSettings(theta_millicores=25.0, floor_millicores=25.0)
"""Executors need some 20 millicores at night and some 250 in the highest spike."""
UNTHROTTLED = 0.02
"""A period in which a limit kept an executor waiting for no more than this share shows what it needs."""
FEWEST_POINTS = 20

Key = tuple[str, int]
"""Component and first task: an executor, whichever of the two topologies it is in."""


@dataclass(frozen=True, slots=True)
class Period:
    """One executor in one period: what was offered to its topology, what it could use at most, and what it used."""

    ended_at_seconds: float
    topology: str
    executor: Key
    offered_per_second: float
    limit_millicores: float
    used_millicores: float
    throttled_fraction: float


@dataclass(frozen=True, slots=True)
class Sums:
    """CPU-seconds that executors lacked, and that were kept for them in vain."""

    under: float = 0.0
    over: float = 0.0


@dataclass(slots=True)
class Offered:
    """Tells the topologies their load, the same to both, and remembers it."""

    load: DailyLoad
    began_at_seconds: float
    files: Sequence[Path]
    told: list[tuple[float, float]] = field(default_factory=list)

    @contextmanager
    def kept_up(self) -> Iterator[None]:
        """The load goes on by itself."""
        over = threading.Event()

        def tell() -> None:
            while not over.wait(RATE_SECONDS):
                self._tell()

        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _tell(self) -> None:
        now = time.time()
        rate = round(self.load.rate_at(max(0.0, now - self.began_at_seconds)))
        for file in self.files:
            write_rate(file, rate)
        self.told.append((now, float(rate)))

    def mean(self, start_seconds: float, end_seconds: float) -> float:
        """NaN where nothing was told."""
        within = [rate for at, rate in list(self.told) if start_seconds < at <= end_seconds]
        return float(np.mean(within)) if within else math.nan


@dataclass(slots=True)
class Watch:
    """A listener that keeps what each executor was given for a period beside what it did in it."""

    offered: Offered
    periods: list[Period] = field(default_factory=list)
    plans: list[str] = field(default_factory=list)
    _before: PassReport | None = None

    def on_pass(self, report: PassReport) -> None:
        before, self._before = self._before, report
        if before is None or before.demand is None or report.snapshot is None:
            return
        offered = self.offered.mean(before.at_seconds, report.at_seconds)
        for topology in report.snapshot.topologies:
            if topology.id not in before.limited:
                continue
            for executor in topology.executors:
                limit, did = before.demand.millicores.get(executor), report.snapshot.loads.get(executor)
                if limit is None or did is None or did.cpu_millicores is None:
                    continue
                key = executor.component, executor.task_start
                waited = did.throttled_fraction or 0.0
                self.periods.append(
                    Period(report.at_seconds, topology.name, key, offered, limit, did.cpu_millicores, waited)
                )

    def on_record(self, record: PlanRecord) -> None:
        if record.state is PlanState.APPLYING and record.plan.id not in self.plans:
            self.plans.append(record.plan.id)


@dataclass(slots=True)
class OneLearned:
    """A profile for the topology that goes by one, none before it is there."""

    profile: LearnedProfile | None = None
    cluster: str = CLUSTER

    def read(self, specs: Mapping[str, TopologySpec]) -> Mapping[str, ProfileReading]:
        return {} if self.profile is None else {LEARNED: self.profile}


def needs_by_load(periods: Sequence[Period]) -> Mapping[Key, tuple[float, float]]:
    """For each executor the line (millicores at no load, millicores for each tuple a second offered) that it needs.

    Fitted over both topologies, so that both are judged by the same need, on periods in which no limit cut it short.
    """
    found = {}
    for key in {period.executor for period in periods}:
        own = [
            (period.offered_per_second, period.used_millicores)
            for period in periods
            if period.executor == key
            and period.throttled_fraction <= UNTHROTTLED
            and math.isfinite(period.offered_per_second)
        ]
        if len(own) >= FEWEST_POINTS:
            line = statistics.linear_regression(*zip(*own, strict=True))
            found[key] = (max(0.0, line.intercept), max(0.0, line.slope))
    return found


def summed(
    periods: Sequence[Period], needs: Mapping[Key, tuple[float, float]], period_seconds: float
) -> Mapping[str, Sums]:
    """By topology. Only periods of which the same executor of both topologies is known count."""
    known: dict[tuple[float, Key], dict[str, Period]] = {}
    for period in periods:
        if period.executor in needs and math.isfinite(period.offered_per_second):
            known.setdefault((period.ended_at_seconds, period.executor), {})[period.topology] = period
    both = [pair for pair in known.values() if len(pair) == 2]
    found = {}
    for name in (BASELINE, LEARNED):
        spare = []
        for pair in both:
            idle, each = needs[pair[name].executor]
            need = min(idle + each * pair[name].offered_per_second, RESOURCES.ceiling_millicores)
            spare.append(pair[name].limit_millicores - need)
        core_seconds = np.array(spare) * period_seconds / 1000.0
        found[name] = Sums(float(np.maximum(0.0, -core_seconds).sum()), float(np.maximum(0.0, core_seconds).sum()))
    return found


def change_percent(sums: Mapping[str, Sums]) -> dict[str, float]:
    """Of the learned topology against the plain one; NaN over nothing."""
    plain, learned = asdict(sums[BASELINE]), asdict(sums[LEARNED])
    return {
        name: 100.0 * (learned[name] / plain[name] - 1.0) if plain[name] > 0.0 else math.nan
        for name in ("under", "over")
    }


def specs_of(rate_files: Mapping[str, Path]) -> dict[str, TopologySpec]:
    """Two alike. Nobody is moved: what plans cost would hide what limits, which follow the forecast, are short of."""
    settings = replace(scheduling(Mode.ENFORCE), forecast=Forecast.LINE, policy="even")
    parallelism = ",".join(f"{name}={count}" for name, count in EXECUTORS.items())
    cpu = ",".join(f"{name}={micros}" for name, micros in CPU_MICROS.items())
    return {
        name: TopologySpec(
            name,
            JarSource(
                str(workloads_jar()),
                "dev.stormoperator.workloads.WordCount",
                (
                    *("--name", name, "--rate-file", str(file), "--workers", "2"),
                    *("--parallelism", parallelism, "--cpu-micros", cpu),
                ),
            ),
            scheduling=settings,
            resources=RESOURCES,
        )
        for name, file in rate_files.items()
    }


def daily_load(seed: int, day_seconds: float) -> DailyLoad:
    """`DailyLoad`'s spikes are told in seconds of a real day."""
    stretch = 86_400.0 / day_seconds * PERIOD_SECONDS
    return DailyLoad(
        BASE_PER_SECOND,
        seed,
        day_seconds,
        SPIKES,
        UNKNOWN_SPIKES,
        (SPIKE_PERIODS[0] * stretch, SPIKE_PERIODS[1] * stretch),
        LATE_PERIODS * stretch,
        noise_seconds=PERIOD_SECONDS,
    )


def learned_from(
    arrivals: Arrivals, periods: Sequence[Period], until_seconds: float, day_seconds: float
) -> LearnedProfile:
    """By the pipeline's own functions. Days are cycles since the epoch, as the load's are."""
    series = arrivals.series(PERIOD_SECONDS, until_seconds)
    step = {name: load_of_a_theta(name, one, periods) for name, one in series.items()}
    return profile_of(learn(series, day_seconds, PERIOD_SECONDS, step), LEARNED, CLUSTER, until_seconds)


def load_of_a_theta(component: str, series: Series, periods: Sequence[Period]) -> float:
    """Tuples per second that one theta for each executor carries, by what they cost: CPU used over arrivals."""
    own = [period for period in periods if period.topology == LEARNED and period.executor[0] == component]
    executors = len({period.executor for period in own})
    by_period: dict[float, float] = {}
    for period in own:
        by_period[period.ended_at_seconds] = by_period.get(period.ended_at_seconds, 0.0) + period.used_millicores
    cost = statistics.median(by_period.values()) / float(np.median(series.values))
    return RESOURCES.theta_millicores * executors / cost


@dataclass(slots=True)
class Run:
    """What is being played."""

    assembly: Assembly
    specs: Mapping[str, TopologySpec]

    def until(self, seconds: float) -> None:
        """Pass after pass until that time."""
        while (now := time.time()) < seconds:
            self.assembly.loop.run_once(self.specs)
            time.sleep(max(0.0, now + PERIOD_SECONDS - time.time()))


def play(seed: int, learned_days: int, judged_days: int, day_seconds: float, console: Console) -> dict[str, Any]:
    """One load. What is there after the last day."""
    spec = LocalClusterSpec(
        name="real-days",
        subnet="10.96.0.0/24",
        plugin_jar=plugin_jar(),
        one_way_delay_ms=2.0,
        message_timeout_seconds=10,
    )
    with LocalCluster(spec) as cluster:
        for sentence in cluster.not_emulated:
            console.log(f"not emulated: {sentence}")
        files = {name: cluster.layout.data_dir / f"{name}.rate" for name in (BASELINE, LEARNED)}
        for file in files.values():
            write_rate(file, round(BASE_PER_SECOND))
        # The day after this one is the first: the cycles of a season are counted from the epoch.
        began = (math.floor(time.time() / day_seconds) + 1) * day_seconds
        offered = Offered(daily_load(seed, day_seconds), began, tuple(files.values()))
        watch, arrivals, given = Watch(offered), Arrivals(LEARNED), OneLearned()
        audience = Audience((watch, arrivals), console.log)
        assembly = assemble(connection_of(cluster), audience, profiles=given)
        assembly.loop.period_seconds = PERIOD_SECONDS
        run = Run(assembly, specs_of(files))
        try:
            assembly.lifecycle(console.log).step(run.specs, time.time())
            with offered.kept_up():
                for day in range(learned_days):
                    run.until(began + (day + 1) * day_seconds)
                    console.log(f"day {day + 1} of {learned_days + judged_days}, to learn from")
                judged_from = began + learned_days * day_seconds
                given.profile = learned_from(arrivals, watch.periods, judged_from, day_seconds)
                plans_before = len(watch.plans)
                for day in range(learned_days, learned_days + judged_days):
                    run.until(began + (day + 1) * day_seconds)
                    console.log(f"day {day + 1}: {_said(watch, began + day * day_seconds)}")
        finally:
            assembly.close()
    if "Seasonal" not in arrivals.forecasters:
        raise RuntimeError(f"the loop did not go by the profile, only by {sorted(arrivals.forecasters)}")
    judged = [period for period in watch.periods if period.ended_at_seconds > judged_from]
    return _figures(watch.periods, judged) | {
        "seed": seed,
        "forecasters": {name: one.forecaster for name, one in given.profile.topologies[LEARNED].items()},
        "plans_in_judged_days": len(watch.plans) - plans_before,
        "periods": [asdict(period) for period in watch.periods],
        "arrivals": arrivals.points,
        "judged_from": judged_from,
    }


def _figures(periods: Sequence[Period], judged: Sequence[Period]) -> dict[str, Any]:
    sums = summed(judged, needs_by_load(periods), PERIOD_SECONDS)
    waited = {
        name: sum(p.throttled_fraction for p in judged if p.topology == name) * PERIOD_SECONDS
        for name in (BASELINE, LEARNED)
    }
    return {
        "core_seconds": {name: asdict(one) for name, one in sums.items()},
        "change_percent": change_percent(sums),
        "seconds_kept_waiting": waited,
    }


def _said(watch: Watch, since_seconds: float) -> str:
    figures = _figures(watch.periods, [p for p in watch.periods if p.ended_at_seconds > since_seconds])
    return f"{figures['core_seconds']}, kept waiting {figures['seconds_kept_waiting']}"


def main(
    seeds: Annotated[int, typer.Option(help="Loads, one after the other.")] = 1,
    first_seed: Annotated[int, typer.Option(help="Of the first load.")] = 0,
    learned_days: Annotated[int, typer.Option(help="Days to learn from, at least 4.")] = 5,
    judged_days: Annotated[int, typer.Option(help="Days to judge on, after those.")] = 4,
    day_seconds: Annotated[float, typer.Option(help="How long a day is.")] = 200.0,
    output: Annotated[Path, typer.Option(help="Where to keep all that was measured.")] = Path(
        "build/bench-profile/real_days.json"
    ),
) -> None:
    """Play the days: with the usual options half an hour for each load."""
    console = Console(stderr=True, width=160)
    found = []
    for seed in range(first_seed, first_seed + seeds):
        found.append(play(seed, learned_days, judged_days, day_seconds, console))
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(found), encoding="utf-8")
    kept = ("seed", "forecasters", "core_seconds", "change_percent", "seconds_kept_waiting", "plans_in_judged_days")
    print(json.dumps([{name: one[name] for name in kept} for one in found]))


if __name__ == "__main__":
    typer.run(main)
