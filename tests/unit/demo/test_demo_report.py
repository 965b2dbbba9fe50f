"""The demo's report from recorded values: the promised JSON, and one page that needs nothing else."""

from __future__ import annotations

import io
import json
import threading
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from rich.console import Console

from builders import chain_topology, placed, snapshot, supervisors
from kube_builders import plan, plan_record
from storm_operator.control_loop import PassReport
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.metrics_window import MetricsWindow, Sample, SeriesKey, SeriesWindow
from storm_operator.core.plan_record import Outcome, PlanState
from storm_operator.core.snapshot import LatencySummary, TopologyRates
from storm_operator.demo import run as demo_run
from storm_operator.demo import simulated
from storm_operator.demo.figures import PhaseFigures, conclusion, mixed_latency, phase_figures, phase_to_json, ratios
from storm_operator.demo.recorder import Recorder
from storm_operator.demo.report import plan_section, plots_of, report_to_json, write_report
from storm_operator.demo.run import Stage, awaited, show
from storm_operator.demo.scenario import WORKLOADS
from storm_operator.demo.simulated import _conclude
from storm_operator.demo.view import PlainLines, picture, render, sparkline
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.distribution import Say
from storm_operator.local.spec import LocalClusterError

EVEN = PhaseFigures(LatencySummary(9.0, 8.0, 20.0, 1000.0), 1000.0, 300.0, 0.0, 4, 500.0)
MANAGED = PhaseFigures(LatencySummary(3.0, 2.0, 10.0, 1000.0), 100.0, 303.0, 12.0, 1, 400.0)


def recorder() -> Recorder:
    words = chain_topology("words", ("spout", 1), ("count", 1), stateful=("count",))
    picture = snapshot((words,), supervisors(2), placed(words, {"spout": "s1", "count": "s2"}))
    recorded = Recorder()
    recorded.begin("Even", 990.0, offered_per_second=170.0)
    recorded.on_pass(PassReport(1000.0, picture, None, ((("words",), Hold(HoldReason.NO_CHANGE, "all is well")),)))
    recorded.end(1001.0)
    return recorded


def test_report_has_every_promised_field(tmp_path: Path) -> None:
    as_json, page = write_report(tmp_path / "new", recorder(), EVEN, MANAGED, ("a note <b>",))
    report = json.loads(as_json.read_text())
    assert report["ratio"] == {
        "latency_p50": 0.25,
        "latency_p99": 0.5,
        "inter_supervisor_tuples_per_second": 0.1,
        "throughput": pytest.approx(1.01),
    }
    for side in ("baseline", "managed"):
        assert set(report[side]) >= {
            "latency_ms",
            "inter_supervisor_tuples_per_second",
            "throughput_tuples_per_second",
            "failed_tuples",
            "supervisors_used",
        }
    text = page.read_text()
    assert "src=" not in text.split("<script")[0]
    assert "a note &lt;b&gt;" in text


def test_the_reference_names_all_that_is_told_of_a_plan() -> None:
    seen = recorder()
    seen.on_record(plan_record(PlanState.VERIFIED, plan()))
    (told,) = report_to_json(seen, EVEN, MANAGED, ())["plans"]
    page = (Path(__file__).parents[3] / "docs/reference/demo-report.md").read_text()
    assert [key for key in told if f"`{key}`" not in page] == []


def test_unknown_has_no_ratio() -> None:
    unknown = PhaseFigures(None, None, None, 0.0, 1, 0.0)
    assert set(ratios(EVEN, unknown).values()) == {None}


def test_what_was_not_all_measured_is_unknown_and_not_0() -> None:
    """The spout could not be read, nor what one of the two supervisors used."""
    words = chain_topology("words", ("spout", 1), ("count", 1))
    slots = placed(words, {"spout": "s1", "count": "s2"})
    of_spout, of_bolt = (
        SeriesKey.of("storm_executor_failed_tuples_total", {"topology_id": words.id, "component": component})
        for component in ("spout", "count")
    )
    three = SeriesWindow(Sample(0.0, 0.0), Sample(3.0, 10.0), 3.0)
    window = MetricsWindow(10.0, 10.0, {of_spout: three, of_bolt: three})
    measured = snapshot((words,), supervisors(2), slots, supervisor_cpu={"s1": 10.0, "s2": 20.0})
    known = phase_figures(replace(measured, rates={"words": TopologyRates(5.0, 0.3)}), window)
    assert (known.failed_tuples, known.cpu_millicores) == (3.0, 30.0)
    partly = snapshot((words,), supervisors(2), slots, supervisor_cpu={"s1": 10.0}, missing=words.executors[:1])
    unknown = phase_figures(replace(partly, rates={"words": TopologyRates()}), window)
    document = phase_to_json(unknown)
    assert (document["failed_tuples"], document["cpu_millicores"]) == (None, None)


