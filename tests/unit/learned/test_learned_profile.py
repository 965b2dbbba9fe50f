"""Learned profiles: as text and back, refused with a reason, and what a forecast makes of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from builders import NOW_SECONDS, chain_topology, component_load, history
from learned_profiles import CLUSTER, DAY_SECONDS, component, profile, season
from storm_operator.core.forecast import PARENTS, forecast_load
from storm_operator.core.learned_profile import (
    SEASONAL,
    Learned,
    LearnedProfile,
    NoProfile,
    ProfileReading,
    SettingsAdvice,
    accept_profiles,
    why_refused,
)
from storm_operator.core.learned_profile_json import dump_profile, load_profile, read_profile
from storm_operator.core.schema_errors import InvalidDocument
from storm_operator.core.settings import Forecast
from storm_operator.core.snapshot import ComponentLoad

WORDS = chain_topology("words", ("spout", 1), ("split", 2), ("count", 2))
NAMES = ("spout", "split", "count")
SPIKE = season(100.0, 100.0, 400.0, 100.0)
GOOD = profile("words", NAMES, SPIKE)


def test_a_profile_survives_its_text() -> None:
    full = replace(GOOD, advice=SettingsAdvice(("thetaMillicores=100",), -12.0, -20.0, -4.0))
    assert load_profile(dump_profile(full)) == full
    assert dump_profile(load_profile(dump_profile(full))) == dump_profile(full)


def test_loads_are_kept_to_four_digits() -> None:
    fine = profile("words", NAMES, season(123.45678))
    found = load_profile(dump_profile(fine)).topologies["words"]["spout"].season
    assert found is not None
    assert found.expected_per_second == (123.5,)


def spoilt(change: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(dump_profile(GOOD))
    change(document)
    return json.dumps(document)


def words_season(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["topologies"]["words"]["spout"]["season"]
    return found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object with a version"),
        (spoilt(lambda d: d.update(version=2)), "version is 2: expected 1"),
        (spoilt(lambda d: d.pop("cluster")), "lacks the field 'cluster'"),
        (spoilt(lambda d: d.update(made_at_seconds=1.76e12)), "expected 253402300799 or less"),
        (spoilt(lambda d: d.update(valid_until_seconds=1e300)), "valid_until_seconds is 1e+300: expected"),
        (spoilt(lambda d: d.update(colour="red")), "unknown field 'colour'"),
        (spoilt(lambda d: words_season(d).update(bin_seconds=0)), "bin_seconds is 0: expected 1 or more"),
        (spoilt(lambda d: words_season(d).update(bin_seconds=0.25, cycle_seconds=1)), "is 0.25: expected 1 or more"),
        (spoilt(lambda d: words_season(d).update(bin_seconds=1e-320)), "e-320: expected 1 or more"),
        (spoilt(lambda d: words_season(d).update(cycle_seconds=0.5)), "cycle_seconds is 0.5: expected 1 or more"),
        (spoilt(lambda d: words_season(d).update(bin_seconds=7)), "do not fill a cycle"),
        (spoilt(lambda d: words_season(d)["ready_per_second"].pop()), "has 3 values: expected 4"),
        (spoilt(lambda d: words_season(d)["expected_per_second"].__setitem__(0, -1)), "is -1: expected 0 or more"),
        (spoilt(lambda d: d["topologies"]["words"]["spout"].update(season=None)), "expected a season"),
        (dump_profile(GOOD).replace("400.0", "NaN"), "contains NaN"),
    ],
)
def test_a_malformed_profile_is_refused_in_a_sentence(text: str, message: str) -> None:
    with pytest.raises(InvalidDocument, match=re.escape(message)):
        load_profile(text)
    reading = read_profile(text, "profile.json")
    assert isinstance(reading, NoProfile)
    assert reading.reason.startswith("profile.json is no learned profile: ")


@pytest.mark.parametrize(
    ("reading", "reason"),
    [
        (GOOD, ""),
        (NoProfile("cannot be read"), "cannot be read"),
        (replace(GOOD, cluster="other:6627"), "is of cluster 'other:6627', this is 'nimbus:6627'"),
        (replace(GOOD, valid_until_seconds=NOW_SECONDS), "was valid until 1970-01-01 00:16 UTC"),
        (replace(GOOD, made_at_seconds=NOW_SECONDS), ""),
        (replace(GOOD, made_at_seconds=NOW_SECONDS + 60.0), ""),
        (replace(GOOD, made_at_seconds=NOW_SECONDS + DAY_SECONDS), "1970-01-02 00:16 UTC, which is yet to come"),
        (profile("lines", NAMES, SPIKE), "no topology 'words', only lines"),
        (profile("words", (*NAMES, "sink"), SPIKE), "component 'sink', which is gone"),
        (profile("words", ("spout", "split"), SPIKE), "does not know component 'count'"),
        (profile("words", (*NAMES, "__acker"), SPIKE), ""),
    ],
)
def test_what_is_old_or_foreign_is_refused(reading: ProfileReading, reason: str) -> None:
    found = why_refused(reading, WORDS, CLUSTER, NOW_SECONDS)
    assert reason in found
    assert bool(found) == bool(reason)
    learned = accept_profiles({"words": reading}, (WORDS,), CLUSTER, NOW_SECONDS)
    assert set(learned.refusals) == ({"words"} if reason else set())
    assert bool(learned.components) != bool(reason)


def test_of_a_topology_without_a_reading_nothing_is_said() -> None:
    assert accept_profiles({}, (WORDS,), CLUSTER, NOW_SECONDS) == Learned()


def everywhere(*arrived: float) -> dict[str, list[ComponentLoad]]:
    return {name: [component_load(value) for value in arrived] for name in NAMES}


def learned(made: LearnedProfile) -> Learned:
    return accept_profiles({"words": made}, (WORDS,), CLUSTER, NOW_SECONDS)


def test_a_learned_spike_is_forecast_and_the_forecaster_named() -> None:
    # The last period ends at 1000, a multiple of the cycle; the spike is in the first of its bins.
    periods = history("words", everywhere(110.0, 110.0))
    soon = profile("words", NAMES, season(400.0, 100.0, 100.0, 100.0))
    found = forecast_load(WORDS, periods, 5, learned=learned(soon))
    assert found["spout"].arrivals_per_second == pytest.approx(440.0)
    assert found["spout"].forecaster == SEASONAL
    assert not found["spout"].why_not_learned


def test_children_hear_nothing_of_their_parents_season() -> None:
    own = {name: component(SPIKE if name == "spout" else None, "Line") for name in NAMES}
    own["spout"] = component(season(400.0, 100.0, 100.0, 100.0))
    periods = history("words", everywhere(100.0, 100.0))
    found = forecast_load(WORDS, periods, 5, learned=learned(replace(GOOD, topologies={"words": own})))
    assert found["spout"].arrivals_per_second == pytest.approx(400.0)
    assert found["split"].arrivals_per_second == forecast_load(WORDS, periods, 5)["split"].arrivals_per_second


def test_a_components_own_season_counts_and_not_what_its_parents_announce() -> None:
    flat = season(100.0, 100.0, 100.0, 100.0)
    spike = season(300.0, 100.0, 100.0, 100.0)
    own = {"spout": component(spike), "split": component(flat), "count": component(None, "Line")}
    made = replace(GOOD, topologies={"words": own})
    found = forecast_load(WORDS, history("words", everywhere(100.0, 100.0)), 5, learned=learned(made))
    assert found["spout"].arrivals_per_second == pytest.approx(300.0)
    assert found["split"].arrivals_per_second == pytest.approx(100.0)
    assert found["split"].forecaster == "Seasonal"


def test_without_a_profile_nothing_changes_and_with_a_refused_one_it_is_said() -> None:
    periods = history("words", {"spout": [component_load(100.0), component_load(110.0)]})
    plain = forecast_load(WORDS, periods, 5)
    refused = forecast_load(WORDS, periods, 5, learned=learned(replace(GOOD, cluster="other")))
    assert plain["spout"].forecaster == refused["spout"].forecaster == "Line"
    assert plain["spout"].arrivals_per_second == refused["spout"].arrivals_per_second
    assert not plain["spout"].why_not_learned
    assert "is of cluster 'other'" in refused["spout"].why_not_learned
    assert plain["split"].forecaster == PARENTS


def test_where_the_season_lost_the_backtest_the_settings_forecaster_is_used() -> None:
    worse = {**GOOD.topologies["words"], "spout": component(SPIKE, "DampedTrend")}
    periods = history("words", everywhere(100.0))
    made = replace(GOOD, topologies={"words": worse})
    found = forecast_load(WORDS, periods, 5, method=Forecast.DAMPED_TREND, learned=learned(made))
    assert found["spout"].forecaster == "DampedTrend"
    assert "DampedTrend to be better" in found["spout"].why_not_learned
    assert found["split"].forecaster == SEASONAL


def test_a_component_without_a_season_is_not_said_to_have_a_worse_one() -> None:
    without = {**GOOD.topologies["words"], "spout": component(None, "DampedTrend")}
    made = replace(GOOD, topologies={"words": without})
    found = forecast_load(WORDS, history("words", everywhere(100.0)), 5, learned=learned(made))
    assert found["spout"].why_not_learned == "the profile has no season to go by"


def test_a_load_where_none_is_expected_is_left_to_its_last_periods() -> None:
    periods = history("words", everywhere(100.0))
    found = forecast_load(WORDS, periods, 5, learned=learned(profile("words", NAMES, season(0.0, 0.0))))
    assert found["spout"].forecaster == "Line"
    assert found["spout"].arrivals_per_second == 100.0
    assert "do not tell how far" in found["spout"].why_not_learned
