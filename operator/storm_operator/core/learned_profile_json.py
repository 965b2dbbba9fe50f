"""A learned profile as a JSON text: versioned, checked strictly. The form is docs/reference/profile.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, cast

from storm_operator.core.learned_profile import (
    SEASONAL,
    ComponentProfile,
    ForecastError,
    LearnedProfile,
    NoProfile,
    ProfileReading,
    Robust,
    SettingsAdvice,
)
from storm_operator.core.schema_errors import InvalidDocument, check_document, check_version, parse_strictly
from storm_operator.core.seasonal import Season, bins_in

VERSION = 1
SCHEMA_FILE = Path(__file__).parent.parent / "schemas" / "learned-profile-v1.schema.json"
SIGNIFICANT_DIGITS = 4
"""Of a load's shape: more would say nothing, and a ConfigMap holds a megabyte."""

Document = dict[str, Any]


@cache
def profile_schema() -> Mapping[str, Any]:
    """The JSON schema (draft 2020-12) of version 1."""
    return cast("Mapping[str, Any]", json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))


def dump_profile(profile: LearnedProfile) -> str:
    """`profile` as JSON; the same profile gives the same text, with loads to four significant digits."""
    document: Document = {
        "version": VERSION,
        "cluster": profile.cluster,
        "made_at_seconds": profile.made_at_seconds,
        "valid_until_seconds": profile.valid_until_seconds,
        "topologies": {
            topology: {name: _component_document(one) for name, one in sorted(components.items())}
            for topology, components in sorted(profile.topologies.items())
        },
        "settings": None if profile.advice is None else asdict(profile.advice),
    }
    return json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n"


def load_profile(text: str) -> LearnedProfile:
    """The profile in a JSON text. Raises `InvalidDocument` when it is none of version 1."""
    document = check_version(parse_strictly(text, "a learned profile"), VERSION)
    check_document(document, profile_schema())
    return LearnedProfile(
        cluster=document["cluster"],
        made_at_seconds=document["made_at_seconds"],
        valid_until_seconds=document["valid_until_seconds"],
        topologies={
            topology: {name: _component(one, f"topologies.{topology}.{name}") for name, one in components.items()}
            for topology, components in document["topologies"].items()
        },
        advice=_advice(document["settings"]),
    )


def read_profile(text: str, where: str) -> ProfileReading:
    """Likewise, but what is wrong is a value; `where` says what was read."""
    try:
        return load_profile(text)
    except InvalidDocument as error:
        return NoProfile(f"{where} is no learned profile: {error}")


def _component_document(profile: ComponentProfile) -> Document:
    season = profile.season
    return {
        "forecaster": profile.forecaster,
        "errors": {name: asdict(error) for name, error in sorted(profile.errors.items())},
        "cpu_per_tuple": None if profile.cpu_per_tuple is None else asdict(profile.cpu_per_tuple),
        "selectivity": None if profile.selectivity is None else asdict(profile.selectivity),
        "season": None
        if season is None
        else asdict(season)
        | {
            "expected_per_second": [_rounded(value) for value in season.expected_per_second],
            "ready_per_second": [_rounded(value) for value in season.ready_per_second],
        },
    }


def _rounded(value: float) -> float:
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def _component(document: Document, where: str) -> ComponentProfile:
    season = _season(document["season"], f"{where}.season")
    if document["forecaster"] == SEASONAL and season is None:
        raise InvalidDocument(f"{where}.season is null: expected a season, which forecaster {SEASONAL} goes by")
    return ComponentProfile(
        forecaster=document["forecaster"],
        season=season,
        errors={name: ForecastError(**error) for name, error in document["errors"].items()},
        cpu_per_tuple=_robust(document["cpu_per_tuple"]),
        selectivity=_robust(document["selectivity"]),
    )


def _season(document: Document | None, where: str) -> Season | None:
    if document is None:
        return None
    try:
        bins = bins_in(document["cycle_seconds"], document["bin_seconds"])
    except ValueError as error:
        raise InvalidDocument(f"{where}: {error}") from None
    for name in ("expected_per_second", "ready_per_second"):
        if len(document[name]) != bins:
            raise InvalidDocument(f"{where}.{name} has {len(document[name])} values: expected {bins}, one for each bin")
        document = {**document, name: tuple(document[name])}
    return Season(**document)


def _robust(document: Document | None) -> Robust | None:
    return None if document is None else Robust(**document)


def _advice(document: Document | None) -> SettingsAdvice | None:
    return None if document is None else SettingsAdvice(**{**document, "overrides": tuple(document["overrides"])})
