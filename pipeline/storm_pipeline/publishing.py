"""The learned profile out of the gold tables, into a file or a ConfigMap, whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as f

from storm_operator.core.learned_profile import (
    ComponentProfile,
    ForecastError,
    LearnedProfile,
    Robust,
    SettingsAdvice,
)
from storm_operator.core.learned_profile_json import dump_profile, load_profile
from storm_operator.core.seasonal import Season
from storm_pipeline.gold import COMPONENT_PROFILE, FORECAST_ERRORS, SEASONS, TUNING_ADVICE
from storm_pipeline.lake import Lake, read
from storm_pipeline.schemas import CLUSTER, DerivedTable
from storm_pipeline.tuning.halving import is_surely_better

CONFIG_MAP_BYTES = 1_000_000
"""A ConfigMap holds a mebibyte, its names and labels included."""
KEY = "profile.json"
TIMEOUT_SECONDS = 30.0


class CannotPublish(Exception):
    """The message says what is in the way."""


def compose_profile(
    spark: SparkSession, lake: Lake, cluster: str, made_at_seconds: float, valid_seconds: float
) -> LearnedProfile:
    """What the gold tables say of a cluster; raises `CannotPublish` when they say nothing."""
    profiles = {_key(row): row for row in _rows(spark, lake, COMPONENT_PROFILE, cluster) if row["hour_of_week"] is None}
    seasons = {_key(row): row for row in _rows(spark, lake, SEASONS, cluster)}
    errors: dict[tuple[str, str], dict[str, ForecastError]] = {}
    for row in _rows(spark, lake, FORECAST_ERRORS, cluster):
        error = ForecastError(row["error_percent"], row["short_percent"], row["over_percent"])
        errors.setdefault(_key(row), {})[row["forecaster"]] = error
    topologies: dict[str, dict[str, ComponentProfile]] = {}
    for topology, component in sorted({*profiles, *seasons}):
        key = topology, component
        topologies.setdefault(topology, {})[component] = _component(
            profiles.get(key), seasons.get(key), errors.get(key, {})
        )
    if not topologies:
        raise CannotPublish(f"nothing was learned of cluster {cluster!r} yet; run the jobs profile and forecast first")
    advice = _advice(_rows(spark, lake, TUNING_ADVICE, cluster))
    return LearnedProfile(cluster, made_at_seconds, made_at_seconds + valid_seconds, topologies, advice)


def publish_to_file(profile: LearnedProfile, path: Path) -> None:
    """In one step: whoever reads meanwhile reads the old one or the new one."""
    text = checked_text(profile)
    temporary = path.with_name(f".{path.name}.writing")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise CannotPublish(f"{path} cannot be written: {error}") from error


def publish_to_config_map(profile: LearnedProfile, namespace: str, name: str) -> None:
    """Make the ConfigMap, or put the profile into the one that is there."""
    from kubernetes import client, config

    text = checked_text(profile)
    if len(text.encode()) > CONFIG_MAP_BYTES:
        raise CannotPublish(
            f"the profile has {len(text.encode()):,} bytes, and a ConfigMap holds {CONFIG_MAP_BYTES:,}; "
            "use wider bins (--bin) or publish topologies' clusters apart"
        )
    try:
        config.load_incluster_config()  # type: ignore[no-untyped-call]
    except config.ConfigException:
        config.load_kube_config(os.environ.get("KUBECONFIG"))  # type: ignore[no-untyped-call]
    core: Any = client.CoreV1Api()
    body = {"metadata": {"name": name, "namespace": namespace}, "data": {KEY: text}}
    try:
        try:
            core.patch_namespaced_config_map(name, namespace, body, _request_timeout=TIMEOUT_SECONDS)
        except client.ApiException as error:
            if error.status != 404:
                raise
            core.create_namespaced_config_map(namespace, body, _request_timeout=TIMEOUT_SECONDS)
    except client.ApiException as error:
        raise CannotPublish(f"ConfigMap {namespace}/{name}: {error.status} {error.reason}") from error


def checked_text(profile: LearnedProfile) -> str:
    """The profile as text, read back by the operator's own checks."""
    text = dump_profile(profile)
    load_profile(text)
    return text


def _rows(spark: SparkSession, lake: Lake, table: DerivedTable, cluster: str) -> list[Row]:
    return read(spark, lake.gold(table.name), table).where(f.col(CLUSTER) == cluster).collect()


def _key(row: Row) -> tuple[str, str]:
    return row["topology_name"], row["component"]


def _component(profile: Row | None, season: Row | None, errors: Mapping[str, ForecastError]) -> ComponentProfile:
    shape = json.loads(season["season"]) if season is not None and season["season"] else None
    return ComponentProfile(
        forecaster=season["forecaster"] if season is not None else "DampedTrend",
        season=None if shape is None else _season(shape),
        errors=errors,
        cpu_per_tuple=_robust(profile, "cpu_per_tuple"),
        selectivity=_robust(profile, "selectivity"),
    )


def _season(shape: Mapping[str, Any]) -> Season:
    lists = {name: tuple(shape[name]) for name in ("expected_per_second", "ready_per_second")}
    return Season(**{**shape, **lists})


def _robust(profile: Row | None, figure: str) -> Robust | None:
    if profile is None or profile[figure] is None:
        return None
    return Robust(profile[figure], profile[f"{figure}_spread"], int(profile[f"{figure}_periods"]))


def _advice(rows: list[Row]) -> SettingsAdvice | None:
    best = next((row for row in rows if row["rank"] == 1), None)
    if best is None or not is_surely_better(best["high_percent"]):
        return None
    overrides = tuple(best["overrides"].split())
    return SettingsAdvice(overrides, best["change_percent"], best["low_percent"], best["high_percent"])