def test_latency_of_several_topologies_is_that_of_their_tuples_mixed() -> None:
    def rise(topology: str, bound: str, count: float) -> tuple[SeriesKey, SeriesWindow]:
        key = SeriesKey.of("storm_complete_latency_seconds_bucket", {"topology_id": topology, "le": bound})
        return key, SeriesWindow(Sample(0.0, 0.0), Sample(count, 10.0), count)

    window = MetricsWindow(
        10.0, 10.0, dict([rise("a", "0.001", 90), rise("a", "+Inf", 90), rise("b", "0.001", 0), rise("b", "+Inf", 10)])
    )
    latency = mixed_latency(window)
    assert latency is not None
    assert latency.count == 100
    assert latency.p50_ms < 1.0


@pytest.mark.parametrize(("acked", "told"), [(449.6, "450"), (180.0, "180"), (None, "unknown")])
def test_a_load_step_is_told_with_what_was_borne_of_it(acked: float | None, told: str, tmp_path: Path) -> None:
    seen = recorder()
    seen.begin("load step", 1001.0, offered_per_second=450.0)
    seen.points.append(replace(seen.points[0], at_seconds=1040.0, throughput_per_second={"words": acked}))
    seen.begin("load falls", 1041.0, offered_per_second=50.0)
    seen.points.append(replace(seen.points[0], at_seconds=1080.0, throughput_per_second={"words": 50.0}))
    assert conclusion(seen, EVEN, MANAGED)[1:] == [f"load step: 450 tuples/s offered, {told} acked at its end"]
    as_json, page = write_report(tmp_path, seen, EVEN, MANAGED)
    step = json.loads(as_json.read_text())["phases"][1]
    assert (step["offered_tuples_per_second"], step["acked_tuples_per_second_at_end"]) == (450.0, acked)
    assert f"<td>load step</td><td class='number'>40</td><td class='number'>450</td><td class='number'>{told}" in (
        page.read_text()
    )


def test_view_renders_what_was_recorded() -> None:
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(render(recorder(), 1005.0, "watching"))
    text = console.export_text()
    assert "all is well" in text
    assert "between supervisors" in text


@pytest.mark.parametrize("width", [60, 80])
def test_each_figure_is_one_line_that_fills_a_narrow_console(width: int) -> None:
    seen = recorder()
    seen.points[:] = [
        replace(
            seen.points[0],
            latency_p50_ms={"httpmonitor": 1234.5},
            throughput_per_second={"httpmonitor": None if at % 7 == 0 else 1000.0 * at},
            inter_supervisor_per_second=100.0 * at,
        )
        for at in range(90)
    ]
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(render(seen, 1005.0, "watching"))
    text = console.export_text()
    assert "…" not in text
    lines = text.splitlines()
    figures = ("httpmonitor: median", "httpmonitor: throughput", "between supervisors", "supervisors in use")
    first = next(at for at, line in enumerate(lines) if figures[0] in line)
    assert [name in line for name, line in zip(figures, lines[first:], strict=False)] == [True] * len(figures)
    assert all(line.removesuffix(" │").endswith("█") for line in lines[first : first + len(figures)])


def test_plans_are_told_apart_in_a_narrow_console() -> None:
    seen = recorder()
    for number in (1, 2):
        seen.on_record(plan_record(of=plan(f"p-20260101-120000-000{number}")))
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(render(seen, 1005.0, "watching"))
    text = console.export_text()
    assert [f"-000{number}" in text for number in (1, 2)] == [True, True]


@pytest.mark.parametrize(("width", "lines"), [(80, 4), (150, 2)])
def test_why_a_plan_was_made_has_the_whole_width_of_a_narrow_console(width: int, lines: int) -> None:
    """A heading, the plan, and its reason: two lines of 80 columns, or what is left of the plan's in a wide one."""
    seen = recorder()
    seen.plans.clear()
    made = plan("p-20260101-120000-0001")
    seen.on_record(plan_record(of=replace(made, reason="network 12,345 to 1,234 tuple-ms/s; " + "moved " * 6)))
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(render(seen, 1005.0, "watching"))
    told = console.export_text().partition(" plans")[2].rstrip().splitlines()[1:-1]
    assert len(told) == lines
    assert sum("0001" in line for line in told) == {80: 2, 150: 1}[width]


