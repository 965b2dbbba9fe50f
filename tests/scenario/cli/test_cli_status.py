"""`status` and `explain` against an operator's page that is known exactly."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from builders import snapshot, supervisors
from console_scene import PageScene, page_scene, reborn, unseen
from full_disk import run_on_full_disk
from host_name_cases import POD
from http_server import serving
from loop_scene import SETTINGS, SPECS, WORDS, with_mode
from storm_operator import cli_status
from storm_operator.adapters.errors import AdapterError
from storm_operator.cli import app
from storm_operator.console.api import Api
from storm_operator.console.documents import to_bytes
from storm_operator.console.explain import explain_topology
from storm_operator.console.pass_view import NOTHING_SEEN
from storm_operator.console.site import PageAddress, open_page
from storm_operator.core.agent_enforcement import AgentEnforcement
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.parallelism import HeldResize
from storm_operator.core.plan_record import PlanRecord, PlanState
from storm_operator.core.refusal import Refusal
from storm_operator.core.settings import Mode
from storm_operator.demo.figures import plan_to_report
from storm_operator.demo.report import plan_section
from storm_operator.kube.rebalance_status import rebalance_status
from storm_operator.loop_ports import Audience, PassReport
from storm_operator.status_view import status_view

RUNNER = CliRunner()


class Operator:
    """A page over HTTP."""

    def __init__(self, stopwatch: Callable[[], float] = time.monotonic) -> None:
        self.page: PageScene = page_scene(8, stopwatch)
        self.clusters = {"nimbus:6627": self.page.watcher}
        self.server, where = open_page(Api(lambda: self.clusters), PageAddress(0))
        self.url = where.url

    def run(self, *arguments: str, exit_code: int = 0, columns: int = 200) -> str:
        done = RUNNER.invoke(app, [*arguments, "--url", self.url], env={"COLUMNS": str(columns)})
        assert done.exit_code == exit_code, done.output
        return done.output


@pytest.fixture(scope="module")
def operator() -> Iterator[Operator]:
    yield from serving_page()


@pytest.fixture
def own() -> Iterator[Operator]:
    """Of one test alone, which changes what there is to see."""
    yield from serving_page()


def serving_page() -> Iterator[Operator]:
    started = Operator()
    yield started
    started.server.shutdown()
    started.server.server_close()


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_status_shows_topologies_decision_and_placement(operator: Operator, columns: int) -> None:
    text = operator.run("status", columns=columns)
    assert max(map(len, text.splitlines())) <= columns
    assert "words (managed, limits held): hold, " in text
    assert ["words", "2", "1", "8", "8", "300", "0", "0%"] in [line.split() for line in text.splitlines()]
    assert "count* x2" in text
    rows = [line.split() for line in text.splitlines() if line.startswith("10.77.0.")]
    assert len([row for row in rows if "empty," in row]) == 2


def test_in_a_narrow_terminal_status_is_whole_and_its_lines_are_broken_there(operator: Operator) -> None:
    text = operator.run("status", columns=40)
    assert "…" not in text
    assert ["words", "2", "1", "8", "8", "300", "0", "0%"] in [line.split() for line in text.splitlines()]
    assert len([line for line in text.splitlines() if line.startswith("10.77.0.")]) >= 2


def test_a_loop_that_makes_no_pass_is_noted_since_all_figures_are_of_its_last() -> None:
    now = [0.0]
    operator = Operator(lambda: now[0])
    try:
        for age_seconds, is_noted in ((30.0, False), (100.0, True)):
            now[0] = age_seconds
            text = " ".join(operator.run("status").split())
            assert (f"note: the loop has made no pass for {age_seconds:.0f} s" in text) is is_noted
        (found,) = json.loads(operator.run("status", "--output", "json"))["clusters"]
        assert found["pass_age_seconds"] == 100.0
    finally:
        operator.server.shutdown()
        operator.server.server_close()


def test_the_plan_of_a_topology_that_the_last_pass_did_not_know_is_told(own: Operator) -> None:
    record = own.page.played.loop.memory.records[-1]
    own.page.watcher.seen = replace(own.page.watcher.seen, view=NOTHING_SEEN, plans=())
    own.page.watcher.on_record(replace(record, state=PlanState.APPLYING))
    text = own.run("status")
    assert f"words (new): plan {record.plan.id}: is being applied: " in text
    assert "everything" not in text


def test_of_a_topology_that_nobody_manages_any_more_no_decision_is_told(own: Operator) -> None:
    own.page.played.run({})
    assert "words (not managed): nothing is decided about it" in own.run("status")


def test_a_paused_topology_is_said_to_be_paused_also_before_the_next_pass(own: Operator) -> None:
    own.page.watcher.refused = lambda: (
        Refusal("words.yaml: paused by annotation: left as it is", "words", is_pause=True),
        Refusal("StormTopology streams/other: it is being submitted", "other"),
    )
    own.page.watcher.look_again()
    assert own.page.get("view")["paused"] == ["words"]
    assert "words (paused): hold, " in own.run("status"), "what the last pass decided"
    own.page.played.run({})
    assert "words (paused): nothing is decided about it" in own.run("status")


def test_where_agents_only_observe_no_limit_is_said_to_be_held(own: Operator) -> None:
    """As the storm chart has them: the spec asks for limits, and nobody holds executors to them."""
    played = own.page.played
    observes = AgentEnforcement("observe-only", "told not to (--no-enforce)")
    played.loop.agents = lambda: {one.host: observes for one in supervisors(3)}
    played.run()
    assert "words (managed, limits asked for but not held): hold, " in own.run("status")
    explained = " ".join(own.run("explain", "words").split())
    assert "are held to" not in explained
    assert "nearest to its limit" not in explained
    assert "They are not all held to the CPU limits that are asked for." in explained
    assert {one["limit_millicores"] for one in own.page.get("view")["executors"]} == {None}


def test_of_a_topology_that_has_no_place_yet_no_limit_is_said_to_be_missing() -> None:
    seen = page_scene(passes=1).watcher.seen
    (topology,) = seen.view.topologies
    assert topology.asks_for_limits
    unplaced = replace(topology, workers=0, supervisors=0, is_held_to_limits=False)
    view = replace(seen.view, topologies=(unplaced,))
    assert "words (managed): " in shown(json.loads(to_bytes(view)))
    explanation = explain_topology("words", view, (), ())
    assert explanation is not None
    assert "not all held" not in str(explanation.parts)


@pytest.mark.parametrize("columns", [80, 120])
def test_long_names_and_large_figures_fold_and_are_not_cut_off(operator: Operator, columns: int) -> None:
    """Figures stay whole, each in one line; of names and of lists nothing is lost."""
    view = operator.page.get("view")
    name, host = "clickstream-sessionization-eu", "ip-10-0-3-117.eu-central-1.compute.internal"
    view["topologies"][0] |= {"name": name, "latency_p50_ms": None, "acked_per_second": 1_234_567.0, "workers": 48}
    for supervisor in view["supervisors"]:
        supervisor |= {"host": host, "cpu_used_millicores": 31_250.0, "cpu_capacity_millicores": 64_000.0}
    for executor in view["executors"]:
        executor["component"] = f"{executor['component']}-with-a-long-name"
    text = shown(view, columns=columns)
    assert max(map(len, text.splitlines())) <= columns
    assert "…" not in text
    for figure in ("unknown", "1,234,567", "31,250 of 64,000 m", "6700", "6701"):
        assert any(figure in line for line in text.splitlines()), figure
    assert "(managed, limits held)" in " ".join(text.split())
    rows = "split-with-a-long-name x2, spout-with-a-long-name"
    for folded, heading, after in (
        (host, "supervisor", "CPU"),
        (name, "topology", "executors"),
        (rows, "executors", ""),
    ):
        assert folded.replace(" ", "") in placement_column(text, heading, after), folded


def test_traffic_that_is_not_all_measured_is_unknown() -> None:
    page = page_scene(passes=1)
    page.played.observer.missing = True
    page.played.run()
    lines = status_of(page).splitlines()
    (row,) = [line.split() for line in lines if line.split()[:1] == ["words"] and "(" not in line]
    assert row[-1] == "unknown", "of its traffic that crosses"
    assert "Tuples/s: unknown, not all executors are measured" in lines


def test_before_anything_has_a_place_status_says_so_and_tells_no_traffic_of_zero() -> None:
    page = page_scene(passes=0)
    page.watcher.on_pass(PassReport(1.0, snapshot((WORDS,), supervisors(3), {}), None, ()))
    text = status_of(page)
    assert "Tuples/s: unknown, no executor has a place" in text
    (row,) = [line.split() for line in text.splitlines() if line.split()[:1] == ["words"] and "(" not in line]
    assert row[-1] == "unknown", "of its traffic that crosses"


def test_after_a_restart_status_and_explain_say_what_becomes_of_plans_that_waited() -> None:
    page = page_scene(passes=0)
    page.played.run(with_mode(Mode.RECOMMEND))
    assert ": waits for approval; " in status_with_plans(page)
    restarted = reborn(page)
    restarted.played.run(with_mode(Mode.OBSERVE))
    words = (
        "one since the operator started; one that waited for approval before that is proposed anew while it is worth it"
    )
    assert f"Plans: n{words}" in " ".join(status_with_plans(restarted).split())
    explained = {part["title"]: part["sentences"] for part in restarted.get("topologies/words/explanation")["parts"]}
    assert explained["Last plan"] == [f"N{words}."]


ANNOTATE = "kubectl annotate stormrebalance {plan} storm-operator.dev/rebalance=approve"


@pytest.mark.parametrize(
    ("approval", "where"),
    [
        ("open", "; approve it on the page: http://host:8088"),
        ("token", f"; approve it on the page: http://host:8088, or with {ANNOTATE}"),
        ("off", f"; approve it with {ANNOTATE}, or without Kubernetes on the page, with standalone --page-approval"),
    ],
)
def test_where_a_plan_that_waits_is_approved_is_told(approval: str, where: str) -> None:
    page = page_scene(passes=0)
    page.played.run(with_mode(Mode.RECOMMEND))
    (plan,) = page.get("plans")["plans"]
    told = shown(page.get("view"), [plan], columns=1000, approval=approval, url="http://host:8088")
    (line,) = [line.rstrip() for line in told.splitlines() if ": waits for approval; " in line]
    assert line.endswith(where.format(plan=plan["id"]))


def test_status_asks_the_operator_where_plans_are_approved(own: Operator) -> None:
    page = page_scene(passes=0)
    page.played.run(with_mode(Mode.RECOMMEND))
    own.clusters["nimbus:6627"] = page.watcher
    assert "; approve it with kubectl annotate" in own.run("status", columns=1000)


def test_a_plan_that_nothing_tells_of_what_it_brought_is_not_shown_as_one_that_helped() -> None:
    page = page_scene(passes=0)
    page.played.observer.unknown = True
    page.played.run(SPECS)
    page.played.observer.unknown = False
    while page.played.loop.memory.records[-1].state is not PlanState.VERIFIED:
        page.played.run(SPECS)
    (plan,) = page.get("plans")["plans"]
    assert plan["effect_is_unknown"] is True
    told = f"Plan {plan['id']}: Verified, effect unknown; nothing tells what it brought, since "
    assert told in " ".join(status_with_plans(page).split())
    explained = {part["title"]: part["sentences"] for part in page.get("topologies/words/explanation")["parts"]}
    assert explained["Last plan"][0].startswith(f"{plan['id']} (Verified, effect unknown): ")
    record = page.played.loop.memory.records[-1]
    status = rebalance_status(record, {}, 0.0)
    verified = next(one for one in status["conditions"] if one["type"] == "Verified")
    assert (status["state"], status["reason"], verified["reason"]) == ("Verified", "EffectUnknown", "EffectUnknown")
    assert "(Verified, effect unknown, adaptive)" in plan_section(plan_to_report(record, {}))
    del plan["effect_is_unknown"]  # as an operator of before has it
    assert f"Plan {plan['id']}: Verified; " in shown(page.get("view"), [plan])


def shown(
    view: dict[str, Any], plans: Sequence[dict[str, Any]] = (), columns: int = 120, approval: str = "", url: str = ""
) -> str:
    console = Console(width=columns, record=True, file=StringIO(), highlight=False)
    console.print(status_view("nimbus:6627", view, plans, approval=approval, url=url))
    return console.export_text()


def status_with_plans(page: PageScene) -> str:
    return shown(page.get("view"), page.get("plans")["plans"])


def status_of(page: PageScene) -> str:
    return shown(page.get("view"))


def test_a_supervisor_that_is_being_emptied_is_told() -> None:
    page = page_scene(passes=8)
    view = page.get("view")
    free = [one for one in view["supervisors"] if not one["workers"]]
    for supervisor in free:
        supervisor["is_leaving"] = True
    rows = [line for line in shown(view).splitlines() if "(leaving)" in line]
    assert len(rows) == len(free) > 0
    assert all("empty" in row and "slots" not in row for row in rows)


def test_supervisors_are_told_apart_by_as_little_of_their_names_as_that_takes() -> None:
    page = page_scene()
    view = page.get("view")
    for at, supervisor in enumerate(view["supervisors"]):
        supervisor["host"] = POD.format(at)
    text = shown(view, columns=80)
    rows = [line for line in text.splitlines() if line.startswith("storm-supervisor-")]
    assert [row.split()[0] for row in rows] == [f"storm-supervisor-{at}" for at in range(len(view["supervisors"]))]


def test_files_that_are_not_followed_are_noted_and_an_operator_of_before_tells_of_none() -> None:
    page = page_scene()
    page.watcher.refused = lambda: (Refusal("[bad].yaml: not valid YAML"),)
    page.played.run(SPECS)
    assert "note: [bad].yaml: not valid YAML" in status_of(page)
    view = page.get("view")
    del view["refused"]
    console = Console(width=120, record=True, file=StringIO())
    console.print(status_view("nimbus:6627", view, []))
    assert "[bad]" not in console.export_text()


def test_figures_of_a_cluster_that_could_not_be_seen_are_not_told_as_those_of_now() -> None:
    page = page_scene(passes=2)
    seen_at = page.get("view")["at_seconds"]
    assert "note:" not in status_of(page)
    unseen(page.played, AdapterError("no Nimbus answers"))
    unseen(page.played, AdapterError("no Nimbus answers"))
    text, age = status_of(page), page.get("view")["at_seconds"] - seen_at
    assert age > 0.0
    assert f"note: all figures are at least {age:.0f} s old: the cluster could not be seen since " in text
    assert "hold, ClusterUnreachable: no Nimbus answers" in text


def test_figures_of_a_cluster_that_cannot_be_seen_grow_older_also_between_passes() -> None:
    now = [0.0]
    operator = Operator(lambda: now[0])
    try:
        page = operator.page
        seen_at = page.get("view")["at_seconds"]
        unseen(page.played, AdapterError("no Nimbus answers"))
        at_the_pass = page.get("view")["at_seconds"] - seen_at
        for pass_age in (0.0, 7.0, 20.0):
            now[0] = pass_age
            text = " ".join(operator.run("status").split())
            assert f"note: all figures are at least {at_the_pass + pass_age:.0f} s old: " in text
    finally:
        operator.server.shutdown()
        operator.server.server_close()


def test_a_cluster_that_was_never_seen_is_not_told_as_one_without_topologies() -> None:
    page = page_scene(passes=0)
    unseen(page.played, AdapterError("no Nimbus answers"))
    text = status_of(page)
    assert "note: the cluster has not been seen yet" in text
    assert "everything: hold, ClusterUnreachable: no Nimbus answers" in text


def test_what_a_plan_brings_is_told_once_by_the_decision_and_else_by_the_plan() -> None:
    page = page_scene(passes=1)
    (plan,) = page.get("plans")["plans"]
    text = " ".join(status_with_plans(page).split())
    assert text.count(plan["reason"]) == 1
    assert f"Plan {plan['id']}: Settling Placement" in text
    page.played.run(SPECS, seconds=1.0)
    text = " ".join(status_with_plans(page).split())
    assert f"Plan {plan['id']}: Settling; {plan['reason']} Placement" in text


@pytest.mark.parametrize(
    ("kind", "reason", "plan_id", "told"),
    [("plan", "", "p-1", "plan p-1"), ("hold", "GainTooSmall", None, "hold, GainTooSmall")],
)
def test_a_decision_about_several_topologies_is_told_once(
    kind: str, reason: str, plan_id: str | None, told: str
) -> None:
    view = json.loads(to_bytes(page_scene(passes=1).watcher.seen.view))
    (words,) = view["topologies"]
    other = {**words, "id": "orders-1-1", "name": "orders"}
    both = [words["id"], other["id"]]
    decision = {"topologies": both, "kind": kind, "reason": reason, "plan_id": plan_id, "message": "all that it does"}
    view |= {"topologies": [words, other], "decisions": [decision]}
    lines = shown(view).splitlines()
    assert f"words (managed, limits held): {told}: all that it does" in lines
    assert f"orders (managed, limits held): {told}, with words" in lines


def test_while_a_plan_is_applied_the_hold_of_the_pass_before_is_not_told() -> None:
    page = page_scene(passes=0)
    observed = {"words": replace(SPECS["words"], scheduling=replace(SETTINGS, mode=Mode.OBSERVE))}
    page.played.run(observed)
    assert "hold, ObserveOnly: " in status_of(page)
    told: list[str] = []

    class Onlooker:
        """Asks for the status at each step of a plan, as a person may."""

        def on_pass(self, report: PassReport) -> None: ...

        def on_record(self, record: PlanRecord) -> None:
            if record.state is PlanState.APPLYING:
                told.append(" ".join(status_of(page).split()))

    page.played.loop.listener = Audience((page.watcher, Onlooker()), print)
    page.played.run(SPECS)
    (plan,) = page.get("plans")["plans"]
    assert told
    for text in told:
        assert f"words (managed): plan {plan['id']}: is being applied: " in text
        assert "hold, " not in text


def placement_column(text: str, heading: str, after: str) -> str:
    """All of one column of the last table, up to the next one, without the ends of its lines."""
    headings, *rows = text.split("Placement (* stateful)")[1].splitlines()[1:]
    start, end = headings.index(heading), headings.index(after) if after else None
    return "".join(row[start:end].replace(" ", "") for row in rows)


def test_status_as_json_is_what_the_api_says(operator: Operator) -> None:
    document: dict[str, Any] = json.loads(operator.run("status", "-o", "json"))
    (cluster,) = document["clusters"]
    assert cluster["name"] == "nimbus:6627"
    assert cluster["view"] == operator.page.get("view")
    assert cluster["plans"] == operator.page.get("plans")["plans"]


def test_an_operator_that_manages_nothing_yet_is_an_empty_list_for_programs() -> None:
    trouble = ""
    server, where = open_page(Api(dict, trouble=lambda: trouble), PageAddress(0))
    try:
        for_people = RUNNER.invoke(app, ["status", "--url", where.url])
        assert (for_people.exit_code, for_people.stdout) == (1, "")
        assert "no Storm cluster is managed yet" in for_people.stderr
        for_programs = RUNNER.invoke(app, ["status", "-o", "json", "--url", where.url])
        assert (for_programs.exit_code, for_programs.stderr) == (0, "")
        assert json.loads(for_programs.stdout) == {"version": 1, "clusters": []}
        one_that_is_named = RUNNER.invoke(app, ["status", "-o", "json", "--cluster", "blue", "--url", where.url])
        assert (one_that_is_named.exit_code, one_that_is_named.stdout) == (1, "")
        assert "--cluster is 'blue': no Storm cluster is managed yet" in one_that_is_named.stderr
        trouble = "another replica leads"
        in_trouble = RUNNER.invoke(app, ["status", "-o", "json", "--url", where.url])
        assert (in_trouble.exit_code, in_trouble.stdout) == (1, "")
        assert in_trouble.stderr == "storm-operator status: another replica leads\n"
        for command in (["status"], ["explain", "words"]):
            with_name = RUNNER.invoke(app, [*command, "--cluster", "nimbus:6627", "--url", where.url])
            assert with_name.stderr == f"storm-operator {command[0]}: another replica leads\n"
    finally:
        server.shutdown()
        server.server_close()


def test_explain_says_why_in_words_and_as_json(operator: Operator) -> None:
    text = " ".join(operator.run("explain", "words").split())
    document = json.loads(operator.run("explain", "words", "-o", "json"))
    assert document["headline"] in text
    for part in document["parts"]:
        assert part["title"] in text
        assert all(sentence in text for sentence in part["sentences"])


def test_explain_says_why_a_number_of_executors_waits(operator: Operator) -> None:
    watcher = operator.clusters["nimbus:6627"]
    (topology,) = watcher.seen.view.topologies
    held = HeldResize({"split": 5}, Hold(HoldReason.OBSERVE_ONLY, "mode is Observe"))
    watcher.on_held_resizes({topology.id: held})
    try:
        assert "It waits (ObserveOnly): mode is Observe." in operator.run("explain", "words")
        document = json.loads(operator.run("explain", "words", "-o", "json"))
        assert document["held_resize"]["executors"] == {"split": 5}
    finally:
        watcher.on_held_resizes({})


def test_a_topology_that_is_not_there_is_answered_with_those_that_are(operator: Operator) -> None:
    assert "there is no topology 'wrods': there are words" in operator.run("explain", "wrods", exit_code=1)


def test_a_cluster_that_is_not_there_likewise(operator: Operator) -> None:
    words = "--cluster is 'other': one of nimbus:6627 is right"
    assert words in operator.run("status", "--cluster", "other", exit_code=1)


def test_one_that_runs_on_two_clusters_must_be_told_apart(operator: Operator) -> None:
    operator.clusters["other:6627"] = page_scene(passes=1).watcher
    try:
        assert "say which with --cluster" in operator.run("explain", "words", exit_code=1)
        assert "words" in operator.run("explain", "words", "--cluster", "other:6627")
        assert operator.run("status").count("Placement") == 2
    finally:
        del operator.clusters["other:6627"]


def test_a_cluster_of_which_nothing_is_known_yet_hides_none_of_the_others(operator: Operator) -> None:
    operator.clusters["another:6627"] = page_scene(passes=0).watcher
    try:
        done = RUNNER.invoke(app, ["status", "--url", operator.url], env={"COLUMNS": "200"})
        assert (done.exit_code, done.stdout.count("Placement")) == (1, 1)
        assert done.stderr == "storm-operator status: another:6627: no pass has been made yet: ask again in a moment\n"
        for_programs = RUNNER.invoke(app, ["status", "-o", "json", "--url", operator.url])
        assert [one["name"] for one in json.loads(for_programs.stdout)["clusters"]] == ["nimbus:6627"]
        assert for_programs.exit_code == 1
    finally:
        del operator.clusters["another:6627"]


def test_nobody_there_is_one_clear_message() -> None:
    done = RUNNER.invoke(app, ["status", "--url", "http://127.0.0.1:9"])
    assert done.exit_code == 1
    assert "no operator answers at http://127.0.0.1:9" in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_nobody_at_a_host_that_can_be_none_is_the_same_message(host: str) -> None:
    done = RUNNER.invoke(app, ["status", "--url", f"http://{host}"])
    assert done.exit_code == 1
    assert f"no operator answers at http://{host}" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b'{"status": "ok"}'),
        (200, b"[]"),
        (200, b'{"clusters": ["blue"], "trouble": ""}'),
        (200, b"<html>"),
        (404, b'["x"]'),
        (404, b'{"detail": "Not Found"}'),
    ],
)
@pytest.mark.parametrize("command", [("status",), ("explain", "words")])
def test_whatever_else_answers_is_said_to_be_no_operator(command: tuple[str, ...], status: int, body: bytes) -> None:
    with serving(lambda _: (status, body)) as url:
        done = RUNNER.invoke(app, [*command, "--url", url.replace("//", "//reader:secret@")], env={"COLUMNS": "200"})
    words = f"what answers at {url} is no storm-operator: --url must be where it serves its page"
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", f"storm-operator {command[0]}: {words}\n")


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_no_proxy_is_asked_for_an_operator_on_this_machine(
    operator: Operator, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()

    def proxy(path: str) -> tuple[int, bytes]:
        asked.append(path)
        return 502, b"<html>"

    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with serving(proxy) as url:
        for variable in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(variable, url)
        done = RUNNER.invoke(app, ["status", "--url", operator.url.replace("127.0.0.1", name)])
        assert (done.exit_code, asked) == (0, [])
        elsewhere = RUNNER.invoke(app, ["status", "--url", "http://operator.example:8088"])
    assert "is no storm-operator" in " ".join(elsewhere.output.split())
    assert asked == ["/api/v1/clusters"]


@pytest.mark.parametrize("command", [("status",), ("explain", "words")])
@pytest.mark.parametrize("url", ["127.0.0.1:8088", "localhost:8088", "operator", ""])
def test_a_forgotten_scheme_is_not_told_as_an_operator_that_does_not_answer(command: tuple[str, ...], url: str) -> None:
    done = RUNNER.invoke(app, [*command, "--url", url])
    assert done.exit_code == 1
    assert f"--url is {url!r}: it must begin with http:// or https://" in done.output


def test_brackets_and_colons_in_names_are_shown_as_they_stand(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,) = json.loads(operator.run("status", "-o", "json"))["clusters"]
    found["view"]["topologies"][0]["name"] = "wc[/blue][b] :key:"
    monkeypatch.setattr(cli_status, "_status_of", lambda *_: found)
    assert operator.run("status").count("wc[/blue][b] :key:") >= 3


def test_answers_that_cannot_be_written_are_a_sentence(operator: Operator) -> None:
    for command in (["status"], ["status", "-o", "json"], ["explain", "words"]):
        done = run_on_full_disk("storm_operator", *command, "--url", operator.url)
        words = f"storm-operator {command[0]}: the output cannot be written: No space left on device\n"
        assert (done.returncode, done.stderr) == (1, words)
