"""`make demo-k8s`: Storm's own scheduler against storm-operator, through Helm and kubectl, on a real node made here.

Shows what a user of kubectl sees, and writes report.json: the figures before and after, the plans, the pods' CPU.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import typer
from eventually import eventually
from rich.console import Console
from rich.table import Table

from demo_load_step import load_step_table, passes_since, rate_file, set_rate, summary, watch_load_rise
from kube_cluster import KubeCluster
from kube_cluster.binaries import NODE, ensure_programs, program_path
from kube_cluster.images import build_image
from kube_cluster.node.pod_distance import distance_between
from storm_on_node import NAMESPACE, StormOnNode, word_count
from storm_operator.demo.settled import has_settled
from storm_operator.local.storm_config import FEW_CORES

IMAGES = {"operator": "localhost/storm-operator:dev", "storm": "localhost/storm:dev"}
MACHINES = 4
ONE_WAY_MS = 2.0
"""Between two supervisors' pods, as between the machines of `make demo`."""
FIGURES = ("latency p50, ms", "tuples between supervisors, per second", "throughput, tuples per second")
LOOK_SECONDS = 5.0
STEADY_SECONDS = 30.0
SETTLING_LIMIT_SECONDS = 180.0
LOAD_STEP_SECONDS = 80.0
"""Enough for a plan, should one be needed, and for what its restarted workers take to be quick again."""
NAMES = ("words", "more-words")
RISING = NAMES[0]
"""Whose load rises, and falls again."""
BASE_RATE, HIGH_RATE = 60, 150
SPREAD = ("--workers", "3", "--parallelism", "split=2,count=3")
"""With two workers every other tree has its acker where its last words come from: half of them seem to take no way."""
UNREADY = ("Ready", "False")
CPU_MICROS = "count=200"
"""Of the topology whose load rises: enough that its pod's CPU matters."""


def main(output: Path = Path("build/demo-k8s"), minutes: float = 6.0) -> None:
    """Play it and leave the report in `output`. Everything that was started is removed again."""
    console = Console()
    first = "two images, Kubernetes and Helm come first: minutes where not yet built, some five for the images alone"
    console.print(first, soft_wrap=True)
    measured_seconds = max(30.0, minutes * 60.0 / 5)
    with console.status("") as spinner:

        def say(what: str) -> None:
            """As long as it lasts in a terminal, else on a line."""
            if console.is_terminal:
                spinner.update(what)
            else:
                console.print(what, soft_wrap=True)

        archives = [build_image(target, tag, say) for target, tag in IMAGES.items()]
        ensure_programs((*NODE, "helm"), say)
        say("starting a Kubernetes node")
        with KubeCluster("demo-k8s", node=True) as kube:
            console.print(how_to_look(kube.kubeconfig), soft_wrap=True, highlight=False, markup=False)
            for archive in archives:
                say(f"loading {archive.name}")
                kube.load_image(archive)
            say("helm install storm, helm install storm-operator")
            storm = StormOnNode(kube)
            storm.install(MACHINES, waits=FEW_CORES)
            with distance_between(addresses_of(storm.supervisors()), ONE_WAY_MS, kube.layout.mark):
                report = _play(storm, measured_seconds, console, say)
            storm.uninstall()
    output.mkdir(parents=True, exist_ok=True)
    (output / "report.json").write_text(json.dumps(report, indent=2), encoding="utf-8")
    console.print(_table(report))
    for note in report["notes"]:
        console.print(note, soft_wrap=True)
    console.print(f"report: {output / 'report.json'}")


def how_to_look(kubeconfig: Path) -> str:
    """What to enter in another terminal as long as the cluster is there."""
    return f"""to look at it meanwhile, in another terminal, once the charts are installed:
  export KUBECONFIG={kubeconfig} PATH=$PATH:{program_path("kubectl").parent}
  kubectl get stormtopologies -A
  kubectl get stormrebalances -A -o wide"""


def addresses_of(pods: Sequence[Mapping[str, Any]]) -> list[str]:
    """The pods' IP addresses."""
    return [pod["status"]["podIP"] for pod in pods]


