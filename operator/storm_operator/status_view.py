"""The API's documents as tables for a terminal, of 80 columns too: names fold, figures are whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from storm_operator.core.decision import HoldReason
from storm_operator.core.host_names import short_names
from storm_operator.core.model import name_of_topology
from storm_operator.core.wording import EFFECT_UNKNOWN, NO_PLAN_YET, counted, figure, state_in_words

Document = Mapping[str, Any]

BAR_COLUMNS = 8
NEARLY_FULL = 0.9
MOST_COMPONENTS = 6
QUIET_PERIODS, QUIET_SECONDS = 3, 30.0
"""As the page has them."""
BAD = ("ClusterUnreachable", "MetricsIncomplete", "MetricsStale", "TooLittleCapacity", "Infeasible")


def status_view(
    name: str,
    view: Document,
    plans: Sequence[Document],
    pass_age_seconds: float | None = None,
    *,
    approval: str = "",
    url: str = "",
) -> RenderableType:
    """One cluster: its topologies, the plans that matter, and where everything runs.

    `pass_age_seconds` is how long ago the last pass was, None where nobody knows. `approval` says how plans are
    approved on the page at `url`, as the API has it (see `Clusters`); empty where nobody knows.
    """
    parts: list[RenderableType] = [Rule(f"{name}, {_time(view['at_seconds'])}", align="left", style="dim")]
    parts += [
        Text(f"note: {note}", style="yellow")
        for note in (
            *_quiet(view, pass_age_seconds),
            *_unseen(view, pass_age_seconds),
            *view["problems"],
            *view.get("refused", ()),  # an operator of before says nothing of it
        )
    ]
    parts += [_topologies(view), Text(), *_last_decisions(view), _traffic(view)]
    parts += [*_plans(plans, view["decisions"], approval, url), Text(), _placement(view)]
    return Group(*parts)


def explanation_view(explanation: Document) -> RenderableType:
    """The headline, and each part under its title."""
    parts: list[RenderableType] = [
        Text.assemble((explanation["name"], "bold"), f", {_time(explanation['at_seconds'])}"),
        Text(explanation["headline"], style="cyan"),
    ]
    for part in explanation["parts"]:
        parts.append(Text(f"\n{part['title']}", style="bold"))
        parts += [Padding(Text(sentence), (0, 0, 0, 2)) for sentence in part["sentences"]]
    return Group(*parts)


def _quiet(view: Document, pass_age_seconds: float | None) -> tuple[str, ...]:
    """Since when there was no pass, where that is longer than passes take: all that is told is of then."""
    longest = max(QUIET_SECONDS, QUIET_PERIODS * view["period_seconds"])
    if pass_age_seconds is None or pass_age_seconds <= longest:
        return ()
    return (f"the loop has made no pass for {pass_age_seconds:.0f} s: all this is of then; its log may say why",)


def _unseen(view: Document, pass_age_seconds: float | None) -> tuple[str, ...]:
    """Since when the cluster could not be seen: all figures are of then, and only the decisions of now.

    Their age is that of the asking, less what the last pass took before it gave up.
    """
    measured_at, at = view["measured_at_seconds"], view["at_seconds"]
    if measured_at is None:
        return ("the cluster has not been seen yet",)
    if measured_at >= at:
        return ()
    age = at - measured_at + (pass_age_seconds or 0.0)
    return (f"all figures are at least {age:.0f} s old: the cluster could not be seen since {_time(measured_at)}",)


def _topologies(view: Document) -> Table:
    table = Table(box=None, pad_edge=False, title="Topologies", title_justify="left", title_style="bold")
    table.add_column("topology", overflow="fold", vertical="bottom")
    for heading in ("workers", "super-\nvisors", "p50 ms", "p99 ms", "acked/s", "failed/s", "cross"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in view["topologies"]:
        table.add_row(
            one["name"],
            str(one["workers"]),
            str(one["supervisors"]),
            *(figure(one[name]) for name in ("latency_p50_ms", "latency_p99_ms", "acked_per_second")),
            figure(one["failed_per_second"]),
            _share(one["inter_supervisor_tuples_per_second"], one["tuples_per_second"]),
        )
    return table


def _last_decisions(view: Document) -> list[Text]:
    """A line for each topology: sentences, which a column of a narrow terminal would make unreadable. A decision about
    several says its sentence once.

    Where no topology is known, what was decided about everything; and what of those that the last pass did not know.
    """
    known, decisions = {one["id"] for one in view["topologies"]}, view["decisions"]
    new = {one: None for decision in decisions for one in decision["topologies"] if one not in known}
    if not known and not new:
        return [Text.assemble(("everything", "bold"), ": ", _decision(_decision_about("", decisions), None))]
    rows = [
        *((one["id"], one["name"], _state(one, view)) for one in view["topologies"]),
        *((one, name_of_topology(one), "new") for one in new),
    ]
    lines, told = [], dict[int, str]()
    for topology_id, name, state in rows:
        found = _decision_about(topology_id, decisions)
        lines.append(Text.assemble((name, "bold"), f" ({state}): ", _decision(found, told.get(id(found)))))
        told.setdefault(id(found), name)
    return lines


def _state(topology: Document, view: Document) -> str:
    if topology["name"] in view.get("paused", ()):  # an operator of before says nothing of it
        return "paused"
    if not topology["is_managed"]:
        return "not managed"
    if topology["is_held_to_limits"]:
        return "managed, limits held"
    # What runs nowhere is held to nothing; and an operator of before says nothing of what is only asked for.
    is_unheld = topology["workers"] and topology.get("asks_for_limits")
    return "managed, limits asked for but not held" if is_unheld else "managed"


def _decision_about(topology_id: str, decisions: Sequence[Document]) -> Document | None:
    """That nothing is managed is none about a topology that is there: it is told what any other is that is not."""
    own = [one for one in decisions if topology_id in one["topologies"]]
    skipped = HoldReason.NOTHING_TO_MANAGE if topology_id else None
    of_all = (one for one in decisions if not one["topologies"] and one["reason"] != skipped)
    return next(iter(own), next(of_all, None))


def _decision(found: Document | None, told_with: str | None) -> Text:
    """`told_with`: the topology whose line has the sentence."""
    if found is None:
        return Text("nothing is decided about it", style="dim")
    sentence = f": {found['message']}" if told_with is None else f", with {told_with}"
    if found["kind"] == "plan":
        return Text.assemble((f"plan {found['plan_id']}", "green"), sentence)
    style = "red" if found["reason"] in BAD else "green" if found["reason"] == "NoChange" else "yellow"
    return Text.assemble((f"hold, {found['reason']}", style), sentence)


def _traffic(view: Document) -> Text:
    traffic = view["traffic"]
    levels = ("in_worker", "between_workers", "between_supervisors")
    rates = {level: traffic[f"{level}_tuples_per_second"] for level in levels}
    if None in rates.values():
        why = "not all executors are measured" if view["workers"] else "no executor has a place"
        return Text(f"\nTuples/s: unknown, {why}")
    total = sum(rates.values())
    words = [f"{level.replace('_', ' ')} {figure(rate)} ({_share(rate, total)})" for level, rate in rates.items()]
    return Text(f"\nTuples/s: {', '.join(words)}")


def _plans(plans: Sequence[Document], decisions: Sequence[Document], approval: str, url: str) -> list[RenderableType]:
    """Those that wait for a person or are under way, and the last one that has ended; without what `decisions` say."""
    if not plans:
        return [Text(f"Plans: {NO_PLAN_YET}")]
    lines: list[RenderableType] = []
    told = {one["plan_id"] for one in decisions}
    ended = False
    for plan in plans:
        is_open = plan["state"] in ("Proposed", "Applying", "Settling")
        if not is_open and ended:
            continue
        ended = ended or not is_open
        state = (
            "waits for approval" if plan["waits_for_approval"] else state_in_words(plan["state"], plan["approved_by"])
        )
        is_unknown = plan.get("effect_is_unknown", False)  # an operator of before says nothing of it
        if is_unknown:
            state = f"{state}, {EFFECT_UNKNOWN}"
        style = "bold yellow" if plan["waits_for_approval"] or is_unknown else "bold"
        sentence = plan["message"] or ("" if plan["id"] in told else plan["reason"])
        where = _where_to_approve(plan["id"], approval, url) if plan["waits_for_approval"] else ""
        further = "".join(f"; {words}" for words in (sentence, where) if words)
        lines.append(Text.assemble(f"Plan {plan['id']}: ", (state, style), further))
    return lines


def _where_to_approve(plan_id: str, approval: str, url: str) -> str:
    """By the Kubernetes token only an operator on Kubernetes goes, and without it only one that is not there."""
    annotate = f"kubectl annotate stormrebalance {plan_id} storm-operator.dev/rebalance=approve"
    return {
        "open": f"approve it on the page: {url}",
        "token": f"approve it on the page: {url}, or with {annotate}",
        "off": f"approve it with {annotate}, or without Kubernetes on the page, with standalone --page-approval",
    }.get(approval, "")


def _placement(view: Document) -> Table:
    """A row for each worker, under its supervisor."""
    stateful = {
        (topology["id"], one["name"])
        for topology in view["topologies"]
        for one in topology["components"]
        if one["stateful"]
    }
    names = {topology["id"]: topology["name"] for topology in view["topologies"]}
    held: dict[int, Counter[tuple[str, str]]] = {}
    for executor in view["executors"]:
        if executor["worker"] is not None:
            held.setdefault(executor["worker"], Counter())[executor["topology"], executor["component"]] += 1
    table = Table(box=None, pad_edge=False, title="Placement (* stateful)", title_justify="left", title_style="bold")
    table.add_column("supervisor", overflow="fold")
    table.add_column("CPU", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("port", no_wrap=True)
    table.add_column("topology", overflow="fold")
    table.add_column("executors", overflow="fold")
    hosts = short_names([supervisor["host"] for supervisor in view["supervisors"]])
    for at, supervisor in enumerate(view["supervisors"]):
        host = f"{hosts[supervisor['host']]}{' (leaving)' if supervisor.get('is_leaving') else ''}"
        first: tuple[RenderableType, ...] = (host, _bar(supervisor), _cpu(supervisor))
        workers = [number for number, worker in enumerate(view["workers"]) if worker["supervisor"] == at]
        if not workers:
            room = "empty" if supervisor.get("is_leaving") else f"empty, {supervisor['slots']} slots"
            table.add_row(*first, "", "", Text(room, style="dim"))
        for number in workers:
            worker = view["workers"][number]
            content = _content(held.get(number, Counter()), stateful)
            table.add_row(*first, str(worker["port"]), names.get(worker["topology"], worker["topology"]), content)
            first = ("", "", "")
    waiting = [one for one in view["executors"] if one["worker"] is None]
    if waiting:
        table.add_row("no place", "", "", "", "", Text(counted(len(waiting), "executor"), style="red"))
    return table


def _content(counts: Counter[tuple[str, str]], stateful: set[tuple[str, str]]) -> str:
    words = [
        f"{component}{'*' if (topology, component) in stateful else ''}" + (f" x{count}" if count > 1 else "")
        for (topology, component), count in sorted(counts.items())
    ]
    more = f" and {len(words) - MOST_COMPONENTS} more components" if len(words) > MOST_COMPONENTS else ""
    return ", ".join(words[:MOST_COMPONENTS]) + more


def _bar(supervisor: Document) -> RenderableType:
    used, most = supervisor["cpu_used_millicores"], supervisor["cpu_capacity_millicores"]
    if used is None or not most:
        return Text("")
    style = "red" if used >= NEARLY_FULL * most else "cyan"
    return ProgressBar(most, min(used, most), width=BAR_COLUMNS, complete_style=style, finished_style=style)


def _cpu(supervisor: Document) -> str:
    return f"{figure(supervisor['cpu_used_millicores'])} of {figure(supervisor['cpu_capacity_millicores'])} m"


def _share(part: float | None, whole: float | None) -> str:
    if part is None or whole is None:
        return "unknown"
    return f"{100 * part / whole:.0f}%" if whole > 0.0 else "-"


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
