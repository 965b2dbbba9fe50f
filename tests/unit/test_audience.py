"""Several listeners as one: what one of them does wrong must not reach the loop or the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from storm_operator.core.plan_record import PlanRecord
from storm_operator.loop_ports import Audience, PassReport
from storm_operator.step_times import StepTimes

REPORT = PassReport(1.0, None, None, ())
RECORD = cast("PlanRecord", object())


@dataclass
class Keeps:
    heard: list[object] = field(default_factory=list)

    def on_pass(self, report: PassReport) -> None:
        self.heard.append(report)

    def on_record(self, record: PlanRecord) -> None:
        self.heard.append(record)


class Breaks:
    def on_pass(self, report: PassReport) -> None:
        raise OSError("disk is full")

    def on_record(self, record: PlanRecord) -> None:
        raise ValueError("what is that?")


def test_all_hear_all_though_one_breaks() -> None:
    first, last, said = Keeps(), Keeps(), list[str]()
    audience = Audience((first, Breaks(), last), said.append)
    audience.on_pass(REPORT)
    audience.on_record(RECORD)
    assert first.heard == last.heard == [REPORT, RECORD]
    assert said == [
        "Breaks could not take in what the loop did: OSError: disk is full",
        "Breaks could not take in what the loop did: ValueError: what is that?",
    ]


def test_steps_are_timed_also_when_they_fail() -> None:
    ticks = iter((1.0, 3.0, 10.0, 10.5))
    times = StepTimes(lambda: next(ticks))
    with times.step("observe"):
        pass
    try:
        with times.step("decide"):
            raise OSError
    except OSError:
        pass
    assert times.seconds() == {"observe": 2.0, "decide": 0.5}
    times.clear()
    assert times.seconds() == {}
