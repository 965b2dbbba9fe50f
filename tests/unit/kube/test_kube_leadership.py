"""Leading only while the Lease is held: waiting for it, renewing it, and ending in time when it is lost."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from types import SimpleNamespace

import pytest

from storm_operator.adapters.kube.errors import Forbidden, KubernetesError
from storm_operator.adapters.kube.leases import Lease, LeaseTerms
from storm_operator.kube import leadership
from storm_operator.kube.leadership import (
    HAND_OVER_SECONDS,
    LAST_MOMENT_SECONDS,
    keep_leadership,
    lead_under,
    wait_for_leadership,
)

TERMS = LeaseTerms("storm", "storm-operator", "me", duration_seconds=15, renew_seconds=4.0)
PATIENCE_SECONDS = 30.0
DOWN = KubernetesError("read lease storm/storm-operator: down")


@dataclass
class FakeTime:
    """The monotonic clock, and an event that lets time pass instead of waiting; set after `waits` waits."""

    waits: int = 100
    now: float = 1000.0
    is_set_now: bool = False

    def monotonic(self) -> float:
        return self.now

    def wait(self, timeout: float) -> bool:
        self.waits -= 1
        self.now += timeout
        self.is_set_now = self.waits <= 0
        return self.is_set_now

    def is_set(self) -> bool:
        return self.is_set_now


class FakeLease(Lease):
    """Answers one after the other; the last one for ever."""

    def __init__(
        self,
        *answers: bool | Exception,
        on_hold: Callable[[], None] = lambda: None,
        released: list[str] | None = None,
    ) -> None:
        self.released = released if released is not None else []
        self.answers = list(answers)
        self.asked = 0
        self.on_hold = on_hold

    def hold(self) -> bool:
        self.asked += 1
        self.on_hold()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def release(self) -> None:
        self.released.append("released")


class FakeTimer:
    """A watchdog that never barks, but tells when it would."""

    def __init__(self, seconds: float, *_: object) -> None:
        self.seconds = seconds
        self.state = ""
        self.daemon = False

    def start(self) -> None:
        self.state = "started"

    def cancel(self) -> None:
        self.state += ", cancelled"


@dataclass
class Kept:
    """What came of keeping a lease."""

    time: FakeTime
    lost: list[str] = field(default_factory=list)
    lost_at: list[float] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def on_lost(self, reason: str) -> None:
        self.lost.append(reason)
        self.lost_at.append(self.time.now)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    time = FakeTime()
    monkeypatch.setattr(leadership, "time", time)
    return time


@pytest.fixture
def watchdogs(monkeypatch: pytest.MonkeyPatch) -> list[FakeTimer]:
    made: list[FakeTimer] = []

    def make(seconds: float, *_: object) -> FakeTimer:
        made.append(FakeTimer(seconds))
        return made[-1]

    monkeypatch.setattr(leadership, "threading", SimpleNamespace(Timer=make))
    return made


def keep(time: FakeTime, lease: Lease) -> Kept:
    kept = Kept(time)
    keep_leadership(lease, TERMS, time.now, time, kept.on_lost, kept.said.append)  # type: ignore[arg-type]
    return kept


class TestWaiting:
    @staticmethod
    def wait(time: FakeTime, lease: Lease) -> tuple[float | None, list[str]]:
        said: list[str] = []
        return wait_for_leadership(lease, TERMS, time, said.append), said  # type: ignore[arg-type]

    def test_free_lease_is_held_at_once(self, time: FakeTime) -> None:
        assert self.wait(time, FakeLease(True)) == (1000.0, [])
        assert time.now == 1000.0

    def test_held_lease_is_waited_for_and_said_once(self, time: FakeTime) -> None:
        led, said = self.wait(time, FakeLease(False, False, False, True))
        assert led == 1000.0 + 3 * TERMS.renew_seconds
        assert said == ["another replica holds lease storm/storm-operator; waiting"]

    def test_api_that_does_not_answer_is_asked_again(self, time: FakeTime) -> None:
        assert self.wait(time, FakeLease(DOWN, True)) == (1004.0, [str(DOWN)])

    def test_refusal_is_asked_about_ever_more_slowly(self, time: FakeTime) -> None:
        no = Forbidden("read lease storm/storm-operator: forbidden")
        assert self.wait(time, FakeLease(no, no, no, True)) == (1000.0 + 10.0 + 20.0 + 40.0, [str(no)] * 3)

    def test_stop_ends_the_wait(self, time: FakeTime) -> None:
        time.waits = 3
        lease = FakeLease(False)
        assert self.wait(time, lease)[0] is None
        assert lease.asked == 3


class TestLeadingUnder:
    """A lease that is held, while what acts under it comes to its end."""

    @pytest.fixture(autouse=True)
    def hand_over(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """After how many seconds threads were told to hand over Python's lock."""
        told: list[float] = []
        monkeypatch.setattr(sys, "setswitchinterval", told.append)
        return told

    @staticmethod
    def play(all_ended: bool) -> tuple[list[str], list[str]]:
        """What happened to the lease in order, and why the process was to end."""
        happened: list[str] = []
        renewed = threading.Event()
        lost: list[str] = []

        def on_hold() -> None:
            happened.append("renewed")
            renewed.set()

        def lead() -> bool:
            happened.append("told to end")
            renewed.clear()
            assert renewed.wait(PATIENCE_SECONDS), "it is renewed while loops end"
            happened.append("ended" if all_ended else "given up")
            return all_ended

        terms = LeaseTerms("storm", "storm-operator", "me", renew_seconds=0.001)
        lease = FakeLease(True, on_hold=on_hold, released=happened)
        lead_under(lease, terms, monotonic(), lead, lost.append, lambda _: None)
        return happened, lost

    def test_lease_is_renewed_until_all_has_ended_and_then_given_back(self) -> None:
        happened, lost = self.play(all_ended=True)
        told, ended = happened.index("told to end"), happened.index("ended")
        assert "renewed" in happened[told:ended]
        assert happened[-1] == "released", "no renewal comes after it"
        assert lost == []

    def test_renewals_wait_for_no_busy_loop_longer_than_a_moment(self, hand_over: list[float]) -> None:
        self.play(all_ended=True)
        assert hand_over == [HAND_OVER_SECONDS]

    def test_lease_is_not_given_back_while_something_still_acts(self) -> None:
        happened, lost = self.play(all_ended=False)
        assert "released" not in happened
        assert lost == ["a loop has not come to its end in time"]


