"""What a run of HookCost printed, as the cost of the hook in percent."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

TRIMMED_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Segment:
    """Nanoseconds of CPU per tuple (or per call, for ackers) in one stretch of one executor's work."""

    on: bool
    nanoseconds: float
    units: int


@dataclass(frozen=True, slots=True)
class ComponentCost:
    """Per tuple: CPU without the hook, what it adds, and the standard error of that; and how many pairs say so."""

    without_nanoseconds: float
    added_nanoseconds: float
    standard_error: float
    pairs: int


@dataclass(frozen=True, slots=True)
class RunCost:
    """One JVM's run. Percentages are of the CPU time that the topology takes without hook and reporter."""

    overhead_percent: float
    hook_percent: float
    standard_error_percent: float
    reporter_percent: float
    components: Mapping[str, ComponentCost]
    throughput_loss_percent: float | None


def parse_run(lines: Iterable[str]) -> RunCost:
    segments: dict[str, list[Segment]] = defaultdict(list)
    windows: list[tuple[bool, float]] = []
    reporter_share = 0.0
    for line in lines:
        match line.split():
            case ["segment", component, state, units, cpu, _]:
                segments[component].append(Segment(state == "on", int(cpu) / int(units), int(units)))
            case ["window", state, _, wall, tuples]:
                windows.append((state == "on", int(tuples) / int(wall)))
            case ["reporter", reporter, everything]:
                reporter_share = 100.0 * int(reporter) / int(everything)
    components = {name: _component_cost(found) for name, found in segments.items()}
    hook, error = _together(components)
    return RunCost(hook + reporter_share, hook, error, reporter_share, components, _throughput_loss(windows))


def _component_cost(segments: Sequence[Segment]) -> ComponentCost:
    added, without = [], []
    for first, second in _pairs(segments):
        on, off = (first, second) if first.on else (second, first)
        added.append(on.nanoseconds - off.nanoseconds)
        without.append(off.nanoseconds)
    kept = _trimmed(added)
    error = statistics.stdev(kept) / math.sqrt(len(kept))
    return ComponentCost(statistics.mean(_trimmed(without)), statistics.mean(kept), error, len(added))


def _pairs(segments: Sequence[Segment]) -> Iterable[tuple[Segment, Segment]]:
    """Neighbours, one with the hook and one without, none used twice."""
    at = 0
    while at + 1 < len(segments):
        if segments[at].on != segments[at + 1].on:
            yield segments[at], segments[at + 1]
            at += 1
        at += 1


def _trimmed(values: Sequence[float]) -> list[float]:
    """Without the largest and the smallest tenth: segments in which the machine did something else."""
    cut = int(len(values) * TRIMMED_SHARE)
    return sorted(values)[cut : len(values) - cut]


def _together(components: Mapping[str, ComponentCost]) -> tuple[float, float]:
    """Percent added over all components by how much each works, and its standard error."""
    without = sum(cost.without_nanoseconds * cost.pairs for cost in components.values())
    added = sum(cost.added_nanoseconds * cost.pairs for cost in components.values())
    error = math.sqrt(sum((cost.standard_error * cost.pairs) ** 2 for cost in components.values()))
    return 100.0 * added / without, 100.0 * error / without


def _throughput_loss(windows: Sequence[tuple[bool, float]]) -> float | None:
    """Percent by which throughput was lower with the hook, from groups of windows on, off, off, on."""
    ratios = []
    for at in range(0, len(windows) - 3, 4):
        group = windows[at : at + 4]
        with_hook = math.fsum(math.log(rate) for on, rate in group if on)
        without = math.fsum(math.log(rate) for on, rate in group if not on)
        ratios.append((without - with_hook) / 2.0)
    return 100.0 * statistics.median(ratios) if ratios else None
