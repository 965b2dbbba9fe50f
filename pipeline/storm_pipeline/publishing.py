"""The learned profile out of the gold tables, into a file or a ConfigMap, whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
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
from storm_operator.core.schema_errors import InvalidDocument
from storm_operator.core.seasonal import Season
from storm_operator.history.files import Files
from storm_pipeline.gold import COMPONENT_PROFILE, FORECAST_ERRORS, SEASONS, TUNING_ADVICE
from storm_pipeline.lake import Lake, read
from storm_pipeline.schemas import CLUSTER, DerivedTable
from storm_pipeline.tuning.halving import is_surely_better
from storm_pipeline.wider_bins import narrowest_bin

CONFIG_MAP_BYTES = 1_000_000
"""A ConfigMap holds a mebibyte, its names and labels included."""
KEY = "profile.json"
TIMEOUT_SECONDS = 30.0


class CannotPublish(Exception):
    """The message says what is in the way."""


@dataclass(frozen=True, slots=True)
class Findings:
    """A cluster's rows of the gold tables that a profile is made of; `profiles` are those over all hours."""

    cluster: str
    profiles: Sequence[Row] = ()
    seasons: Sequence[Row] = ()
    errors: Sequence[Row] = ()
    advice: Sequence[Row] = ()


def read_findings(spark: SparkSession, lake: Lake, cluster: str) -> Findings:
    """What the jobs have found out so far."""
    profiles = [row for row in _rows(spark, lake, COMPONENT_PROFILE, cluster) if row["hour_of_week"] is None]
    seasons = _rows(spark, lake, SEASONS, cluster)
    errors = _rows(spark, lake, FORECAST_ERRORS, cluster)
    return Findings(cluster, profiles, seasons, errors, _rows(spark, lake, TUNING_ADVICE, cluster))


def compose_profile(found: Findings, valid_seconds: float) -> LearnedProfile:
    """The profile counts as made when the newest period ended that it was learned from: computed anew it gets no newer.

    Of costs and seasons the older ones count. What is past its validity by then is left out, and so are components that
    a topology's newest id does not have: with a component that is gone the operator refuses all, as it does without one
    that is there. Of such a one nothing need be known. Raises `CannotPublish` when there is nothing, or nobody knows
    how old it is.
    """
    _insist_on_ages(found)
    learned = [[row for row in rows if row["newest_period"] is not None] for rows in (found.profiles, found.seasons)]
    if not any(learned):
        raise CannotPublish(
            f"nothing was learned of cluster {found.cluster!r} yet; run the jobs profile and forecast first"
        )
    made_at = min(max(map(_newest_seconds, rows)) for rows in learned if rows)
    oldest = made_at - valid_seconds
    profiles, seasons = ({_key(row): row for row in rows if _newest_seconds(row) > oldest} for rows in learned)
    errors: dict[tuple[str, str], dict[str, ForecastError]] = {}
    for row in found.errors:
        error = ForecastError(row["error_percent"], row["short_percent"], row["over_percent"])
        errors.setdefault(_key(row), {})[row["forecaster"]] = error
    topologies: dict[str, dict[str, ComponentProfile]] = {}
    for key in sorted(_present([row for row in (*found.profiles, *found.seasons) if _seen_seconds(row) > oldest])):
        topology, component = key
        judged = errors.get(key, {}) if key in seasons else {}
        topologies.setdefault(topology, {})[component] = _component(profiles.get(key), seasons.get(key), judged)
    advice = _advice(found.advice, oldest)
    return LearnedProfile(found.cluster, made_at, made_at + valid_seconds, topologies, advice)


def publish_to_file(profile: LearnedProfile, path: Path) -> None:
    """In one step: whoever reads meanwhile, or after a power cut, reads the old one or the new one."""
    text = checked_text(profile)
    try:
        Files.at(str(path.parent.absolute())).write_whole(path.name, lambda sink: sink.write(text.encode()))
    except OSError as error:
        raise CannotPublish(f"{path} cannot be written: {error}") from error


