"""The page in a real browser, over the very loop on a simulated cluster that is known."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from urllib.parse import urlsplit

import pytest
from eventually import eventually
from playwright.sync_api import Browser, Route, expect

from host_name_cases import HOST_NAME_CASES, POD
from page_stage import PageStage, Visitor, large_scenario, words_scenario
from storm_operator.console.api import Api
from storm_operator.console.approval import Answer, LoopApprover, Verdict
from storm_operator.console.site import PageAddress, open_page
from storm_operator.console.watcher import Watcher
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.parallelism import HeldResize
from storm_operator.core.plan_record import PlanState
from storm_operator.core.refusal import Refusal
from storm_operator.core.settings import Mode
from storm_operator.core.wording import figure
from storm_operator.loop_ports import report_of_unseen
from storm_operator.simulated_cluster import EPOCH_SECONDS
from storm_operator.simulator.model import SupervisorDies

pytestmark = pytest.mark.functional


def hosts_of_workers(visitor: Visitor) -> list[str]:
    return list(visitor.seen("state.view.workers.map((one) => state.view.supervisors[one.supervisor].host)"))


def test_it_shows_the_truth_of_a_known_cluster(visitor: Visitor, stage: PageStage) -> None:
    snapshot = stage.stage.engine.model
    assert visitor.seen("state.view.supervisors.map((one) => one.host)") == [s.host for s in snapshot.supervisors]
    shown = visitor.seen(
        "state.view.executors.map((one) => [one.component, one.tasks, state.view.supervisors["
        "state.view.workers[one.worker].supervisor].id, state.view.workers[one.worker].port])"
    )
    start = stage.stage.notes.records[next(iter(stage.stage.notes.records))].plan.base
    assert shown == [[e.component, e.label, slot.supervisor_id, slot.port] for e, slot in sorted(start.slot_of.items())]
    assert "7" in visitor.text("#figures div:nth-child(4)")
    assert "4 of 4" in visitor.text("#figures div:nth-child(3)")


def test_what_is_drawn_is_where_it_says(visitor: Visitor) -> None:
    """The pixel in the middle of each glyph's rim has its component's colour."""
    colours = visitor.page.evaluate(
        """() => {
          const { map } = window.stormOperator, { view, looks, layout } = map.scene();
          const canvas = document.getElementById("map");
          const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
          const ratio = canvas.width / canvas.clientWidth;
          const scale = Math.min(1.6, canvas.clientWidth / layout.wide, canvas.clientHeight / layout.high);
          return view.executors.map((one, at) => {
            const { x, y } = map.toScreen("executor", at);
            const left = Math.round((x - 13 * scale) * ratio);
            const rim = 4 * (Math.round(y * ratio) * canvas.width + left);
            const parts = [...pixels.slice(rim, rim + 3)].map((part) => part.toString(16).padStart(2, "0"));
            return ["#" + parts.join(""), looks.get(`${one.topology}/${one.component}`).colour];
          });
        }"""
    )
    assert len(colours) == 7
    for drawn, expected in colours:
        assert distance(drawn, expected) < 90, (drawn, expected)
    assert len({expected for _, expected in colours}) == 4


def distance(one: str, other: str) -> int:
    parts = [(int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5)]
    return sum(abs(a - b) for a, b in parts)


RIM = """async () => {
  const { drawGlyph } = await import("/js/glyph.js"), { theme } = await import("/js/palette.js");
  const colours = theme(), canvas = document.createElement("canvas");
  canvas.width = canvas.height = 200;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const darkest = (colour) => {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = "#ffffff";
    context.fillRect(0, 0, 200, 200);
    context.setTransform(5, 0, 0, 5, 0, 0);
    const look = { colour, mark: 0, stateful: true, initials: "ab" };
    drawGlyph(context, { x: 20, y: 20, radius: 13 }, look, 0, colours, false);
    const row = context.getImageData(0, 100, 35, 1).data; // from outside to where the rim of its own colour ends
    return Math.min(...Array.from({ length: 35 }, (_, at) => row[4 * at] + row[4 * at + 1] + row[4 * at + 2])) / 3;
  };
  return Object.fromEntries(["#f0e442", "#56b4e9", "#0072b2"].map((colour) => [colour, darkest(colour)]));
}"""


def test_files_that_are_not_followed_are_shown_until_they_are(visitor: Visitor, stage: PageStage) -> None:
    stage.page.watcher.refused = lambda: (Refusal("<bad>.yaml: not valid YAML"),)
    stage.passes(1)
    visitor.wait_for("#side", "<bad>.yaml: not valid YAML")
    stage.page.watcher.refused = tuple
    stage.passes(1)
    expect(visitor.page.locator("#side")).not_to_contain_text("not as described")


def test_of_no_traffic_there_is_no_share_and_it_is_not_unknown(visitor: Visitor) -> None:
    told = visitor.page.evaluate(
        """async () => {
          const { percent } = await import("/js/format.js");
          return [percent(0, 0), percent(1, 4), percent(0, 4), percent(null, 4), percent(1, null)];
        }"""
    )
    assert told == ["–", "25%", "0%", "unknown", "unknown"]


def test_figures_are_as_the_operators_sentences_have_them(visitor: Visitor) -> None:
    values = [0, 0.05, 0.25, 0.0496, 0.4496, 0.9498, 5.04, 5.25, 5.35, 99.96, 100.5, 101.5, 1508.3, -1508.3]
    told = visitor.page.evaluate(
        """async (values) => {
          const { figure } = await import("/js/format.js");
          return values.map(figure);
        }""",
        values,
    )
    assert told == [figure(value) for value in values]


def test_a_faint_colour_has_a_rim_that_is_not(visitor: Visitor) -> None:
    """Yellow on white has a contrast of 1.3: what is around it has 3 and more. One that is dark enough needs none."""
    found = visitor.page.evaluate(RIM)
    assert found["#f0e442"] < 110
    assert found["#56b4e9"] < 110
    assert found["#0072b2"] == pytest.approx(brightness("#0072b2"), abs=2)


def brightness(colour: str) -> float:
    return sum(int(colour[at : at + 2], 16) for at in (1, 3, 5)) / 3


INK = """() => {
  const { map } = window.stormOperator;
  const canvas = document.getElementById("map"), ratio = canvas.width / canvas.clientWidth;
  const middle = map.toScreen("worker", 0);
  const [wide, high] = [30 * ratio, 8 * ratio], [x, y] = [middle.x * ratio - wide / 2, middle.y * ratio - high / 2];
  const pixels = canvas.getContext("2d").getImageData(x, y, wide, high).data;
  let dark = 0;
  for (let at = 0; at < pixels.length; at += 4) if (pixels[at] + pixels[at + 1] + pixels[at + 2] < 3 * 75) dark += 1;
  return dark;
}"""


def test_it_follows_a_plan_live(visitor: Visitor, stage: PageStage) -> None:
    assert len(set(hosts_of_workers(visitor))) == 4
    stage.passes(1)
    eventually(lambda: len(set(hosts_of_workers(visitor))) == 1, "the map shows the plan in force")
    visitor.wait_for("#figures", "1 of 4")
    visitor.page.keyboard.press("2")
    stage.passes(5)
    visitor.wait_for(".plan", "verified")
    plan = stage.stage.loop.memory.records[-1].plan
    assert plan.id in visitor.text(".plan")
    rows = visitor.page.locator(".plan .lower table").nth(1).locator("tbody tr").count()
    assert rows == len(plan.moves)
    assert f"{plan.before.inter_supervisor_tuples_per_second:,.0f}/s cross" in visitor.text(".sides figure")


def test_a_plan_is_told_while_it_is_applied_in_place_of_what_the_pass_before_decided(
    visitor: Visitor, stage: PageStage
) -> None:
    stage.passes(1)
    record = stage.stage.loop.memory.records[-1]
    (held,) = [one for one in stage.page.watcher.seen.view.decisions if one.kind == "hold"]
    visitor.wait_for(".topology", held.message.split(";")[0])
    stage.page.watcher.on_record(replace(record, state=PlanState.APPLYING))
    visitor.wait_for(".topology", f"is being applied: {record.plan.reason.split(' -> ')[0]}")
    stage.page.watcher.on_record(record)
    visitor.wait_for(".topology", held.message.split(";")[0])


def test_traffic_that_is_not_all_measured_is_unknown_and_a_gap_in_the_time_line(
    visitor: Visitor, stage: PageStage
) -> None:
    """In the period in which the plan's workers start nobody knows what they exchange."""
    assert "/s" in visitor.text("#figures div:nth-child(1)")
    stage.passes(1)
    visitor.wait_for("#figures div:nth-child(1)", "unknown")
    assert visitor.text("#figures div:nth-child(1)").split("\n") == ["unknown", "between supervisors"]
    crosses = visitor.page.locator("[data-topology] dt", has_text="crosses supervisors").locator("+ dd")
    expect(crosses).to_have_text("unknown")
    place = visitor.seen("map.toScreen('executor', 1)")
    visitor.page.locator("#map").hover(position=place)
    visitor.wait_for(".tip", "unknown/s")
    stage.passes(2)
    visitor.wait_for("#figures div:nth-child(1)", "0/s")
    line = visitor.page.locator("#timeline svg path").nth(1).get_attribute("d") or ""
    assert line.count("M") == 2