def test_supervisors_are_counted_in_whole_numbers() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(render(recorder(), 1005.0, "watching"))
    (row,) = [line for line in console.export_text().splitlines() if "supervisors in use" in line]
    assert row.split()[4].isdigit(), row


def test_a_log_has_a_line_for_each_status_and_one_each_half_minute() -> None:
    said: list[str] = []
    lines, seen = PlainLines(said.append), recorder()
    for at in range(1000, 1075, 5):
        lines.tell(seen, float(at), "watching" if at < 1040 else "managed")
    assert said[::2] == ["watching", "managed"]
    assert said[1].startswith("  Even, 40 s: ")
    assert ", supervisors in use: " in said[1]
    assert len(said) == 4


def test_a_log_tells_how_a_phase_ended_and_not_only_how_it_was_in_the_middle() -> None:
    said: list[str] = []
    lines, seen = PlainLines(said.append), recorder()
    lines.tell(seen, 1000.0, "watching")
    seen.points.append(replace(seen.points[0], at_seconds=1025.0, inter_supervisor_per_second=51.0))
    lines.tell(seen, 1026.0, "managed")
    assert said[0] == "watching"
    assert said[1].startswith("  Even, at its end, 36 s: ")
    assert "51 tuples/s between supervisors" in said[1]
    assert said[2] == "managed"


def test_what_is_waited_for_is_told_without_a_terminal_too() -> None:
    shown = io.StringIO()
    with awaited(Console(file=shown), "starting: about a minute") as say:
        assert shown.getvalue() == "starting: about a minute\n"
        say("fetching Storm into /cache[1]")
    assert shown.getvalue().splitlines()[1:] == ["fetching Storm into /cache[1]"]