class TestKeeping:
    def test_renews_until_it_is_stopped(self, time: FakeTime) -> None:
        time.waits = 10
        lease = FakeLease(True)
        assert keep(time, lease).lost == []
        assert lease.asked == 9

    def test_lease_that_another_took_ends_the_process(self, time: FakeTime) -> None:
        kept = keep(time, FakeLease(True, True, False))
        assert kept.lost == ["lease storm/storm-operator was taken by another replica"]

    def test_one_conflict_after_which_the_lease_is_still_held_ends_nothing(self, time: FakeTime) -> None:
        # A connection that broke after the renewal was taken: it is sent again by itself, and conflicts with itself.
        time.waits = 4
        assert keep(time, FakeLease(True, False, True)).lost == []

    def test_watchdog_ends_the_process_a_moment_before_the_lease_lapses(
        self, time: FakeTime, watchdogs: list[FakeTimer]
    ) -> None:
        time.waits = 4
        keep(time, FakeLease(True, DOWN, True))
        # The first may use what is left of the lease; the others what is left since the last renewal that succeeded.
        assert [watchdog.seconds for watchdog in watchdogs] == [
            TERMS.duration_seconds - LAST_MOMENT_SECONDS - TERMS.renew_seconds,
            TERMS.duration_seconds - LAST_MOMENT_SECONDS - TERMS.renew_seconds,
            TERMS.duration_seconds - LAST_MOMENT_SECONDS - 2 * TERMS.renew_seconds,
        ]

    def test_watchdog_is_called_off_however_the_renewal_ends(self, time: FakeTime, watchdogs: list[FakeTimer]) -> None:
        keep(time, FakeLease(True, DOWN, False))
        assert [watchdog.state for watchdog in watchdogs] == ["started, cancelled"] * 3

    def test_one_failed_renewal_is_only_said(self, time: FakeTime) -> None:
        time.waits = 10
        kept = keep(time, FakeLease(True, DOWN, True, DOWN, True))
        assert kept.lost == []
        assert kept.said == [str(DOWN), str(DOWN)]

    def test_lost_renewals_end_the_process_before_another_may_take_over(self, time: FakeTime) -> None:
        kept = keep(time, FakeLease(True, DOWN))
        assert kept.lost == ["lease storm/storm-operator could not be renewed in time"]
        renewed_at = 1000.0 + TERMS.renew_seconds
        assert kept.lost_at[0] < renewed_at + TERMS.duration_seconds

    def test_what_nobody_foresaw_ends_the_process_and_not_only_the_renewals(self, time: FakeTime) -> None:
        kept = keep(time, FakeLease(True, AttributeError("no spec")))
        assert kept.lost == ["lease storm/storm-operator cannot be renewed any more: AttributeError: no spec"]

    def test_lease_runs_from_when_its_renewal_was_asked_for(self, time: FakeTime) -> None:
        # What was written is the time before the call: a slow answer does not make the lease longer.
        def slow() -> None:
            time.now += 5.0

        kept = keep(time, FakeLease(True, DOWN, on_hold=slow))
        renewed_at = 1000.0 + TERMS.renew_seconds
        assert kept.lost_at[0] < renewed_at + TERMS.duration_seconds

    def test_lease_that_was_taken_slowly_runs_from_when_it_was_asked_for(self, time: FakeTime) -> None:
        def slow() -> None:
            time.now += 9.0

        held_since = wait_for_leadership(FakeLease(True, on_hold=slow), TERMS, time, str)  # type: ignore[arg-type]
        assert held_since is not None
        kept = Kept(time)
        keep_leadership(FakeLease(DOWN), TERMS, held_since, time, kept.on_lost, str)  # type: ignore[arg-type]
        assert kept.lost_at[0] <= held_since + TERMS.duration_seconds


def test_renewal_that_hangs_ends_the_process_too() -> None:
    ended = threading.Event()
    released: list[bool] = []

    def hang() -> None:
        released.append(ended.wait(10.0))

    terms = LeaseTerms("storm", "storm-operator", "me", duration_seconds=1, renew_seconds=0.0)
    reasons: list[str] = []

    def lost(reason: str) -> None:
        reasons.append(reason)
        ended.set()

    stop = FakeTime(waits=2)
    lease = FakeLease(DOWN, on_hold=hang)
    keep_leadership(lease, terms, monotonic(), stop, lost, lambda _: None)  # type: ignore[arg-type]
    assert released == [True]
    assert reasons[0] == "lease storm/storm-operator could not be renewed in time"