def test_a_plan_has_three_pictures_and_they_differ(visitor: Visitor, stage: PageStage) -> None:
    stage.passes(2)
    visitor.page.keyboard.press("2")
    visitor.page.locator(".sides canvas").nth(2).wait_for()

    def pictures() -> list[str]:
        script = "() => [...document.querySelectorAll('.sides canvas')].map((canvas) => canvas.toDataURL())"
        return list(visitor.page.evaluate(script))

    eventually(lambda: len(set(pictures())) == 3 and min(map(len, pictures())) > 5000, "three pictures are drawn")


def test_the_slider_goes_back_in_time_and_live_returns(visitor: Visitor, stage: PageStage) -> None:
    known = visitor.seen("state.points.length") + 3
    stage.passes(3)
    eventually(lambda: visitor.seen("state.points.length") == known, "what is new is known")
    eventually(lambda: len(set(hosts_of_workers(visitor))) == 1, "it is live")
    slider = visitor.page.get_by_label("Time", exact=True)
    slider.focus()
    visitor.page.keyboard.press("Home")
    eventually(lambda: len(set(hosts_of_workers(visitor))) == 4, "the map is of the first pass")
    expect(visitor.page.locator("#live")).to_have_text("past")
    stage.passes(1)  # what happens now does not take the visitor out of the past
    eventually(lambda: visitor.seen("state.points.length") == known + 1, "the new pass is known")
    assert len(set(hosts_of_workers(visitor))) == 4
    visitor.page.keyboard.press("l")
    eventually(lambda: len(set(hosts_of_workers(visitor))) == 1, "it is live again")