def test_what_is_fetched_and_built_before_the_cluster_starts_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first time it takes many times the seconds that the cluster takes."""

    class FetchesStorm(LocalCluster):
        def up(self, owned: bool = False, say: Say = lambda _: None) -> None:
            assert owned
            say("fetching Apache Storm")
            raise LocalClusterError("not reachable")

    def build(say: Say = lambda _: None) -> Path:
        say("building a jar")
        return tmp_path / "built.jar"

    shown = io.StringIO()
    monkeypatch.setattr(demo_run, "LocalCluster", FetchesStorm)
    monkeypatch.setattr(demo_run, "plugin_jar", build)
    monkeypatch.setattr(demo_run, "workloads_jar", build)
    with pytest.raises(LocalClusterError, match="not reachable"):
        demo_run.run_demo(6.0, tmp_path, Console(file=shown))
    first, *others = shown.getvalue().splitlines()
    assert first.endswith(": seconds, once all is built")
    assert others == ["building a jar", "building a jar", "fetching Apache Storm"]


@pytest.mark.parametrize(("state", "doing"), [(PlanState.APPLYING, "applied"), (PlanState.SETTLING, "measured")])
def test_a_plan_that_the_end_has_cut_short_is_named(state: PlanState, doing: str) -> None:
    seen = recorder()
    seen.on_record(plan_record(PlanState.VERIFIED, plan("p-1")))
    seen.on_record(plan_record(state, plan("p-2")))
    told, note = report_to_json(seen, EVEN, MANAGED, ("a note",))["notes"]
    assert told == "a note"
    assert note.startswith(f"p-2 was still being {doing} when time was up: ")


def test_a_plan_tells_the_load_that_it_was_measured_at() -> None:
    seen, few = recorder(), Outcome(72.0, 50.0, None, None, None)
    seen.on_record(plan_record(PlanState.VERIFIED, plan(), before=replace(few, acked_per_second=178.0), measured=few))
    (told,) = report_to_json(seen, EVEN, MANAGED, ())["plans"]
    assert "load of its topologies: 178 acked tuples/s before, 50 after" in plan_section(told)
    unknown = told | {"predicted": None, "measured": None}
    assert "latency predicted unknown, measured unknown ms, unknown before" in plan_section(unknown)
    known = told | {
        "predicted": {"complete_latency_ms": 2.25},
        "before": told["before"] | {"complete_latency_mean_ms": 9.4},
        "measured": told["measured"] | {"complete_latency_mean_ms": 2.0},
    }
    assert "mean complete latency predicted 2.3, measured 2 ms, 9.4 before" in plan_section(known)


def test_lines_and_gaps_of_the_charts_are_explained_and_headings_stand_over_their_numbers(tmp_path: Path) -> None:
    text = write_report(tmp_path, recorder(), EVEN, MANAGED)[1].read_text()
    assert "<p>Red dashed lines: a plan came into force. " in text
    assert "<th class='number'>Even</th><th class='number'>storm-operator</th>" in text


def test_without_a_terminal_the_view_comes_at_the_end_and_ends_its_line() -> None:
    shown = io.StringIO()
    stage = Stage(Mock(), recorder(), "", {})
    with show(stage, Console(file=shown, width=140)):
        stage.enter("managed")
        assert shown.getvalue() == "managed\n"
    assert "storm-operator demo: Even" in shown.getvalue()
    assert shown.getvalue().endswith("╯\n")


def test_a_plan_s_workers_are_counted_in_words() -> None:
    seen = recorder()
    seen.on_record(plan_record(PlanState.VERIFIED, plan(kept_workers=())))
    (alone,) = report_to_json(seen, EVEN, MANAGED, ())["plans"]
    assert "; 1 worker restarted; failed tuples meanwhile: " in plan_section(alone)
    both = alone | {"workers_restarted": 2, "workers_kept": 1, "workers_meant_to_be_kept": 3}
    assert "; 2 workers restarted, 1 of 3 kept their process; " in plan_section(both)


def test_each_chart_has_its_own_legend_and_nothing_shares_a_colour() -> None:
    seen = recorder()
    point = replace(
        seen.points[0],
        latency_p50_ms={"chain": 1.0, "words": 1.0},
        cpu_millicores={f"machine-{number}": 1.0 for number in range(1, 5)},
    )
    seen.points[:] = [point]
    traces = plots_of(seen).data
    assert [trace.legend for trace in traces[-6:]] == ["legend3", *["legend4"] * 4, "legend5"]
    colors = {trace.name.split(" p")[0]: trace.line.color for trace in traces}
    assert len(set(colors.values())) == len(colors) == 8


def test_sparkline_leaves_a_gap_for_the_unknown() -> None:
    assert sparkline([0.0, None, 4.0]) == "▁ █"


def test_picture_asks_nobody_for_a_font() -> None:
    svg = picture(recorder(), "a headline")
    assert "headline" in svg
    assert "url(" not in svg.replace("url(#", "")


def taken_over() -> Recorder:
    """Even was measured at 990 s, the phase that is compared with it began at 1010 s."""
    seen = recorder()
    held = Hold(HoldReason.METRICS_INCOMPLETE, "2 executors of <chain> are not measured")
    seen.on_pass(PassReport(1005.0, None, None, ((("chain",), held),)))
    seen.begin("managed", 1010.0, offered_per_second=170.0)
    seen.on_pass(PassReport(1015.0, None, None, ((("chain",), Hold(HoldReason.NO_CHANGE, "of later")),)))
    return seen


@pytest.mark.parametrize("in_force_at", [None, 1011.0])
def test_without_a_plan_in_force_nothing_is_told_as_compared(in_force_at: float | None, tmp_path: Path) -> None:
    seen = taken_over()
    if in_force_at is not None:
        seen.on_record(plan_record(PlanState.SETTLING, plan("p-1"), in_force_at_seconds=in_force_at))
    (told, *_) = conclusion(seen, EVEN, MANAGED)
    assert told == (
        "nothing was compared: no plan came into force before the phase 'managed' was measured; the last decision "
        "before it: hold, MetricsIncomplete: 2 executors of <chain> are not measured"
    )
    as_json, page = write_report(tmp_path, seen, EVEN, MANAGED, ("a note",))
    report = json.loads(as_json.read_text())
    assert report["notes"][:2] == [told, "a note"]
    assert set(report["ratio"].values()) == {None}
    text = page.read_text().split("<script")[0]
    assert "2 executors of &lt;chain&gt; are not measured" in text
    assert "class='big'" not in text
    assert "Even against storm-operator" not in text


def test_a_plan_in_force_before_it_is_compared() -> None:
    seen = taken_over()
    seen.on_record(plan_record(PlanState.VERIFIED, plan("p-1"), in_force_at_seconds=1006.0))
    assert conclusion(seen, EVEN, MANAGED)[0].startswith("storm-operator against Even, same run, same load: ")


def test_what_was_rolled_back_before_it_is_not_compared() -> None:
    seen = taken_over()
    seen.on_record(
        plan_record(PlanState.ROLLED_BACK, plan("p-1"), in_force_at_seconds=1002.0, message="latency doubled")
    )
    seen.on_record(plan_record(PlanState.VERIFIED, plan("p-2"), in_force_at_seconds=1006.0, rollback_of="p-1"))
    assert conclusion(seen, EVEN, MANAGED)[0].endswith("was measured (p-1: latency doubled)")


def test_an_unknown_ratio_has_no_x_behind_it(tmp_path: Path) -> None:
    unknown = replace(MANAGED, inter_supervisor_tuples_per_second=None)
    text = write_report(tmp_path, recorder(), EVEN, unknown)[1].read_text()
    assert "<b>unknown</b>inter-supervisor tuples" in text
    assert "<b>0.25x</b>median latency" in text


def test_a_phase_has_its_status_from_its_start_and_not_while_it_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, said = recorder(), []
    stage = Stage(Mock(), seen, "", {one.name: Path(one.name) for one in WORKLOADS}, status="warming up")
    seen.points.clear()
    measured = recorder().points[0]

    def run_pass(stage: Stage) -> None:
        said.append((stage.status, seen.phases[-1].title))
        seen.points.append(measured)

    monkeypatch.setattr(Stage, "run_pass", run_pass)
    monkeypatch.setattr("storm_operator.demo.run.build_snapshot", Mock())
    monkeypatch.setattr("storm_operator.demo.run.phase_figures", Mock())
    seen.begin("warm-up", 1.0, 170.0)
    stage.measure("managed", "under storm-operator", 0.01)
    assert said[0] == ("warming up", "warm-up")
    assert set(said[1:]) == {("under storm-operator", "managed")}


@pytest.mark.parametrize(("plans", "notes", "phases"), [(0, 0, 1), (1, 0, 2), (2, 1, 2)])
def test_a_plan_in_the_middle_of_a_measured_phase_has_it_played_once_more_and_then_a_note(
    plans: int, notes: int, phases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = recorder()
    stage = Stage(Mock(), seen, "", {one.name: Path(one.name) for one in WORKLOADS})
    verified = plan_record(PlanState.VERIFIED)
    stage.assembly.loop.memory.records = (verified,)

    def run_pass(stage: Stage) -> None:
        if len(seen.plans) < min(plans, [phase.title for phase in seen.phases].count("managed")):
            seen.on_record(plan_record(PlanState.VERIFIED, plan(f"p-{len(seen.plans)}")))

    monkeypatch.setattr(Stage, "run_pass", run_pass)
    monkeypatch.setattr("storm_operator.demo.run.build_snapshot", Mock())
    monkeypatch.setattr("storm_operator.demo.run.phase_figures", Mock())
    stage.measure("managed", "under storm-operator", 0.01)
    assert len(stage.notes) == notes
    assert [phase.title for phase in seen.phases].count("managed") == phases


def test_what_was_decided_is_printed_as_it_stands(tmp_path: Path) -> None:
    shown = io.StringIO()
    seen = taken_over()
    seen.decisions[:] = [(1005.0, "hold: executors split[of words] and :count: wait")]
    _conclude(Mock(recorder=seen), (EVEN, MANAGED), tmp_path, Console(file=shown, width=80))
    assert "executors split[of words] and :count: wait" in shown.getvalue()


@pytest.mark.slow
def test_a_demo_beside_the_page_leaves_the_same_files_as_one_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, seen = threading.Event(), taken_over()
    over.set()
    monkeypatch.setattr(simulated, "stop_on_signals", lambda: over)
    monkeypatch.setattr(simulated, "simulated_demo", lambda **_: Mock(recorder=seen, now=1100.0))
    monkeypatch.setattr(simulated, "play", lambda *_: (EVEN, MANAGED))
    console = Console(file=io.StringIO(), width=80)
    simulated.play_simulated(6.0, tmp_path / "without", console)
    simulated.play_beside_page(6.0, tmp_path / "beside", console, 0, 1.0)
    without, beside = (sorted(file.name for file in (tmp_path / name).iterdir()) for name in ("without", "beside"))
    assert beside == without
    assert "view.svg" in beside
