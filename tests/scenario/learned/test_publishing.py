"""What a published profile is made of, from when it counts as made, and what is left out of it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from pyspark.sql import Row

from learned_profiles import CLUSTER, DAY_SECONDS, season
from storm_operator.core.learned_profile import SEASONAL
from storm_operator.core.seasonal import Season
from storm_pipeline.publishing import (
    CONFIG_MAP_BYTES,
    CannotPublish,
    Findings,
    compose_profile,
    publish_to_config_map,
    publish_to_file,
    validity,
)
from storm_pipeline.wider_bins import narrowest_bin

MIDNIGHT = datetime(2026, 3, 1)  # noqa: DTZ001 - as Spark gives it to Python: without a zone, and UTC
VALID_SECONDS = 14.0 * DAY_SECONDS
SHAPE = json.dumps(asdict(season(100.0, 400.0)))


def seconds(days_ago: float) -> float:
    return (MIDNIGHT.replace(tzinfo=UTC) - timedelta(days=days_ago)).timestamp()


def known(component: str, days_ago: float | None, topology_id: str, topology: str) -> dict[str, object]:
    newest = None if days_ago is None else MIDNIGHT - timedelta(days=days_ago)
    return {"topology_name": topology, "component": component, "newest_period": newest, "topology_id": topology_id}


def cost(
    component: str, days_ago: float | None = 0.0, topology_id: str = "words-2-200", topology: str = "words"
) -> Row:
    figures = {"cpu_per_tuple": 0.2, "cpu_per_tuple_spread": 0.01, "cpu_per_tuple_periods": 700, "selectivity": None}
    return Row(**known(component, days_ago, topology_id, topology), **figures)


def load(
    component: str, days_ago: float | None = 0.0, topology_id: str = "words-2-200", topology: str = "words"
) -> Row:
    figures = {"forecaster": SEASONAL, "season": SHAPE, "last_seen": None}
    return Row(**known(component, days_ago, topology_id, topology), **figures)


def seen(
    component: str, days_ago: float, topology_id: str = "words-2-200", learned_days_ago: float | None = None
) -> Row:
    """One that was last there then, and last measured whole longer ago, or never."""
    found = load(component, learned_days_ago, topology_id).asDict()
    if learned_days_ago is None:
        found |= {"forecaster": "DampedTrend", "season": None}
    return Row(**{**found, "last_seen": MIDNIGHT - timedelta(days=days_ago)})


def advice(days_ago: float | None) -> Row:
    newest = None if days_ago is None else MIDNIGHT - timedelta(days=days_ago)
    change = {"change_percent": -12.0, "low_percent": -20.0, "high_percent": -4.0}
    return Row(rank=1, overrides="policy=liu thetaMillicores=100", newest_period=newest, **change)


def test_it_counts_as_made_when_the_older_of_costs_and_seasons_was_measured() -> None:
    made = compose_profile(Findings(CLUSTER, [cost("split")], [load("split", days_ago=300.0)]), VALID_SECONDS)
    assert made.made_at_seconds == seconds(300.0)
    assert made.valid_until_seconds == seconds(286.0)
    assert made.topologies["words"]["split"].season is not None
    alone = compose_profile(Findings(CLUSTER, [cost("spout", 3.0), cost("split", 2.0)]), VALID_SECONDS)
    assert alone.made_at_seconds == seconds(2.0)


def test_what_is_past_its_validity_beside_newer_things_is_left_out() -> None:
    costs = [cost("split"), cost("split", 20.0, "lines-1-100", "lines")]
    found = Findings(CLUSTER, costs, [load("split"), load("split", 20.0, "lines-1-100", "lines")])
    assert set(compose_profile(found, VALID_SECONDS).topologies) == {"words"}
    assert set(compose_profile(found, 2 * VALID_SECONDS).topologies) == {"words", "lines"}


def test_a_component_that_was_renamed_is_of_the_topology_s_newest_id_alone() -> None:
    costs = [cost("split", 1.0, "words-1-100"), cost("splitter"), cost("count")]
    seasons = [load("split", 1.0, "words-1-100"), load("count", 1.0, "words-1-100")]  # learned before the change
    made = compose_profile(Findings(CLUSTER, costs, seasons), VALID_SECONDS)
    assert set(made.topologies["words"]) == {"splitter", "count"}
    assert made.topologies["words"]["count"].season is not None
    assert made.topologies["words"]["splitter"].season is None


@pytest.mark.parametrize("learned_days_ago", [None, 20.0, 1.0])
def test_a_component_that_is_there_and_was_not_measured_lately_does_not_cost_its_topology_the_profile(
    learned_days_ago: float | None,
) -> None:
    seasons = [seen("split", 0.0, learned_days_ago=0.0), seen("errors", 0.0, learned_days_ago=learned_days_ago)]
    costs = [] if learned_days_ago is None else [cost("errors", learned_days_ago, "words-1-100")]
    made = compose_profile(Findings(CLUSTER, [cost("split"), *costs], seasons), VALID_SECONDS)
    words = made.topologies["words"]
    assert set(words) == {"split", "errors"}
    assert words["split"].season is not None
    assert (words["errors"].season is not None) == (learned_days_ago == 1.0)
    assert made.made_at_seconds == seconds(0.0)


def test_that_components_are_there_makes_what_was_learned_no_younger() -> None:
    seasons = [seen("split", 0.0, learned_days_ago=3.0), seen("errors", 0.0)]
    assert compose_profile(Findings(CLUSTER, seasons=seasons), VALID_SECONDS).made_at_seconds == seconds(3.0)
    with pytest.raises(CannotPublish, match="nothing was learned"):
        compose_profile(Findings(CLUSTER, seasons=[seen("errors", 0.0)]), VALID_SECONDS)


def test_advice_is_published_while_what_was_replayed_is_valid() -> None:
    def advised(days_ago: float | None) -> bool:
        made = compose_profile(Findings(CLUSTER, [cost("split")], advice=[advice(days_ago)]), VALID_SECONDS)
        assert made.made_at_seconds == seconds(0.0)
        return made.advice is not None

    assert [advised(days_ago) for days_ago in (0.0, 13.0, 14.0, None)] == [True, True, False, False]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Findings(CLUSTER), "nothing was learned of cluster 'nimbus:6627' yet"),
        (Findings(CLUSTER, [cost("split", None)]), "the table component_profile, .*; run the job profile again"),
        (
            Findings(CLUSTER, [cost("split")], [load("split", None)]),
            "the table seasons, .*; run the job forecast again",
        ),
    ],
)
def test_what_nobody_knows_the_age_of_is_not_published(found: Findings, said: str) -> None:
    with pytest.raises(CannotPublish, match=said):
        compose_profile(found, VALID_SECONDS)


def test_a_file_is_on_disk_before_it_takes_the_old_one_s_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def noted(name: str) -> None:
        really = getattr(os, name)

        def note(*given: object) -> object:
            done.append(name)
            return really(*given)

        monkeypatch.setattr(os, name, note)

    noted("fsync")
    noted("replace")
    made = compose_profile(Findings(CLUSTER, [cost("split")]), VALID_SECONDS)
    publish_to_file(made, tmp_path / "new" / "profile.json")
    assert done == ["fsync", "replace"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["profile.json"]
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotPublish, match="cannot be written"):
        publish_to_file(made, tmp_path / "file" / "profile.json")


def test_a_season_of_more_bins_than_the_operator_takes_is_not_published(tmp_path: Path) -> None:
    bins = (1.0,) * 60_480  # a week, in bins of ten seconds
    shape = {"cycle_seconds": 604_800.0, "bin_seconds": 10.0, "level_weight": 0.5}
    week = json.dumps({**shape, "expected_per_second": bins, "ready_per_second": bins})
    found = Row(**{**load("split").asDict(), "season": week})
    with pytest.raises(CannotPublish, match=r"words\.split\.season.*expected 20160 entries"):
        publish_to_file(compose_profile(Findings(CLUSTER, seasons=[found]), VALID_SECONDS), tmp_path / "profile.json")
    assert not list(tmp_path.iterdir())


def test_until_when_it_is_valid_is_told() -> None:
    made = compose_profile(Findings(CLUSTER, [cost("split")]), VALID_SECONDS)
    assert validity(made, seconds(0.0)) == "valid until 2026-03-15 00:00 UTC"
    assert validity(made, seconds(-14.0)).startswith("valid until 2026-03-15 00:00 UTC, so the operator refuses it: ")


def noisy_day(bin_seconds: float, random: np.random.Generator) -> str:
    bins = round(DAY_SECONDS / bin_seconds)
    expected, ready = (random.lognormal(5.0, 1.0, bins).round(2).tolist() for _ in range(2))
    return json.dumps(asdict(Season(DAY_SECONDS, bin_seconds, tuple(expected), tuple(ready), 0.5)))


def in_wider_bins(season: str, bin_seconds: float) -> str:
    """As it would be learned in such bins, of periods that are as long as its own."""
    shape = json.loads(season)
    lists = {name: np.array(shape[name]) for name in ("expected_per_second", "ready_per_second")}
    bins = round(DAY_SECONDS / bin_seconds)
    wider = {name: np.median(values.reshape(bins, -1), axis=1).tolist() for name, values in lists.items()}
    return json.dumps({**shape, **wider, "bin_seconds": bin_seconds})


def test_with_the_bins_that_are_named_a_profile_that_was_too_large_for_a_configmap_is_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    published: list[str] = []
    api = Mock(patch_namespaced_config_map=lambda _, __, body, **___: published.append(body["data"]["profile.json"]))
    monkeypatch.setattr("kubernetes.config.load_incluster_config", lambda: None)
    monkeypatch.setattr("kubernetes.client.CoreV1Api", lambda: api)
    random = np.random.default_rng(0)
    days = {f"bolt-{number}": noisy_day(120.0, random) for number in range(200)}

    def publish(seasons: Mapping[str, str]) -> None:
        found = [Row(**{**load(name).asDict(), "season": season}) for name, season in seasons.items()]
        publish_to_config_map(compose_profile(Findings(CLUSTER, seasons=found), VALID_SECONDS), "storm", "learned")

    with pytest.raises(CannotPublish) as refused:
        publish(days)
    told = re.fullmatch(
        r"the profile has ([\d,]+) bytes, and a ConfigMap holds 1,000,000: run forecast with wider bins, --bin (\d+)",
        str(refused.value),
    )
    assert told is not None, refused.value
    assert not published
    publish({name: in_wider_bins(day, float(told[2])) for name, day in days.items()})
    assert [len(text) <= CONFIG_MAP_BYTES for text in published] == [True]


def test_a_profile_that_no_bins_make_small_enough_is_refused_without_naming_any() -> None:
    assert narrowest_bin(compose_profile(Findings(CLUSTER, seasons=[load("split")]), VALID_SECONDS), 200) is None
    assert narrowest_bin(compose_profile(Findings(CLUSTER, [cost("split")]), VALID_SECONDS), 200) is None


NOBODY_THERE = """
apiVersion: v1
kind: Config
current-context: away
contexts: [{name: away, context: {cluster: away, user: nobody}}]
clusters: [{name: away, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: nobody, user: {}}]
"""


@pytest.mark.parametrize("kubeconfig", ["", NOBODY_THERE])
def test_that_there_is_no_way_to_kubernetes_is_said(
    kubeconfig: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config"
    file.write_text(kubeconfig)
    monkeypatch.setenv("KUBECONFIG", str(file))
    made = compose_profile(Findings(CLUSTER, [cost("split")]), VALID_SECONDS)
    with pytest.raises(CannotPublish, match=r"^ConfigMap storm/learned: "):
        publish_to_config_map(made, "storm", "learned")