def test_after_the_clock_was_set_back_the_slider_stays_where_it_is_put(visitor: Visitor, stage: PageStage) -> None:
    before = visitor.seen("state.points.length")
    for number in range(3):
        stage.page.watcher.on_pass(report_of_unseen(EPOCH_SECONDS - 7200.0 + 10.0 * number, "no Nimbus answers"))
    eventually(lambda: visitor.seen("state.points.length") == before + 3, "what is new is known")
    slider = visitor.page.get_by_label("Time", exact=True)
    slider.focus()
    for key, place, when in (
        ("Home", 0, "before the clock was set back"),
        ("ArrowRight", 1, "before the clock was set back"),
        ("End", before + 2, "live"),
        ("ArrowLeft", before + 1, "10 s ago"),
    ):
        visitor.page.keyboard.press(key)
        expect(slider).to_have_value(str(place))
        expect(visitor.page.locator("#timeline .at span")).to_have_text(when)
        shown = f"state.view.at_seconds === state.points[{place}].at_seconds"
        eventually(partial(visitor.seen, shown), "the map is of that pass")


def test_everything_can_be_reached_by_keyboard(visitor: Visitor, stage: PageStage) -> None:
    page = visitor.page
    for key, selector in (("2", ".plans"), ("3", ".charts"), ("4", ".log"), ("5", "table"), ("1", "#map")):
        page.keyboard.press(key)
        page.locator(selector).first.wait_for()
    page.locator("#map").focus()
    page.keyboard.press("ArrowRight")
    first = visitor.text("#side h3")
    assert first.startswith("Executor ")
    page.keyboard.press("ArrowRight")
    assert visitor.text("#side h3") != first
    assert page.locator("#spoken").inner_text() == visitor.text("#side h3")
    executor = visitor.seen("state.selected.at")
    page.keyboard.press("u")
    assert visitor.text("#side h3").startswith("Worker 6700 of wordcount on machine-")
    page.keyboard.press("u")
    assert visitor.seen("state.view.supervisors[state.selected.at].workers") == 1
    assert visitor.text("#side h3").startswith("Supervisor machine-")
    host = visitor.text("#side h3")
    reads_its_heaviest_flow(visitor)
    page.keyboard.press("ArrowDown")
    assert visitor.text("#side h3").startswith("Supervisor machine-")
    assert visitor.text("#side h3") != host
    page.keyboard.press("ArrowUp")
    page.keyboard.press("i")
    page.keyboard.press("i")
    assert visitor.seen(f"state.view.executors[state.selected.at].worker === state.view.executors[{executor}].worker")
    page.keyboard.press("f")
    assert visitor.seen("map.scene().layout.workers.every((one) => one.folded)") is True
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert visitor.seen("map.scene().layout.workers.filter((one) => !one.folded).length") == 1
    page.keyboard.press("?")
    assert page.locator("dialog[open]").count() == 1
    page.keyboard.press("Escape")
    reached = {page.evaluate("() => document.activeElement.id || document.activeElement.dataset.key || ''")}
    for _ in range(25):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.id || document.activeElement.dataset.key || ''"))
    assert {"theme", "help", "map", "slider", "tab-plans"} <= reached


def reads_its_heaviest_flow(visitor: Visitor) -> None:
    """Of the supervisor that is selected: the same figure as in the API's view."""
    flows = visitor.seen(
        "state.view.traffic.supervisor_flows.filter((one) => [one.source, one.target].includes(state.selected.at))"
        ".map((one) => one.tuples_per_second)"
    )
    first = visitor.text("#side .flows li")
    assert "between supervisors" in first
    assert f"{rounded(max(flows))}/s" in first


def rounded(rate: float) -> str:
    """As the page has figures."""
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:,.1f}".removesuffix(".0")


def test_the_map_is_moved_by_keys_and_follows_what_they_select(visitor: Visitor) -> None:
    page = visitor.page
    page.locator("#map").focus()
    before = visitor.seen("map.toScreen('supervisor', 0)")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    after = visitor.seen("map.toScreen('supervisor', 0)")
    assert (before["x"] - after["x"], before["y"] - after["y"]) == (pytest.approx(80), pytest.approx(80))
    page.keyboard.press("0")
    page.keyboard.press("u")
    for _ in range(6):
        page.keyboard.press("+")
    assert is_in_sight(visitor, 0)
    assert not is_in_sight(visitor, 3)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert visitor.seen("state.selected") == {"kind": "supervisor", "at": 3}
    assert is_in_sight(visitor, 3)


def is_in_sight(visitor: Visitor, supervisor: int) -> bool:
    """Its middle."""
    size = visitor.page.locator("#map").bounding_box()
    assert size is not None
    place = visitor.seen(f"map.toScreen('supervisor', {supervisor})")
    return bool(0 <= place["x"] <= size["width"] and 0 <= place["y"] <= size["height"])