def _play(storm: StormOnNode, measured_seconds: float, console: Console, say: Any) -> dict[str, Any]:
    say("kubectl apply: two topologies under Storm's own scheduler; the operator only watches")
    for name in NAMES:
        rising = ("--rate-file", rate_file(name), "--cpu-micros", CPU_MICROS) if name == RISING else ()
        scheduling = {"mode": "Observe", "peakSeconds": 15, "roomPeakSeconds": 15}
        storm.apply(word_count(name, BASE_RATE, (*SPREAD, *rising), scheduling=scheduling))
    for name in NAMES:
        _wait(storm, partial(storm.is_ready, name), f"{name} runs and is measured")
    notes = _settle(storm, "Storm's own scheduler", say)
    baseline = _measure(storm, measured_seconds, say)
    _show(storm, console, "under Storm's own scheduler")

    say("kubectl patch: mode Enforce; the operator takes over")
    began = time.monotonic()
    for name in NAMES:
        storm.patch(name, {"scheduling": {"mode": "Enforce"}})
    _wait(storm, lambda: storm.rebalances("Verified"), "a plan is in force and verified")
    takeover_seconds = time.monotonic() - began
    notes += _settle(storm, "storm-operator", say)
    managed = _measure(storm, measured_seconds, say)
    _show(storm, console, "managed by storm-operator")

    say(f"kubectl exec: the load of {RISING} rises from {BASE_RATE} to {HIGH_RATE} sentences a second")
    readings = watch_load_rise(storm, RISING, HIGH_RATE, max(LOAD_STEP_SECONDS, measured_seconds))
    console.print(load_step_table(readings, f"{RISING}: {HIGH_RATE} sentences a second instead of {BASE_RATE}"))

    say("the load falls again; kubectl patch: between one and four supervisors; those that host nothing go")
    set_rate(storm, RISING, BASE_RATE)
    for name in NAMES:
        storm.patch(name, {"supervisors": {"minimum": 1, "maximum": MACHINES}})
    _wait(storm, lambda: len(storm.supervisors()) < MACHINES, "empty supervisors are taken away")
    _show(storm, console, "after empty supervisors were taken away")
    return {
        "baseline": baseline,
        "managed": managed,
        "ratio": {figure: managed[figure] / baseline[figure] for figure in FIGURES if baseline[figure]},
        "notes": notes,
        "takeover_seconds": takeover_seconds,
        "load_step": summary(readings),
        "load_step_readings": [reading.as_json() for reading in readings],
        "plans": [{"spec": _short(body["spec"]), "status": body["status"]} for body in storm.all("stormrebalances")],
        "supervisors_at_end": len(storm.supervisors()),
        "cpu_limits_millicores": storm.wanted_millicores(),
    }


def _wait(storm: StormOnNode, condition: Callable[[], object], what: str) -> None:
    """Until it is so; ends the demo, with what the operator says of each topology, where that takes too long."""
    try:
        eventually(condition, what)
    except AssertionError as late:
        said = "".join(f"\n  {name}: {what_is_said(storm.status(name))}" for name in NAMES)
        raise SystemExit(f"{late}. A machine that is too busy may be why. The operator says:{said}") from None


def what_is_said(status: Mapping[str, Any]) -> str:
    """Why a StormTopology is as it is, and why nothing was done last, in its own words."""
    unready = [each["message"] for each in status.get("conditions", ()) if (each["type"], each["status"]) == UNREADY]
    sentences = [status.get("message"), *unready, status.get("lastHold", {}).get("message")]
    return " ".join(dict.fromkeys(filter(None, sentences))) or "nothing yet"


def _settle(storm: StormOnNode, who: str, say: Any) -> list[str]:
    """Wait until latency falls no more; where that takes too long, a sentence says so."""
    say(f"{who}: waiting until latency falls no more")
    time.sleep(STEADY_SECONDS)
    began, until = _newest(storm), time.monotonic() + SETTLING_LIMIT_SECONDS
    while time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
        if has_settled([point[0] if point else None for point in _points(storm, began)]):
            return []
    return [f"Latency was still falling, or not known, when {who} was measured: it may be less."]


def _measure(storm: StormOnNode, seconds: float, say: Any) -> dict[str, float]:
    """Medians over the operator's passes, which are measured anew each; latencies are those of the slower topology.

    A status would not do: its figures are written once a minute at most.
    """
    say(f"measuring for {seconds:.0f} s")
    began = _newest(storm)
    time.sleep(seconds)
    points = [point for point in _points(storm, began) if point is not None]
    if not points:
        raise SystemExit(
            f"nothing was compared: in {seconds:.0f} s the operator never knew latency and traffic of both topologies, "
            "as on a machine that is too busy; try again with nothing beside it"
        )
    return dict(zip(FIGURES, (statistics.median(column) for column in zip(*points, strict=True)), strict=True))


def _newest(storm: StormOnNode) -> int:
    """The number of the operator's last pass."""
    return int(passes_since(storm)[-1]["number"])


def _points(storm: StormOnNode, since: int) -> list[tuple[float, ...] | None]:
    """`FIGURES` of each pass after that one; None where any is unknown."""
    ids = [storm.status(name)["topologyId"] for name in NAMES]
    found: list[tuple[float, ...] | None] = []
    for one in passes_since(storm, since):
        own = [one["topologies"].get(topology_id, {}) for topology_id in ids]
        p50, acked = ([point.get(name) for point in own] for name in ("latency_p50_ms", "acked_per_second"))
        between = one["between_supervisors_tuples_per_second"]
        is_known = between is not None and None not in p50 and None not in acked
        found.append((max(p50), between, sum(acked)) if is_known else None)
    return found


def _show(storm: StormOnNode, console: Console, title: str) -> None:
    console.rule(title)
    for kind in ("stormtopologies", "stormrebalances", "pods"):
        console.print(f"$ kubectl get {kind} -n {NAMESPACE}", style="bold")
        console.print(storm.kube.kubectl("get", kind, "-n", NAMESPACE), highlight=False, soft_wrap=True)


def _short(spec: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key != "plan"}


def _table(report: dict[str, Any]) -> Table:
    table = Table(title=f"the same topologies on the same pods, {ONE_WAY_MS:g} ms from each other")
    for heading in ("", "Storm's Even", "storm-operator", "ratio"):
        table.add_column(heading)
    for figure in FIGURES:
        ratio = report["ratio"].get(figure)
        before, after = (f"{report[phase][figure]:.1f}" for phase in ("baseline", "managed"))
        table.add_row(figure, before, after, "" if ratio is None else f"{ratio:.2f}x")
    table.add_row("supervisor pods", str(MACHINES), str(report["supervisors_at_end"]), "")
    return table


if __name__ == "__main__":
    typer.run(main)
