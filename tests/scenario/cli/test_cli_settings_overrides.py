"""`--set key=value`: every setting can be set, by the name that StormTopology gives it."""

from __future__ import annotations

import pytest

from storm_operator.core.settings import Enforcement, Mode
from storm_operator.settings_overrides import InvalidOverride, Settings, override_settings, setting_names


def test_settings_of_every_kind() -> None:
    changed = override_settings(
        Settings(),
        [
            "policy=liu",
            "coolDownSeconds=0",
            "history_periods=3",
            "mode=Recommend",
            "thetaMillicores = 100",
            "enforcement=None",
            "weights.workerRestart=2.5",
            "parameters.alpha=0.5",
            "parameters.beta=1",
        ],
    )
    scheduling, resources = changed.scheduling, changed.resources
    assert (scheduling.policy, scheduling.cool_down_seconds, scheduling.history_periods) == ("liu", 0.0, 3)
    assert (scheduling.mode, scheduling.weights.worker_restart) == (Mode.RECOMMEND, 2.5)
    assert scheduling.parameters == (("alpha", 0.5), ("beta", 1.0))
    assert (resources.theta_millicores, resources.enforcement) == (100.0, Enforcement.NONE)


def test_the_last_one_wins_and_the_defaults_stay() -> None:
    changed = override_settings(Settings(), ["coolDownSeconds=1", "coolDownSeconds=2"])
    assert changed.scheduling.cool_down_seconds == 2.0
    assert changed.resources == Settings().resources


@pytest.mark.parametrize("name", setting_names())
def test_every_name_that_is_offered_can_be_set(name: str) -> None:
    values = ("1", "1000", "liu", "Always", "Gain", "Line", "Enforce", "Rebalance", "Pod")
    for value in values:
        try:
            override_settings(Settings(), [f"{name}={value}"])
        except InvalidOverride:
            continue
        return
    pytest.fail(f"{name} takes none of {values}")


@pytest.mark.parametrize("text", ["weights=1", "weights.colour=1", "parameters=1", "a.b=1"])
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises(InvalidOverride, match="is no setting: expected parameters"):
        override_settings(Settings(), [text])


@pytest.mark.parametrize("text", ["", "=1", "policy=", "minimumGainPercent"])
def test_what_lacks_a_key_or_a_value_is_told_the_form(text: str) -> None:
    with pytest.raises(InvalidOverride) as refused:
        override_settings(Settings(), [text])
    assert str(refused.value) == f"{text!r} has no key or no value: KEY=VALUE is needed, e.g. coolDownSeconds=0"


@pytest.mark.parametrize(
    ("policy", "key", "meant"),
    [
        ("t-storm", "gamma", "parameters.gamma"),
        ("t-storm", "weights.gamma", "parameters.gamma"),
        ("liu", "gamma", "parameters.gamma (of policy t-storm)"),
        ("liu", "workerRestart", "weights.workerRestart"),
        ("liu", "worker_restart", "weights.workerRestart"),
        ("liu", "scheduling.coolDownSeconds", "coolDownSeconds"),
    ],
)
def test_a_name_in_the_wrong_section_is_recognised(policy: str, key: str, meant: str) -> None:
    with pytest.raises(InvalidOverride) as refused:
        override_settings(Settings(), [f"policy={policy}", f"{key}=2"])
    assert str(refused.value) == f"{key!r} is no setting: did you mean {meant}?"


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "ten", "1e308"])
def test_numbers_are_not_negative_and_what_sums_do_not_overflow_of(value: str) -> None:
    with pytest.raises(InvalidOverride, match="expected a number from 0 to 1e\\+15"):
        override_settings(Settings(), [f"weights.stateLost={value}"])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ("thetaMillicores=0", "thetaMillicores is 0.0: is less than the minimum of 1"),
        ("thetaMillicores=-1", "thetaMillicores is -1.0: is less than the minimum of 1"),
        ("thetaMillicores=1e9", "thetaMillicores is 1000000000.0: is greater than the maximum of 1000000"),
        ("headroomFraction=0", "headroomFraction: must be at least 0.05; found 0.0"),
        ("headroom_fraction=2", "headroomFraction is 2.0: is greater than the maximum of 1"),
        ("ceilingMillicores=0", "ceilingMillicores is 0.0: is less than the minimum of 1"),
        ("periodSeconds=0", "periodSeconds is 0.0: is less than the minimum of 1"),
        ("historyPeriods=61", "historyPeriods is 61: is greater than the maximum of 60"),
        ("minimumCompleteness=2", "minimumCompleteness is 2.0: is greater than the maximum of 1"),
        (
            "floorMillicores=900 ceilingMillicores=100",
            "resources: floorMillicores must not be more than ceilingMillicores; "
            "found floorMillicores 900.0 and ceilingMillicores 100.0",
        ),
    ],
)
def test_what_a_stormtopology_would_be_refused_for_is_refused(overrides: str, message: str) -> None:
    with pytest.raises(InvalidOverride) as refused:
        override_settings(Settings(), overrides.split())
    assert str(refused.value) == message


def test_settings_are_held_to_the_rules_when_all_are_laid_over() -> None:
    changed = override_settings(Settings(), ["floorMillicores=1500", "ceilingMillicores=2000"])
    assert (changed.resources.floor_millicores, changed.resources.ceiling_millicores) == (1500.0, 2000.0)