ON_A_LINE = """async () => {
  const { bent } = await import("/js/flows.js"), { map } = window.stormOperator;
  const { lines } = map.scene(), line = lines.at(-1), bend = bent(line);
  const [from, to] = [map.toScreen("executor", line.source), map.toScreen("executor", line.target)];
  const scale = Math.hypot(to.x - from.x, to.y - from.y) / Math.hypot(line.to.x - line.from.x, line.to.y - line.from.y);
  const at = (axis) => from[axis] + scale * (0.5 * bend[axis] + 0.25 * line.to[axis] - 0.75 * line.from[axis]);
  return { x: at("x"), y: at("y"), rate: line.rate };
}"""


def test_a_point_at_a_line_tells_what_flows(visitor: Visitor) -> None:
    place = visitor.page.evaluate(ON_A_LINE)
    visitor.page.locator("#map").hover(position={"x": place["x"], "y": place["y"]})
    tip = visitor.text(".tip")
    assert tip.startswith("Flow ")
    assert f"{rounded(place['rate'])}/s" in tip
    assert "between supervisors" in tip
    assert "4 ms" in tip


def test_flows_are_a_table_too(visitor: Visitor) -> None:
    """Of executors and of supervisors: the same figures as in the API's view, heaviest first, all levels."""
    page = visitor.page
    page.keyboard.press("5")
    page.get_by_label("Show").select_option("executor")
    view = visitor.seen("state.view")
    rates = [flow["tuples_per_second"] for flow in view["traffic"]["executor_flows"]]
    shown = page.locator("tbody tr td:nth-child(5)").all_inner_texts()
    assert shown == [rounded(rate) for rate in sorted(rates, reverse=True)]
    levels = page.locator("tbody tr td:nth-child(4)").all_inner_texts()
    assert set(levels) == {"in one worker", "between supervisors"}
    page.get_by_label("Filter").fill("in one worker")
    assert page.locator("tbody tr").count() == levels.count("in one worker")
    page.get_by_label("Filter").fill("")
    page.get_by_label("Show").select_option("supervisor")
    first = page.locator("tbody tr").first.locator("td").all_inner_texts()
    heaviest = max(view["traffic"]["supervisor_flows"], key=lambda flow: flow["tuples_per_second"])
    ends = [view["supervisors"][heaviest[end]]["host"] for end in ("source", "target")]
    assert [*first[:2], first[4], first[6]] == [*ends, rounded(heaviest["tuples_per_second"]), "4 ms"]


def test_supervisors_are_told_apart_as_status_does(visitor: Visitor) -> None:
    shortened = (
        "(hosts) => import('/js/hosts.js').then(({ shortNames }) => hosts.map((one) => shortNames(hosts).get(one)))"
    )
    found = [tuple(visitor.page.evaluate(shortened, list(hosts))) for hosts, _ in HOST_NAME_CASES]
    assert found == [names for _, names in HOST_NAME_CASES]


def test_names_of_pods_are_short_and_whole_where_one_is_looked_at(browser: Browser) -> None:
    scenario = words_scenario()
    machines = tuple(replace(one, host=POD.format(at)) for at, one in enumerate(scenario.model.supervisors))
    pods = replace(scenario, model=replace(scenario.model, supervisors=machines))
    with PageStage(pods).served() as stage:
        stage.until_planned()
        visitor = Visitor(browser, stage.url)
        page = visitor.page
        page.evaluate("import('/js/state.js').then((state) => state.select({ kind: 'supervisor', at: 0 }))")
        visitor.wait_for("#side h3", "Supervisor storm-supervisor-0")
        assert POD.format(0) in visitor.text("#side"), "one who looks at it can copy its whole name"
        page.keyboard.press("2")
        slot = visitor.text(".plan .lower table:last-child tbody td:last-child")
        assert re.fullmatch(r"storm-supervisor-\d:\d+", slot)
        page.keyboard.press("5")
        page.get_by_label("Filter").fill("storm-supervisor-0.storm-supervisor.storm.svc")
        assert visitor.text("tbody td") == "storm-supervisor-0", "it is found by its whole name"
        visitor.close()


def test_a_point_at_a_thing_tells_about_it(visitor: Visitor) -> None:
    place = visitor.seen("map.toScreen('executor', 1)")
    visitor.page.locator("#map").hover(position=place)
    tip = visitor.text(".tip")
    assert "Executor count 2-2" in tip
    assert "stateful" in tip
    visitor.page.locator("#map").click(position=place)
    assert "Executor count 2-2" in visitor.text("#side h3")


def test_why_is_told_in_words(visitor: Visitor) -> None:
    visitor.page.get_by_role("button", name="Why?").click()
    visitor.wait_for("dialog", "Rule that decided")
    assert "tuples/s acked" in visitor.text("dialog")


def test_what_a_change_of_parallelism_waits_for_is_told(visitor: Visitor, stage: PageStage) -> None:
    (topology,) = visitor.seen("state.view.topologies.map((one) => one.id)")
    held = HeldResize({"count": 4}, Hold(HoldReason.COOL_DOWN, "the last change is 9 s old"))
    stage.page.watcher.on_held_resizes({topology: held})
    visitor.wait_for(".held-resize", "cool down")
    assert "by load executors should be count 4; the last change is 9 s old" in visitor.text(".held-resize")
    visitor.page.get_by_label("Time", exact=True).focus()
    visitor.page.keyboard.press("Home")
    expect(visitor.page.locator(".held-resize")).to_have_count(0)
    visitor.page.keyboard.press("l")
    visitor.wait_for(".held-resize", "cool down")
    stage.page.watcher.on_held_resizes({})
    expect(visitor.page.locator(".held-resize")).to_have_count(0)


