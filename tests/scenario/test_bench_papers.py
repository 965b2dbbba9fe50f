"""What the papers' experiments are made of: who is held to what, what is compared, and that all cases can be made."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from papers.bench_papers import PAPERS, cases_of, documents_of, jobs_of
from papers.cardellini import calm, hit_nodes
from papers.contestants import ADAPTIVE, DEFAULT
from papers.experiment import figures_of, play, spreads
from papers.liu import LIU, at_random, r_storm, regular, table
from papers.picture import picture_of
from papers.tables import below_first_percent, page_of

from storm_operator.core.model import ACKER_COMPONENT
from storm_operator.core.settings import SchedulingSettings, Trigger
from storm_operator.simulated_loop import even_start


def test_every_case_makes_its_scenario_and_names_published_contestants_that_play() -> None:
    for paper in PAPERS:
        for case in cases_of(paper):
            assert case.scenario(1).duration_seconds > case.scenario(1).warm_up_seconds
            assert set(case.published) <= {contestant.name for contestant in case.contestants}


def test_r_storm_holds_all_but_ackers_to_what_was_asked_for() -> None:
    executors = even_start(regular(1).model).slot_of
    limits = r_storm(30).fixed_limits(executors)
    assert set(limits.values()) == {300.0}
    assert {e.component for e in executors} - {e.component for e in limits} == {ACKER_COMPONENT}


def test_ours_plays_with_its_defaults_and_published_ones_by_their_own_trigger() -> None:
    model = regular(1).model
    assert DEFAULT.specs(model) is None
    (ours,) = (ADAPTIVE.specs(model) or {}).values()
    assert ours.scheduling == SchedulingSettings()
    liu = next(c for c in cases_of("liu")[0].contestants if c.name == "liu")
    (published,) = (liu.specs(model) or {}).values()
    assert (published.scheduling.trigger, published.scheduling.cool_down_seconds) == (Trigger.POLICY, 0.0)


def test_three_nodes_are_hit_that_bear_operators_but_neither_source_nor_consumer() -> None:
    scenario = calm(1)
    nodes = hit_nodes(scenario, DEFAULT, 1)
    bears = {slot.supervisor_id: e.component for e, slot in even_start(scenario.model).slot_of.items()}
    assert len(set(nodes)) == 3
    assert all(bears[node].startswith("operator") for node in nodes)


def test_documents_compare_with_the_first_contestant() -> None:
    jobs = jobs_of(["ant_colony"], 2)
    (document,) = documents_of(jobs, [{"mean_cpu_percent": 10.0 * (1 + contestant)} for _, _, contestant, _ in jobs])
    assert below_first_percent(document, "ant-colony") == pytest.approx(-100.0)
    assert "| ant-colony | 20 | -100.0% | mean cpu (%) below first (%) 26" in page_of([document])
    ET.fromstring(picture_of([document]))


def test_an_unknown_figure_is_left_out_of_the_spread() -> None:
    (spread,) = spreads([{"ms": 1.0}, {}, {"ms": 4.0}, {"ms": 3.0}]).values()
    assert (spread.median, spread.lowest, spread.highest) == (3.0, 1.0, 4.0)


def test_throughput_counts_the_time_in_which_workers_restart_as_well() -> None:
    """What waited meanwhile is acked afterwards: over the periods with a known rate alone more is acked than comes."""
    run = play(replace(at_random(1), duration_seconds=160.0, warm_up_seconds=20.0), LIU)
    sums, periods = run.report.sums, 14
    assert any(point.topologies["wordcount"].acked_per_second is None for point in run.report.counted_points)
    figures = table("wordcount", run)
    assert figures["throughput"] == pytest.approx(sums.acked / periods, rel=1e-6)
    assert figures["failed"] == pytest.approx(sums.failed / periods, rel=1e-6)


def test_the_default_leaves_everything_where_it_starts() -> None:
    case = cases_of("ant_colony")[0]
    assert figures_of(case, case.contestants[0], 1)["plans"] == 0.0
