"""Who plays in bench-reaction and bench-league, and what they print."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import league
import pytest
import typer
from papers.contestants import as_published
from reaction import bench_reaction
from reaction.bench_reaction import Row
from reaction.cases import CONTESTANTS, STORM, UNDECLARED, WORKLOADS, specs

from storm_operator.core.placement.registry import POLICIES
from storm_operator.core.settings import Enforcement, Forecast, SchedulingSettings
from storm_operator.core.topology_spec import TopologySpec


def spec_of(contestant: str) -> TopologySpec:
    (spec,) = (specs(WORKLOADS["wordcount"], contestant) or {}).values()
    return spec


def test_ours_has_its_defaults_and_may_have_lius_forecast() -> None:
    assert spec_of("adaptive").scheduling == SchedulingSettings()
    assert spec_of("adaptive, Line").scheduling == SchedulingSettings(forecast=Forecast.LINE)


def test_published_policies_are_as_published_but_for_cpu_limits_which_all_have() -> None:
    assert spec_of("t-storm").scheduling == as_published("t-storm")
    assert spec_of("t-storm").resources.enforcement is Enforcement.EXECUTOR
    assert specs(WORKLOADS["wordcount"], STORM) is None


def test_r_storm_goes_by_shares_of_four_fifths_of_the_cluster_or_is_told_nothing() -> None:
    """9,600 of 12,000 millicores for the WordCount's 12 executors."""
    assert dict(spec_of("r-storm").scheduling.parameters) == {"cpu_millicores": pytest.approx(800.0)}
    assert spec_of(UNDECLARED).scheduling == as_published("r-storm")


def test_a_policy_that_there_is_not_is_refused_before_anything_is_played() -> None:
    with pytest.raises(typer.BadParameter, match=r"--policy 'nosuch': there are adaptive; adaptive, Line; .*storm"):
        bench_reaction.main(policy=["adaptive", "nosuch"])


def test_in_the_league_everybody_plays_but_the_exact_solver() -> None:
    assert set(league.POLICIES) == {*POLICIES, UNDECLARED, STORM} - {"optimal"}
    assert set(league.POLICIES) <= set(CONTESTANTS)


def test_the_step_of_the_league_comes_half_way_through_what_counts() -> None:
    load = league.load_of(100.0, 600.0, 1)
    before, after = (
        sum(load.rate_at(float(at)) for at in seconds) / 100.0 for seconds in (range(200, 300), range(400, 500))
    )
    assert before == pytest.approx(150.0, rel=0.02)
    assert after == pytest.approx(270.0, rel=0.02)


def test_the_league_writes_a_table_for_each_workload_and_ends_with_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def one_after_the_other(work: Callable[[Any], Row], cases: Sequence[Any], processes: int | None) -> list[Row]:
        return [work(case) for case in cases]

    monkeypatch.setattr(league, "play_all", one_after_the_other)
    league.main(["wordcount"], [STORM], seeds=2, seconds=160.0, output=tmp_path)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["runs"] == 2
    (row,) = told["median_and_range"]
    assert (row["workload"], row["policy"], row["plans"]) == ("wordcount", STORM, [0, 0, 0])
    assert set(league.COLUMNS) <= set(row)
    assert "**wordcount**\n\n| policy | p50 ms |" in (tmp_path / "tables.md").read_text()