def test_forecast_and_decisions_are_shown(visitor: Visitor, stage: PageStage) -> None:
    stage.passes(6)
    visitor.page.keyboard.press("3")
    eventually(lambda: visitor.page.locator(".charts figure").count() == 4, "a chart for each component")
    assert {visitor.page.locator(".charts figure").nth(n).get_attribute("data-component") for n in range(4)} == {
        *("__acker", "count", "sentences", "split")
    }
    visitor.wait_for(".charts figcaption", "in the mean")
    stage.passes_unseen(2)
    passes = stage.page.watcher.seen.passes
    eventually(lambda: visitor.seen("state.passes") == passes, "the passes that could not see the cluster")
    assert visitor.page.locator(".charts figure").count() == 4
    visitor.wait_for("#trouble", "the cluster could not be seen since")
    stage.passes(1)
    expect(visitor.page.locator("#trouble")).to_be_hidden()
    visitor.page.keyboard.press("4")
    visitor.wait_for(".log", "no change")
    visitor.page.locator(".log .link", has_text="before and after").click()
    visitor.page.locator(".sides").wait_for()


TWO_OUTAGES = """async () => {
  const { runsOf } = await import("/js/decisions.js");
  const points = [];
  const pass = (count, topologies, reason) => {
    const decision = { topologies, kind: "hold", reason, message: reason, plan_id: null, gain_percent: null };
    for (let i = 0; i < count; i++) points.push({ at_seconds: 10 * points.length, decisions: [decision] });
  };
  pass(60, ["words-1-1"], "NoChange");
  pass(3, [], "ClusterUnreachable");
  pass(1800, ["words-1-1"], "NoChange");
  pass(3, [], "ClusterUnreachable");
  return runsOf(points).map(({ what, passes, from, to }) => [what, passes, from, to]);
}"""


def test_two_outages_are_two_lines_whatever_was_decided_between_them(visitor: Visitor) -> None:
    assert visitor.page.evaluate(TWO_OUTAGES) == [
        ["ClusterUnreachable", 3, 18630, 18650],
        ["NoChange", 1800, 630, 18620],
        ["ClusterUnreachable", 3, 600, 620],
        ["NoChange", 60, 0, 590],
    ]


def test_a_filter_keeps_the_focus_while_passes_come(visitor: Visitor, stage: PageStage) -> None:
    visitor.page.keyboard.press("5")
    visitor.page.get_by_label("Filter").fill("split")
    assert visitor.page.locator("tbody tr").count() == 2
    known = visitor.seen("state.passes")
    stage.passes(1)
    eventually(lambda: visitor.seen("state.passes") == known + 1, "a pass has come")
    visitor.page.keyboard.type(" stateful")
    eventually(lambda: visitor.page.locator("tbody tr").count() == 0, "the words were typed into the filter")


def test_it_asks_nobody_but_the_operator(visitor: Visitor, stage: PageStage) -> None:
    for key in "2345":
        visitor.page.keyboard.press(key)
    own = urlsplit(stage.url).netloc
    assert {urlsplit(url).netloc for url in visitor.asked if not url.startswith("data:")} == {own}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_light_or_dark_as_the_visitor_likes(browser: Browser, stage: PageStage, scheme: str) -> None:
    stage.passes(1)
    visitor = Visitor(browser, stage.url, color_scheme=scheme)
    try:
        assert visitor.page.evaluate("() => document.documentElement.dataset.theme") == scheme
        background = visitor.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        brightness = sum(map(int, re.findall(r"\d+", background)[:3])) / 3
        assert (brightness > 128) is (scheme == "light")
    finally:
        visitor.close()


@pytest.mark.parametrize("by", ["click", "key"])
def test_a_plan_is_approved(browser: Browser, by: str) -> None:
    with PageStage(words_scenario(), Mode.RECOMMEND).served() as stage:
        stage.until_planned()
        visitor = Visitor(browser, stage.url)
        try:
            visitor.wait_for("#tabs", "1")
            visitor.wait_for(".topology .pill", "plan waits for approval")
            visitor.page.keyboard.press("2")
            approve = visitor.page.get_by_role("button", name="Approve")
            approve.wait_for()
            if by == "click":
                approve.click()
            else:
                tab_to(visitor, f"approve-{stage.stage.loop.memory.proposals.waiting[0].plan.id}")
                visitor.page.keyboard.press("Enter")
            visitor.wait_for(".verdict", "it begins with the next pass")
            visitor.page.keyboard.press("1")
            expect(visitor.page.locator(".topology .pill")).to_have_text("plan")
            visitor.page.keyboard.press("2")
            stage.passes(2)
            visitor.wait_for(".plan", "approved by the operator's page")
            eventually(lambda: len(set(hosts_of_workers(visitor))) == 1, "the plan is in force")
            assert visitor.troubles == []
        finally:
            visitor.close()


