"""Nothing stays behind: no process, namespace, interface or cgroup, however the cluster ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from storm_operator.local.cgroups import cluster_cgroup, usable_hierarchy
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.lifecycle import take_down, wait_until
from storm_operator.local.network import host_device
from storm_operator.local.processes import marked_processes
from storm_operator.local.rehearsal import submit_words
from storm_operator.local.spec import LocalClusterError, LocalClusterSpec
from storm_operator.local.state_file import read_layout, state_file

pytestmark = pytest.mark.functional

SECONDS = 240.0
OWNER = """
import sys, time
from pathlib import Path
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.rehearsal import submit_words
from storm_operator.local.spec import LocalClusterSpec
name, subnet, work_dir = sys.argv[1:]
spec = LocalClusterSpec(name=name, subnet=subnet, machines=2, agents=False, work_dir=Path(work_dir))
LocalCluster(spec).up(owned=True)
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture
def spec(tmp_path: Path) -> Iterator[LocalClusterSpec]:
    place = os.getpid() * 4 + 2
    name = f"end{os.getpid() % 1_000_000}"
    subnet = f"10.{100 + place // 250 % 100}.{place % 250}.0/24"
    yield LocalClusterSpec(name=name, subnet=subnet, machines=2, agents=False, work_dir=tmp_path / "storm")
    take_down(name)


def left_behind(name: str) -> list[str]:
    """Everything on this machine that bears the cluster's name."""
    found = [f"process {pid}" for pid in marked_processes(name)]
    namespaces = Path("/run/netns")
    if namespaces.is_dir():
        found += [f"namespace {path.name}" for path in namespaces.iterdir() if path.name.startswith(f"storm.{name}.")]
    if Path("/sys/class/net", host_device(name)).exists():
        found.append("interface")
    hierarchy = usable_hierarchy()
    if hierarchy:
        relative = cluster_cgroup(hierarchy, name).relative_to(hierarchy.control)
        found += [f"cgroup {root / relative}" for root in hierarchy.roots() if (root / relative).exists()]
    if read_layout(name):
        found.append("state file")
    return found


def page(url: str) -> str:
    try:
        return requests.get(url, timeout=5).text
    except requests.RequestException:
        return ""


def test_down_leaves_nothing(spec: LocalClusterSpec) -> None:
    with LocalCluster(spec) as cluster:
        assert len(left_behind(spec.name)) > 5
        assert cluster.processes()
    assert left_behind(spec.name) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_keeper_cleans_up_by_itself_when_told_to_end(spec: LocalClusterSpec, number: int) -> None:
    cluster = LocalCluster(spec)
    cluster.up()
    assert cluster.keeper_pid
    os.kill(cluster.keeper_pid, number)
    wait_until(lambda: left_behind(spec.name) == [], SECONDS, f"left behind: {left_behind(spec.name)}; not removed")


def test_after_kill_9_of_the_keeper_down_sweeps(spec: LocalClusterSpec) -> None:
    cluster = LocalCluster(spec)
    cluster.up()
    cluster.wait_ready()
    submit_words(cluster.layout, "words", workers=1)
    wait_until(lambda: len(cluster.workers()) == 1, SECONDS, "no worker was started")
    worker = cluster.workers()[0].pid
    keeper, daemons = cluster.keeper_pid, frozenset(cluster.pids.values())
    assert keeper
    os.kill(keeper, signal.SIGKILL)
    # The kernel ends the daemons with their keeper; workers, which are their supervisor's children, wait for `down`.
    wait_until(lambda: not daemons & frozenset(marked_processes(spec.name)), SECONDS, "daemons outlived their keeper")
    assert worker in marked_processes(spec.name)
    with pytest.raises(LocalClusterError, match="its keeper does not run"):
        cluster.daemons()
    LocalCluster(spec).down()
    assert left_behind(spec.name) == []


def test_after_kill_9_of_the_keeper_up_begins_afresh(spec: LocalClusterSpec) -> None:
    cluster = LocalCluster(spec)
    cluster.up()
    assert cluster.keeper_pid
    os.kill(cluster.keeper_pid, signal.SIGKILL)
    wait_until(lambda: not marked_processes(spec.name), SECONDS, "daemons outlived their keeper")
    with LocalCluster(spec) as again:
        assert again.keeper_pid
    assert left_behind(spec.name) == []


def test_an_owned_cluster_goes_when_its_owner_is_killed(spec: LocalClusterSpec) -> None:
    command = [sys.executable, "-c", OWNER, spec.name, spec.subnet, str(spec.work_dir)]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "up\n"
    assert left_behind(spec.name)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    wait_until(lambda: left_behind(spec.name) == [], SECONDS, "the cluster outlived its owner")


def test_down_sweeps_a_cluster_whose_state_file_is_broken(spec: LocalClusterSpec) -> None:
    LocalCluster(spec).up()
    state_file(spec.name).write_text("")
    with pytest.raises(LocalClusterError, match="up already"):
        LocalCluster(spec).up()
    LocalCluster(spec).down()
    assert left_behind(spec.name) == []


def test_down_of_what_is_not_up_does_no_harm(spec: LocalClusterSpec) -> None:
    LocalCluster(spec).down()
    assert left_behind(spec.name) == []
    with pytest.raises(LocalClusterError, match="no cluster"):
        LocalCluster.attach(spec.name)


def test_an_up_that_fails_half_way_leaves_nothing(spec: LocalClusterSpec, tmp_path: Path) -> None:
    broken = replace(spec, plugin_jar=tmp_path / "absent.jar")
    with pytest.raises((LocalClusterError, OSError)):
        LocalCluster(broken).up()
    assert left_behind(spec.name) == []


def test_on_loopback_everything_runs_and_says_what_is_not_emulated(spec: LocalClusterSpec) -> None:
    with LocalCluster(replace(spec, agents=True), isolate=False) as cluster:
        assert cluster.machines[0].namespace is None
        assert any("no delay" in sentence for sentence in cluster.not_emulated)
        with pytest.raises(LocalClusterError, match="loopback"):
            cluster.set_delay("machine-1", "machine-2", 1.0)
        assert any("CPU limits are not enforced" in sentence for sentence in cluster.not_emulated)
        for host, url in cluster.agent_urls.items():
            wait_until(lambda url=url: "--shared-cgroup" in page(url), SECONDS, f"the agent of {host} did not say why")  # type: ignore[misc]
    assert left_behind(spec.name) == []
