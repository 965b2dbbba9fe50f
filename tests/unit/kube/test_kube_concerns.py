"""What fails beside plans: caught one by one, said once, shown by its own reason, tried again ever more slowly."""

from __future__ import annotations

import pytest

from storm_operator.adapters.errors import AdapterError, NimbusUnreachable, NotLeader, ZooKeeperUnreachable
from storm_operator.adapters.kube.errors import Forbidden
from storm_operator.core.backoff import FIRST_RETRY_SECONDS, SLOWEST_RETRY_SECONDS
from storm_operator.kube.concerns import Concern, Concerns

SCALE = Concern("ScaleRefused", "", frozenset({"words"}))


class Scene:
    def __init__(self) -> None:
        self.now, self.said, self.told = 0.0, list[str](), list[tuple[str, str]]()
        self.concerns = Concerns(lambda: self.now, self.said.append)
        self.error: Exception | None = Forbidden("may not scale")
        self.tried = 0

    def act(self) -> None:
        self.tried += 1
        if self.error is not None:
            raise self.error

    def attempt(self, identity: str = "", after_seconds: float = 0.0) -> bool:
        self.now += after_seconds
        return self.concerns.attempt(SCALE, self.act, lambda *news: self.told.append(news), identity)

    def shown(self, topology: str = "words") -> list[str]:
        return [trouble.message for trouble in self.concerns.of(topology)]


def test_failure_is_said_once_told_and_shown_to_those_concerned() -> None:
    played = Scene()
    assert not played.attempt()
    assert not played.attempt(after_seconds=FIRST_RETRY_SECONDS)
    assert played.said == ["ScaleRefused: may not scale"]
    assert played.told[0] == ("ScaleRefused", "may not scale")
    assert (played.shown(), played.shown("other")) == (["may not scale"], [])


def test_it_is_tried_again_ever_more_slowly() -> None:
    played = Scene()
    for _ in range(3600):
        played.attempt(after_seconds=1.0)
    assert played.tried <= 3600 / SLOWEST_RETRY_SECONDS + 6


def test_something_else_is_tried_at_once() -> None:
    played = Scene()
    played.attempt("3 pods")
    played.attempt("3 pods")
    played.attempt("4 pods")
    assert played.tried == 2


def test_success_ends_it() -> None:
    played = Scene()
    played.attempt()
    played.error = None
    assert played.attempt(after_seconds=FIRST_RETRY_SECONDS)
    assert played.shown() == []


def test_one_that_nobody_tries_again_is_over() -> None:
    played = Scene()
    played.attempt()
    played.now += 3 * SLOWEST_RETRY_SECONDS
    assert played.shown() == []


def test_only_what_is_still_wanted_is_kept() -> None:
    played = Scene()
    played.attempt()
    played.concerns.keep("Other", ())
    assert played.shown() == ["may not scale"]
    played.concerns.keep("ScaleRefused", ())
    assert played.shown() == []


@pytest.mark.parametrize("away", [NimbusUnreachable("away"), NotLeader("no leader"), ZooKeeperUnreachable("away")])
def test_peer_that_gives_no_answer_is_no_concern_of_its_own(away: AdapterError) -> None:
    played = Scene()
    played.error = away
    with pytest.raises(type(away)):
        played.attempt()
    assert played.concerns.troubles == {}