def test_a_newer_plan_does_not_come_in_place_of_the_one_that_is_looked_at(browser: Browser) -> None:
    """Nor under the cursor, nor with the focus, nor with what was said of the other."""
    with PageStage(words_scenario(), Mode.RECOMMEND).served() as stage:
        stage.until_planned()
        (waiting,) = stage.stage.loop.memory.proposals.waiting
        visitor = Visitor(browser, stage.url)
        try:
            visitor.page.keyboard.press("2")
            tab_to(visitor, f"approve-{waiting.plan.id}")
            at = waiting.plan.created_at_seconds + 1.0
            newer = replace(waiting, plan=replace(waiting.plan, id="p-newer", created_at_seconds=at))
            stage.page.watcher.on_record(newer)
            eventually(lambda: visitor.page.locator(".plans ol li").count() == 2, "the list has both")
            assert waiting.plan.id in visitor.text(".plan")
            focused = "() => document.activeElement.dataset.key"
            assert visitor.page.evaluate(focused) == f"approve-{waiting.plan.id}"
            visitor.page.keyboard.press("Enter")
            visitor.wait_for(".verdict", "it begins with the next pass")
            visitor.page.locator(".plans ol li button").first.click()
            visitor.wait_for(".plan", "p-newer")
            assert visitor.text(".verdict [role=status]") == ""
            visitor.page.keyboard.press("1")
            visitor.page.keyboard.press("2")
            visitor.wait_for(".plan", "p-newer")
            assert [trouble for trouble in visitor.troubles if "404" not in trouble] == []  # it has no picture yet
        finally:
            visitor.close()


def test_what_was_not_measured_is_not_told_as_what_was_predicted(visitor: Visitor, stage: PageStage) -> None:
    record = stage.stage.loop.memory.records[-1]
    unknown = replace(record.before, inter_supervisor_tuples_per_second=None)
    stage.page.watcher.on_record(replace(record, before=unknown))
    visitor.page.keyboard.press("2")
    figures = visitor.page.locator(".plan .lower table").first.locator("tbody tr")
    expect(figures.nth(0).locator("td").nth(1)).to_have_text("unknown")
    assert figures.nth(3).locator("td").nth(1).inner_text() == str(record.plan.before.supervisors_used)


def tab_to(visitor: Visitor, key: str) -> None:
    """By the Tab key alone."""
    for _ in range(60):
        visitor.page.keyboard.press("Tab")
        if visitor.page.evaluate("() => document.activeElement.dataset.key") == key:
            return
    raise AssertionError(f"Tab never comes to {key}")


RIGHT_TOKEN = "right-token"


@dataclass
class TokenAsked:
    """Asks for a token as in Kubernetes, and lets the loop decide for whom has the right one."""

    loop: LoopApprover
    tokens: list[str] = field(default_factory=list)
    needs_token: bool = True

    def take(self, plan_id: str, verdict: Verdict, token: str) -> Answer:
        self.tokens.append(token)
        if token != RIGHT_TOKEN:
            return Answer(HTTPStatus.UNAUTHORIZED, "Kubernetes does not accept this token")
        return self.loop.take(plan_id, verdict, token)


@pytest.mark.parametrize(
    ("button", "said", "became"),
    [("Approve", "it begins with the next pass", "Verified"), ("Reject", "not proposed again", "Rejected")],
)
def test_a_token_decides_who_may_say_yes_or_no(browser: Browser, button: str, said: str, became: str) -> None:
    stage = PageStage(words_scenario(), Mode.RECOMMEND)
    approver = TokenAsked(stage.page.approver)
    server, where = open_page(Api(lambda: {"sim:6627": stage.page.watcher}, approver), PageAddress(0))
    stage.until_planned()
    visitor = Visitor(browser, where.url)
    try:
        visitor.wait_for("#tabs", "1")
        visitor.page.keyboard.press("2")
        token = visitor.page.get_by_label("Kubernetes token")
        assert token.get_attribute("type") == "password"
        token.fill("wrong-token")
        visitor.page.get_by_role("button", name=button).click()
        visitor.wait_for(".verdict", "Kubernetes does not accept this token")
        stage.passes(1)
        assert [plan.state for plan in stage.page.watcher.seen.plan_views()] == ["Proposed"]
        token.fill(RIGHT_TOKEN)
        visitor.page.get_by_role("button", name=button).click()
        visitor.wait_for(".verdict", said)
        assert approver.tokens == ["wrong-token", RIGHT_TOKEN]
        stage.passes(6)
        assert became in [plan.state for plan in stage.page.watcher.seen.plan_views()]
        kept = visitor.page.evaluate("() => JSON.stringify([localStorage, sessionStorage, document.cookie])")
        assert "token" not in kept
        assert [trouble for trouble in visitor.troubles if "401" not in trouble] == []
    finally:
        visitor.close()
        server.shutdown()
        server.server_close()


def test_an_operator_that_does_not_answer_is_said_and_what_was_seen_stays(visitor: Visitor, stage: PageStage) -> None:
    visitor.context.set_offline(True)
    visitor.wait_for("#trouble", "the operator does not answer")
    assert visitor.seen("state.view.supervisors.length") == 4
    visitor.context.set_offline(False)
    expect(visitor.page.locator("#trouble")).to_be_hidden()
    visitor.troubles.clear()  # the browser's own words about the network


