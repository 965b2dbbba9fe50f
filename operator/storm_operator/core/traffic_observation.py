"""Task-to-task series of a window, fitted and summed by executor: from agents' counters to the TrafficMatrix."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from storm_operator.core.metrics_window import MetricsWindow, SeriesKey, SeriesWindow
from storm_operator.core.model import Executor, Topology
from storm_operator.core.traffic_fit import STORM_MARGIN_STEP, Block, FittedTraffic, ObservedTraffic, fit_traffic
from storm_operator.core.window_readings import ExecutorReading
from storm_operator.metric_contract import OTHER

TRAFFIC = "storm_traffic_tuples_total"
SENT = "storm_task_transferred_tuples_total"
RECEIVED = "storm_task_executed_tuples_total"
ALL_GROUPING = "all"


@dataclass(frozen=True, slots=True)
class _Counting:
    """One task's reading: whose it is, which agent has it, and how to turn its increases into tuples per period."""

    executor: Executor
    host: str
    since_seconds: float
    counted_seconds: float
    arrived_per_executed: float
    most_tuples: float


def observe_traffic(
    topologies: Iterable[Topology],
    window: MetricsWindow,
    readings: Mapping[Executor, tuple[str, ExecutorReading]],
    period_seconds: float,
) -> tuple[Mapping[tuple[Executor, Executor], float], tuple[str, ...]]:
    """Tuples per second by pair of executors, and sentences about what is only estimated or unknown.

    `readings` has, for executors with a complete pair of readings only, the host of the agent and the reading. All
    counts are brought to the same period first, since each worker counts over its own time.
    """
    rates: dict[tuple[Executor, Executor], float] = {}
    problems: list[str] = []
    series = _series_by_topology(window)
    for topology in topologies:
        counting = _counting_tasks(topology, readings)
        observed = _observed(topology, series.get(topology.id, []), counting, period_seconds)
        fitted = fit_traffic(observed)
        executor_of = {task: executor for executor in topology.executors for task in executor.tasks}
        for (source, _, target), tuples in fitted.tuples.items():
            pair = executor_of[source], executor_of[target]
            rates[pair] = rates.get(pair, 0.0) + tuples / period_seconds
        problems += _problems(topology, fitted)
    return rates, tuple(problems)


def _series_by_topology(window: MetricsWindow) -> Mapping[str, list[tuple[SeriesKey, SeriesWindow]]]:
    found: dict[str, list[tuple[SeriesKey, SeriesWindow]]] = {}
    for name in (TRAFFIC, SENT, RECEIVED):
        for key, series in window.named(name):
            found.setdefault(key.label("topology_id"), []).append((key, series))
    return found


def _counting_tasks(
    topology: Topology, readings: Mapping[Executor, tuple[str, ExecutorReading]]
) -> Mapping[str, _Counting]:
    """By task id, as the labels write it."""
    counting = {}
    for executor in topology.executors:
        if executor in readings:
            host, reading = readings[executor]
            for task in executor.tasks:
                counting[str(task)] = _Counting(
                    executor,
                    host,
                    reading.since_seconds,
                    reading.counted_seconds,
                    _arrived_per_executed(reading),
                    _most_tuples(reading),
                )
    return counting


def _arrived_per_executed(reading: ExecutorReading) -> float:
    """What a receiver executed, corrected for what still waits in its queue, is what it was sent."""
    executed, arrived = reading.load.executed_per_second, reading.load.arrived_per_second
    return arrived / executed if executed and arrived is not None else 1.0


def _most_tuples(reading: ExecutorReading) -> float:
    """A generous bound on what one task sent to another, or executed from it: twice all that it handled (acks too)."""
    handled = (reading.load.executed_per_second or 0.0) + (reading.load.emitted_per_second or 0.0)
    return 2.0 * (handled * reading.counted_seconds + STORM_MARGIN_STEP)


