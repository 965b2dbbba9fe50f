"""Which settings are tried: a grid of policies and knobs, drawn from evenly when it is larger than asked for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from storm_operator.core.placement.registry import check_policy, policy_named
from storm_operator.settings_overrides import InvalidOverride, Settings, key_and_value, override_settings

Overrides = tuple[str, ...]
"""`key=value`, as `plan --set` takes them, without spaces: tables have them in one text with spaces between."""

KNOBS: Mapping[str, Sequence[str]] = {
    "thetaMillicores": ("50", "100", "150", "200", "300"),
    "historyPeriods": ("3", "5", "8"),
    "forecast": ("Line", "DampedTrend"),
    "coolDownSeconds": ("30", "60", "120", "300"),
    "minimumGainPercent": ("5", "10", "20", "30"),
    "headroomFraction": ("0.8", "0.9"),
}
"""theta, phi, the forecast, cool-down, minimum gain and how full supervisors may get."""
OF_POLICY: Mapping[str, Mapping[str, Sequence[str]]] = {
    "adaptive": {"weights.workerRestart": ("3", "10", "30")},
    "liu": {},
    "t-storm": {},
    "aniello-offline": {"parameters.alpha": ("0", "0.5", "1"), "parameters.beta": ("0.3", "0.5", "0.7")},
    "aniello-online": {
        "parameters.alpha": ("0", "0.5"),
        "parameters.capacity_fraction": ("0.8", "0.9"),
        "parameters.overload_seconds": ("10", "30"),
        "parameters.reschedule_seconds": ("40", "120"),
        "parameters.least_reduction_percent": ("10", "30"),
    },
}
"""Each policy's own knobs beside those: our price of a restart; alpha, beta, B, X, P and R of Aniello et al."""
OWN_NUMBERS = "parameters."
"""What the keys of a policy's own numbers begin with: another policy refuses them."""
PRESENT: Overrides = ()
"""The settings as they are."""


def candidates(count: int, seed: int, given: Iterable[str] = ()) -> list[Overrides]:
    """`count` settings at most, all different; the present ones (`given` alone) first.

    `given` comes before each, without the numbers of its policy where another is tried. `InvalidOverride` names what is
    wrong in any of them.
    """
    given = tuple("=".join(key_and_value(one)) for one in given)
    present = settings_of(given).scheduling.policy
    of_any_policy = [one for one in given if not one.startswith(OWN_NUMBERS)]
    random = np.random.default_rng(seed)
    chosen: list[Overrides] = []
    share = -(-max(0, count - 1) // len(OF_POLICY))
    for policy, own in OF_POLICY.items():
        inherited = given if policy == present else of_any_policy
        grid = _grid(policy, own)
        order = random.permutation(len(grid))[:share]
        chosen += [(*inherited, *grid[index]) for index in sorted(order.tolist())]
    drawn = chosen[: count - 1]
    for one in drawn:
        settings_of(one)
    return [(*given, *PRESENT), *drawn]


def settings_of(overrides: Overrides) -> Settings:
    """The settings with the overrides laid over the defaults; `InvalidOverride` names what is wrong."""
    settings = override_settings(Settings(), overrides)
    try:
        policy_named(settings.scheduling.policy)
        check_policy(settings.scheduling.policy, settings.scheduling.parameters)
    except ValueError as error:
        raise InvalidOverride(str(error)) from error
    return settings


def _grid(policy: str, own: Mapping[str, Sequence[str]]) -> list[Overrides]:
    knobs = {**KNOBS, **own}
    return [
        (f"policy={policy}", *(f"{key}={value}" for key, value in zip(knobs, values, strict=True)))
        for values in itertools.product(*knobs.values())
    ]