def test_a_page_that_is_opened_long_after_the_last_pass_is_not_called_live(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect(visitor.page.locator("#live")).to_have_text("● live")
    monkeypatch.setattr(Watcher, "pass_age_seconds", 3600.0)
    visitor.page.reload()
    expect(visitor.page.locator("#live")).to_have_text("no new pass")
    assert visitor.seen("Date.now() - state.quietSince") > 3_500_000, "since the last pass, not since it was opened"


def test_an_operator_that_never_ends_its_answer_is_one_that_does_not_answer(visitor: Visitor) -> None:
    """As one that hangs, or a forwarded port whose other end is gone."""
    held = list[Route]()

    def hold(route: Route) -> None:
        held.append(route)

    visitor.page.evaluate(
        """() => {
          const timeout = AbortSignal.timeout.bind(AbortSignal);
          AbortSignal.timeout = () => timeout(50);
          window.patientAgain = () => (AbortSignal.timeout = timeout);
        }"""
    )
    visitor.page.route("**/api/**", hold)
    visitor.wait_for("#trouble", "the operator does not answer")
    expect(visitor.page.locator("#live")).to_have_text("no answer")
    assert held != []
    visitor.page.evaluate("() => window.patientAgain()")
    visitor.page.unroute("**/api/**")
    expect(visitor.page.locator("#trouble")).to_be_hidden()
    visitor.troubles.clear()  # the browser's own words about the network


def test_an_operator_that_was_restarted_is_followed_from_its_beginning(visitor: Visitor, stage: PageStage) -> None:
    known = visitor.seen("state.points.length")
    stage.passes(2)
    eventually(lambda: visitor.seen("state.points.length") == known + 2, "what is new is known")
    with PageStage(words_scenario(supervisors=3)).served() as second:
        second.passes(1)
        here, there = urlsplit(stage.url).netloc, urlsplit(second.url).netloc
        visitor.page.route("**/api/**", lambda route: route.continue_(url=route.request.url.replace(here, there)))
        eventually(lambda: visitor.seen("state.view?.supervisors.length") == 3, "the new operator is shown")
        assert visitor.seen("state.points.length") == 1


def test_a_picture_that_comes_late_is_not_shown_as_that_of_another_plan(visitor: Visitor) -> None:
    held = list[Route]()

    def hold(route: Route) -> None:
        held.append(route)

    visitor.page.route(re.compile("/scene"), hold)
    visitor.page.keyboard.press("2")
    eventually(lambda: visitor.seen("state.tab") == "plans" and len(held) == 1, "the plan's picture is asked for")
    visitor.page.evaluate(
        """() => import("/js/state.js").then(({ state, changed }) => {
          state.plans = [{ ...state.plans[0], id: "another" }, ...state.plans];
          state.plan = "another";
          changed("plans");
        })"""
    )
    eventually(lambda: visitor.seen("state.plan") == "another" and len(held) == 2, "so is the other plan's")
    with visitor.page.expect_response(re.compile("/scene")) as late:
        held[0].continue_()
    late.value.finished()
    visitor.page.wait_for_timeout(500)
    drawn = "() => document.querySelectorAll('canvas[data-scene][width]').length"  # one that is drawn on gets its size
    assert visitor.page.evaluate(drawn) == 0
    held[1].fulfill(body=late.value.body(), content_type="application/json")
    eventually(lambda: visitor.page.evaluate(drawn) == 3, "its own picture is shown")


def test_what_is_selected_stays_selected_where_others_come_and_go(browser: Browser) -> None:
    """The first of four supervisors dies: all others are one place nearer to the front of each list."""
    scenario = words_scenario()
    model = replace(scenario.model, faults=(SupervisorDies("s1", 15.0),))
    with PageStage(replace(scenario, model=model), Mode.OBSERVE).served() as stage:
        stage.passes(1)
        visitor = Visitor(browser, stage.url)
        visitor.page.evaluate("import('/js/state.js').then((state) => state.select({ kind: 'supervisor', at: 1 }))")
        assert "machine-2" in visitor.text("#side h3")
        stage.passes(6)
        eventually(lambda: visitor.seen("state.view.supervisors.length") == 3, "the dead one is gone")
        assert visitor.seen("state.selected") == {"kind": "supervisor", "at": 0}
        assert "machine-2" in visitor.text("#side h3")
        visitor.page.keyboard.press("l")
        past = visitor.seen("state.points[0].at_seconds")
        visitor.page.evaluate(f"import('/js/state.js').then((state) => state.goTo({past}))")
        eventually(lambda: visitor.seen("state.view.supervisors.length") == 4, "the past is shown")
        assert visitor.seen("state.selected.at") == 1
        visitor.close()


def test_a_worker_that_was_selected_may_end_while_another_view_is_looked_at(visitor: Visitor, stage: PageStage) -> None:
    visitor.page.evaluate("import('/js/state.js').then((state) => state.select({ kind: 'worker', at: 3 }))")
    visitor.page.keyboard.press("2")
    known = visitor.seen("state.passes")
    stage.passes(2)
    eventually(lambda: visitor.seen("state.passes") == known + 2, "what is new is known")
    assert visitor.seen("state.view.workers.length") < 4
    assert visitor.seen("[state.selected, state.lost, state.trouble]") == [None, False, ""]


def test_a_cluster_that_is_managed_again_is_shown_from_its_new_beginning(browser: Browser) -> None:
    """Nobody named it for a moment, in which this page did not ask: its passes count from one again."""
    first, second = PageStage(words_scenario()), PageStage(words_scenario(supervisors=3))
    first.passes(3)
    clusters = {"sim:6627": first.page.watcher}
    server, where = open_page(Api(lambda: clusters), PageAddress(0))
    visitor = Visitor(browser, where.url)
    try:
        eventually(lambda: visitor.seen("state.points.length") == 3, "its first life is shown")
        second.passes(1)
        clusters["sim:6627"] = second.page.watcher
        eventually(lambda: visitor.seen("state.view?.supervisors.length") == 3, "its second life is shown")
        assert visitor.seen("state.points.map((one) => one.number)") == [1]
    finally:
        visitor.close()
        server.shutdown()


def is_blank(visitor: Visitor) -> bool:
    """Whether nothing is drawn on the map."""
    return bool(
        visitor.page.evaluate(
            """() => {
              const canvas = document.getElementById("map"); // of which Chromium complains where it is read twice
              const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
              copy.drawImage(canvas, 0, 0);
              return copy.getImageData(0, 0, canvas.width, canvas.height).data.every((part) => part === 0);
            }"""
        )
    )


def test_once_no_cluster_is_managed_nothing_of_it_is_shown_as_live(browser: Browser) -> None:
    stage = PageStage(words_scenario())
    stage.passes(3)
    clusters = {"sim:6627": stage.page.watcher}
    server, where = open_page(Api(lambda: clusters), PageAddress(0))
    visitor = Visitor(browser, where.url)
    try:
        assert not is_blank(visitor)
        clusters.clear()
        expect(visitor.page.locator(".empty")).to_have_text("No Storm cluster is managed here.")
        expect(visitor.page.locator("#live")).to_have_text("no cluster")
        assert visitor.seen("[state.view, map.scene(), state.points.length]") == [None, None, 0]
        assert is_blank(visitor)
        assert visitor.page.locator("#figures div").count() == 0
        visitor.page.locator("#map").dispatch_event("mousemove", {"clientX": 50, "clientY": 50})
        clusters["sim:6627"] = stage.page.watcher
        expect(visitor.page.locator("#live")).to_have_text("● live")
        eventually(lambda: not is_blank(visitor), "it is shown again")
        assert visitor.troubles == []
    finally:
        visitor.close()
        server.shutdown()
        server.server_close()


def test_of_a_cluster_without_a_pass_no_map_of_another_one_is_shown(browser: Browser) -> None:
    stage, other = PageStage(words_scenario()), PageStage(words_scenario(supervisors=3))
    stage.passes(1)
    api = Api(lambda: {"first:6627": stage.page.watcher, "second:6627": other.page.watcher})
    server, where = open_page(api, PageAddress(0))
    visitor = Visitor(browser, where.url)
    try:
        visitor.page.locator("#cluster").select_option("second:6627")
        expect(visitor.page.locator(".empty")).to_have_text("Waiting for the first pass of the loop…")
        assert visitor.seen("map.scene()") is None
        assert is_blank(visitor)
        assert visitor.troubles == []
    finally:
        visitor.close()
        server.shutdown()
        server.server_close()


def test_the_past_of_a_cluster_is_there_once_though_it_was_asked_for_twice(browser: Browser) -> None:
    """By who has chosen it, and by who looks each second, before the first answer came."""
    first, second = PageStage(words_scenario()), PageStage(words_scenario(supervisors=3))
    first.passes(2)
    second.passes(3)
    api = Api(lambda: {"first:6627": first.page.watcher, "second:6627": second.page.watcher})
    server, where = open_page(api, PageAddress(0))
    visitor = Visitor(browser, where.url)
    past, held = re.compile(r"/history\?cluster=second"), list[Route]()
    numbers = "state.points.map((one) => one.number)"

    def hold_the_first_two(route: Route) -> None:
        if len(held) < 2:
            held.append(route)
        else:
            route.continue_()

    try:
        visitor.page.route(past, hold_the_first_two)
        visitor.page.locator("#cluster").select_option("second:6627")
        eventually(lambda: visitor.seen("state.cluster") == "second:6627" and len(held) == 2, "both have asked")
        for route in held:
            route.continue_()
        eventually(lambda: len(visitor.seen(numbers)) >= 3, "the past is there")
        second.passes(1)
        eventually(lambda: 4 in visitor.seen(numbers), "what is new is known")
        assert visitor.seen(numbers) == [1, 2, 3, 4]
        assert visitor.troubles == []
    finally:
        visitor.close()
        server.shutdown()
        server.server_close()


def test_two_thousand_executors_are_folded_and_can_be_looked_into(browser: Browser) -> None:
    with PageStage(large_scenario(2000, 50), Mode.OBSERVE).served() as stage:
        stage.passes(1)
        visitor = Visitor(browser, stage.url)
        try:
            assert visitor.seen("state.view.executors.length") == 2000
            assert visitor.seen("map.scene().layout.workers.every((one) => one.folded)") is True
            assert visitor.page.evaluate(INK) > 4, "bars carry letters: colour is not the only cue"
            place = visitor.seen("map.toScreen('worker', 0)")
            visitor.page.locator("#map").click(position=place)
            assert visitor.text("#side h3").startswith("Worker ")
            visitor.page.locator("#map").click(position=place)
            shown = visitor.seen("map.scene().layout.executors.filter(Boolean).length")
            assert shown == visitor.seen("state.view.workers[0].executors")
            assert visitor.seen("state.view.traffic.left_out_executor_flows") > 0
            one = visitor.seen("map.scene().layout.executors.findIndex(Boolean)")
            visitor.page.locator("#map").hover(position=visitor.seen(f"map.toScreen('executor', {one})"))
            visitor.wait_for(".tip", "at least")
            visitor.page.keyboard.press("5")
            visitor.wait_for(".fields", "2000 of 2000, the first 500 are shown")
            assert visitor.troubles == []
        finally:
            visitor.close()
