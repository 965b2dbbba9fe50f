"""The load step of `make demo-k8s`: what pods may use, what plans do and what becomes of latency when load rises."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from storm_on_node import NAMESPACE, OPERATOR, OPERATOR_NAMESPACE, StormOnNode

SAMPLE_SECONDS = 5.0
HISTORY = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/services/{OPERATOR}:page/proxy/api/v1/history"
"""The operator's time line, which has every period; a status is written once a minute at most."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One topology and the pods, `seconds` after the load rose. Figures are of the operator's last period.

    They are None where that is unknown, and where there was no period since the reading before: a plan is applied.
    """

    seconds: float
    period: int
    acked_per_second: float | None
    p50_ms: float | None
    p99_ms: float | None
    limits_millicores: dict[str, int]
    plans: dict[str, str]
    """States of the plans made since, by name."""

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def rate_file(name: str) -> str:
    """Where a workload's `--rate-file` is in supervisors' pods."""
    return f"/tmp/{name}.rate"


def set_rate(storm: StormOnNode, name: str, tuples_per_second: int) -> None:
    """In all supervisor pods, wherever the spout is and comes to be."""
    file = rate_file(name)
    command = f"echo steady:{tuples_per_second} > {file}.new && mv {file}.new {file}"
    for pod in storm.supervisors():
        into = ("exec", pod["metadata"]["name"], "-n", NAMESPACE, "-c", "supervisor", "--")
        storm.kube.kubectl(*into, "bash", "-c", command)


def watch_load_rise(storm: StormOnNode, name: str, tuples_per_second: int, seconds: float) -> list[Reading]:
    """Readings from just before the rise until `seconds` after it."""
    known_plans = frozenset(_plans(storm))
    rise = time.monotonic()
    readings = [_reading(storm, name, known_plans, 0.0, 0)]
    set_rate(storm, name, tuples_per_second)
    while time.monotonic() - rise < seconds:
        time.sleep(SAMPLE_SECONDS)
        readings.append(_reading(storm, name, known_plans, time.monotonic() - rise, readings[-1].period))
    return readings


def passes_since(storm: StormOnNode, number: int = 0) -> list[dict[str, Any]]:
    """The operator's passes after that of this number, oldest first; those of the last hours."""
    passes: list[dict[str, Any]] = json.loads(storm.kube.kubectl("get", "--raw", HISTORY))["passes"]
    return [one for one in passes if one["number"] > number]


def _reading(storm: StormOnNode, name: str, known_plans: Collection[str], seconds: float, last_period: int) -> Reading:
    newest = passes_since(storm)[-1]
    is_new = newest["number"] > last_period
    point = newest["topologies"].get(storm.status(name)["topologyId"], {}) if is_new else {}
    return Reading(
        seconds,
        newest["number"],
        point.get("acked_per_second"),
        point.get("latency_p50_ms"),
        point.get("latency_p99_ms"),
        storm.wanted_millicores(),
        {plan: state for plan, state in _plans(storm).items() if plan not in known_plans},
    )


def _plans(storm: StormOnNode) -> dict[str, str]:
    """State by name."""
    plans = storm.all("stormrebalances")
    return {body["metadata"]["name"]: (body.get("status") or {}).get("state", "") for body in plans}


def load_step_table(readings: Sequence[Reading], title: str) -> Table:
    """A line for each reading; the first is from before."""
    table = Table(title=title)
    for heading in ("seconds", "tuples/s", "p50, ms", "p99, ms", "CPU limits of pods, millicores", "plans"):
        table.add_column(heading)
    for reading in readings:
        table.add_row(
            f"{reading.seconds:.0f}" if reading.seconds else "before",
            _figure(reading.acked_per_second, 0),
            _figure(reading.p50_ms, 1),
            _figure(reading.p99_ms, 1),
            " ".join(str(limit) for _, limit in sorted(reading.limits_millicores.items())),
            ", ".join(f"{plan} {state}" for plan, state in reading.plans.items()),
        )
    return table


def summary(readings: Sequence[Reading]) -> dict[str, Any]:
    """Before, at its worst, and as it ended: latency with the CPU that pods could use then."""
    known = [reading for reading in readings if reading.p50_ms is not None]
    worst = max(known[1:] or known, key=lambda reading: reading.p50_ms or 0.0)
    return {"before": known[0].as_json(), "worst": worst.as_json(), "after": known[-1].as_json()}


def _figure(value: float | None, digits: int) -> str:
    return "?" if value is None else f"{value:.{digits}f}"