def _observed(
    topology: Topology,
    series: Iterable[tuple[SeriesKey, SeriesWindow]],
    counting: Mapping[str, _Counting],
    period_seconds: float,
) -> ObservedTraffic:
    sampled: dict[tuple[int, str, int], float] = {}
    folded: dict[tuple[int, str], float] = {}
    sent: dict[tuple[int, str], float] = {}
    received: dict[tuple[int, str, str], float] = {}
    component_of = {task: executor.component for executor in topology.executors for task in executor.tasks}
    fan_out = _fan_out(topology)
    for key, task, tuples in _counts(series, counting, fan_out, period_seconds):
        stream = key.label("stream")
        if key.name == TRAFFIC and (target := key.whole("target_task")) is not None:
            sampled[task, stream, target] = tuples
        elif key.name == TRAFFIC and key.label("target_task") == OTHER:
            folded[task, stream] = tuples
        elif key.name == SENT:
            sent[task, stream] = tuples
        elif key.name == RECEIVED:
            waiting = counting[key.label("task")].arrived_per_executed
            received[task, key.label("source_component"), stream] = tuples * waiting
    return ObservedTraffic(sampled, sent, received, component_of, fan_out, folded)


def _counts(
    series: Iterable[tuple[SeriesKey, SeriesWindow]],
    counting: Mapping[str, _Counting],
    fan_out: Mapping[Block, float],
    period_seconds: float,
) -> Iterator[tuple[SeriesKey, int, float]]:
    """(series, its task, tuples per period) where the task has a complete reading at the very agent of the series."""
    for key, window in series:
        task = key.label("source_task") or key.label("task")
        known = counting.get(task)
        if known is not None and known.host == key.label("supervisor") and not math.isnan(window.increase):
            # Of one emitted tuple each subscriber is sent its own.
            copies = fan_out.get((known.executor.component, key.label("stream")), 1.0) if key.name == SENT else 1.0
            before_first = _counted_before_first(window, known, known.most_tuples * max(1.0, copies))
            periods = _counted_seconds(window, known) / period_seconds
            yield key, int(task), (window.increase + before_first) / periods


def _counted_seconds(window: SeriesWindow, known: _Counting) -> float:
    """The time in which `window.increase` was counted.

    Series of tasks have no port: that of a task which came from another worker of its supervisor within the window has
    what was counted there too, over the time before its executor was first read where it is now.
    """
    return known.counted_seconds + max(0.0, known.since_seconds - window.first.timestamp_seconds)


def _counted_before_first(window: SeriesWindow, known: _Counting, most_tuples: float) -> float:
    """What a series that appeared while its task was already being read had counted before its first reading.

    It began at zero then (the first tuple to that receiver), so its first value counts, unless this is more than
    the task can have handled: then the agent carries on the count of an earlier worker.
    """
    appeared_later = window.first.timestamp_seconds > known.since_seconds
    return window.first.value if appeared_later and window.first.value <= most_tuples else 0.0


def _fan_out(topology: Topology) -> Mapping[Block, float]:
    """How many tasks receive one emitted tuple: one of each subscriber, all of them with `all` grouping."""
    receivers: dict[Block, float] = {}
    for edge in topology.edges:
        tasks = topology.component(edge.target).tasks if edge.grouping == ALL_GROUPING else 1
        receivers[edge.source, edge.stream] = receivers.get((edge.source, edge.stream), 0.0) + tasks
    return receivers


def _problems(topology: Topology, fitted: FittedTraffic) -> Iterator[str]:
    if fitted.folded:
        yield (
            f"traffic of {topology.name} on {_named(fitted.folded)} is in part an estimate: agents fold flows beyond "
            "their --pair-limit, so that the receivers of the smallest are not known"
        )
    if fitted.estimated:
        yield (
            f"traffic of {topology.name} on {_named(fitted.estimated)} is an estimate from Storm's own counters alone: "
            "the traffic hook gave nothing there"
        )
    if fitted.unresolved:
        yield f"traffic of {topology.name} on {_named(fitted.unresolved)} is unknown: no receiver has been seen"


def _named(blocks: Iterable[Block]) -> str:
    return ", ".join(f"{component}/{stream}" for component, stream in blocks)