def publish_to_config_map(profile: LearnedProfile, namespace: str, name: str) -> None:
    """Make the ConfigMap, or put the profile into the one that is there."""
    from kubernetes import client, config
    from urllib3.exceptions import HTTPError

    text = checked_text(profile)
    if len(text.encode()) > CONFIG_MAP_BYTES:
        raise CannotPublish(
            f"the profile has {len(text.encode()):,} bytes, and a ConfigMap holds {CONFIG_MAP_BYTES:,}: "
            f"{_what_fits(profile)}"
        )
    body = {"metadata": {"name": name, "namespace": namespace}, "data": {KEY: text}}
    try:
        try:
            config.load_incluster_config()  # type: ignore[no-untyped-call]
        except config.ConfigException:
            config.load_kube_config(os.environ.get("KUBECONFIG"))  # type: ignore[no-untyped-call]
        core: Any = client.CoreV1Api()
        try:
            core.patch_namespaced_config_map(name, namespace, body, _request_timeout=TIMEOUT_SECONDS)
        except client.ApiException as error:
            if error.status != 404:
                raise
            core.create_namespaced_config_map(namespace, body, _request_timeout=TIMEOUT_SECONDS)
    except client.ApiException as error:
        raise CannotPublish(f"ConfigMap {namespace}/{name}: {error.status} {error.reason}") from error
    except (config.ConfigException, HTTPError) as error:
        raise CannotPublish(f"ConfigMap {namespace}/{name}: Kubernetes cannot be reached: {error}") from error


def _what_fits(profile: LearnedProfile) -> str:
    seconds = narrowest_bin(profile, CONFIG_MAP_BYTES)
    if seconds is None:
        return "with bins as wide as a cycle it would be too large as well"
    return f"run forecast with wider bins, --bin {seconds:g}"


def checked_text(profile: LearnedProfile) -> str:
    """The profile as text, read back by the operator's own checks."""
    text = dump_profile(profile)
    try:
        load_profile(text)
    except InvalidDocument as error:  # such as a season of more bins than it takes
        raise CannotPublish(f"the operator would refuse it: {error}") from error
    return text


def validity(profile: LearnedProfile, now_seconds: float) -> str:
    """Until when the operator goes by it, for a person."""
    until = f"valid until {datetime.fromtimestamp(profile.valid_until_seconds, UTC):%Y-%m-%d %H:%M} UTC"
    if now_seconds < profile.valid_until_seconds:
        return until
    return f"{until}, so the operator refuses it: take in newer history, and run profile and forecast on it"


def _rows(spark: SparkSession, lake: Lake, table: DerivedTable, cluster: str) -> list[Row]:
    return read(spark, lake.gold(table.name), table).where(f.col(CLUSTER) == cluster).collect()


def _insist_on_ages(found: Findings) -> None:
    for job, table, rows in (("profile", COMPONENT_PROFILE, found.profiles), ("forecast", SEASONS, found.seasons)):
        if any(row["newest_period"] is None and _last_seen(row) is None for row in rows):
            raise CannotPublish(
                f"an earlier version made the table {table.name}, which does not say from when it is; "
                f"run the job {job} again"
            )


def _key(row: Row) -> tuple[str, str]:
    return row["topology_name"], row["component"]


def _newest_seconds(row: Row) -> float:
    newest: datetime = row["newest_period"]
    return newest.replace(tzinfo=UTC).timestamp()


def _last_seen(row: Row) -> datetime | None:
    """When the component was last there, measured or not; None where the table does not tell."""
    found: datetime | None = row.asDict().get("last_seen")
    return found


def _seen_seconds(row: Row) -> float:
    moment: datetime = _last_seen(row) or row["newest_period"]
    return moment.replace(tzinfo=UTC).timestamp()


def _present(rows: Sequence[Row]) -> set[tuple[str, str]]:
    """The components that each topology's newest id has."""
    last_seen: dict[tuple[str, str], tuple[float, str]] = {}
    newest: dict[str, tuple[float, str]] = {}
    for row in rows:
        seen, (topology, _) = (_seen_seconds(row), row["topology_id"]), _key(row)
        last_seen[_key(row)] = max(seen, last_seen.get(_key(row), seen))
        newest[topology] = max(seen, newest.get(topology, seen))
    return {key for key, (_, topology_id) in last_seen.items() if topology_id == newest[key[0]][1]}


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


def _advice(rows: Sequence[Row], oldest_seconds: float) -> SettingsAdvice | None:
    """Nothing where it is not known from when it is: advice can be done without."""
    best = next((row for row in rows if row["rank"] == 1), None)
    if best is None or not is_surely_better(best["high_percent"]):
        return None
    if best["newest_period"] is None or _newest_seconds(best) <= oldest_seconds:
        return None
    overrides = tuple(best["overrides"].split())
    return SettingsAdvice(overrides, best["change_percent"], best["low_percent"], best["high_percent"])
