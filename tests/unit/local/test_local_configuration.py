"""storm.yaml, command lines, class lists, and when a jar is built again."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from storm_operator.local import daemons
from storm_operator.local.build import is_older
from storm_operator.local.class_data import fingerprint, merged_class_list
from storm_operator.local.daemons import CLUSTER_MARK, MACHINE_MARK, all_daemons
from storm_operator.local.distribution import make_storm_home
from storm_operator.local.lifecycle import preferred_port
from storm_operator.local.spec import ClusterLayout, LocalClusterSpec, lay_out
from storm_operator.local.status import used_millicores
from storm_operator.local.storm_config import common_conf, machine_conf


def layout(**spec: object) -> ClusterLayout:
    return lay_out(LocalClusterSpec(machines=2, **spec), Path("/r"), True, 6627, 2181)  # type: ignore[arg-type]


def test_without_the_plugin_storm_keeps_its_own_scheduler() -> None:
    assert not [key for key in common_conf(layout()) if key.startswith(("storm.scheduler", "storm_operator"))]


def test_with_the_plugin_its_keys_are_there() -> None:
    conf = common_conf(layout(plugin_jar=Path("/p.jar"), fallback="resource-aware", exact_metrics=True))
    assert conf["storm.scheduler"] == "dev.stormoperator.scheduler.PlanScheduler"
    assert conf["storm_operator.fallback.scheduler"] == "resource-aware"
    assert conf["storm_operator.metrics.exact"] is True


def test_extra_settings_win_on_nimbus_and_on_machines() -> None:
    cluster = layout(extra_conf={"supervisor.cpu.capacity": 7.0, "nimbus.monitor.freq.secs": 9})
    assert common_conf(cluster)["nimbus.monitor.freq.secs"] == 9
    assert machine_conf(cluster, cluster.machines[0])["supervisor.cpu.capacity"] == 7.0


def test_nimbus_waits_for_a_starting_worker_as_long_as_its_supervisor() -> None:
    """Else it moves executors away while the JVM starts, which is then killed before Storm knows its process id."""
    cluster = layout()
    conf = machine_conf(cluster, cluster.machines[0])
    assert conf["nimbus.task.launch.secs"] >= conf["supervisor.worker.start.timeout.secs"] >= 120


def test_resource_aware_scheduling_sees_the_machines_capacity() -> None:
    cluster = layout(capacity_millicores=1500.0)
    assert machine_conf(cluster, cluster.machines[1])["supervisor.cpu.capacity"] == 150.0


@pytest.mark.parametrize(("fast", "expected"), [(True, True), (False, False)])
def test_workers_run_c2_unless_told_to_start_fast(fast: bool, expected: bool) -> None:
    assert ("-XX:TieredStopAtLevel=1" in common_conf(layout(fast_start=fast))["worker.childopts"]) is expected


def test_archives_are_used_by_the_jvms_that_they_are_for() -> None:
    cluster = replace(layout(), class_data={"worker": "-Xworker", "nimbus": "-Xnimbus"})
    assert "-Xworker" in common_conf(cluster)["worker.childopts"]
    commands = {daemon.name: daemon.command for daemon in all_daemons(cluster, None)}
    assert "-Xnimbus" in commands["nimbus"]
    assert not {"-Xworker", "-Xnimbus"} & set(commands["zookeeper"])


def test_options_of_workers_may_have_spaces_in_their_paths() -> None:
    """Storm cuts a text at each: no worker would start below such a home folder."""
    options = {"worker": "-XX:SharedArchiveFile=/home/ann lee/w.jsa", "log-writer": "-XX:SharedArchiveFile=/a b/l.jsa"}
    conf = common_conf(replace(layout(), class_data=options))
    assert options["worker"] in conf["worker.childopts"]
    assert options["log-writer"] in conf["topology.worker.logwriter.childopts"]
    assert isinstance(conf["worker.childopts"], list)


def test_every_daemon_bears_the_marks_by_which_strays_are_found() -> None:
    for daemon in all_daemons(layout(), ("agent",)):
        assert daemon.environment[CLUSTER_MARK] == "local"
        assert (MACHINE_MARK in daemon.environment) == ("machine" in daemon.name)


def test_agents_know_their_machine_and_their_peers() -> None:
    agents = [daemon for daemon in all_daemons(layout(), ("agent",)) if daemon.name.startswith("agent")]
    assert len(agents) == 2
    assert "10.77.0.12=10.77.0.12:9464" in agents[0].command
    assert "10.77.0.11=10.77.0.11:9464" not in agents[0].command


def test_agents_of_machines_without_a_cgroup_do_not_take_the_one_they_share_for_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(daemons, "usable_hierarchy", lambda: None)
    own = lay_out(LocalClusterSpec(machines=2), Path("/r"), True, 6627, 2181, cgroup_root=Path("/sys/x"))
    for cluster, told, not_told in ((own, "--cgroup", "--shared-cgroup"), (layout(), "--shared-cgroup", "--cgroup")):
        agents = [daemon for daemon in all_daemons(cluster, ("agent",)) if daemon.name.startswith("agent")]
        assert all(told in agent.command and not_told not in agent.command for agent in agents)


def test_class_lists_are_merged_without_numbers_and_foreign_loaders() -> None:
    first = "java/lang/Object id: 0\n@lambda-proxy A run ()V\nb/B id: 7 super: 0 source: file:/x.jar\n"
    second = "# comment\njava/lang/Object id: 3\njava/lang/String id: 1\n"
    assert merged_class_list([first, second]).split("\n") == [
        "java/lang/Object",
        "@lambda-proxy A run ()V",
        "java/lang/String",
        "",
    ]


def test_the_archives_fit_one_java_and_one_set_of_jars() -> None:
    jars = [("/a.jar", 1, 1), ("/b.jar", 2, 2)]
    assert fingerprint("17", jars) == fingerprint("17", reversed(jars))
    assert len({fingerprint("17", jars), fingerprint("21", jars), fingerprint("17", jars[:1])}) == 3


def test_a_jar_is_older_than_sources_that_changed_after_it(tmp_path: Path) -> None:
    source = tmp_path / "src" / "main" / "java" / "A.java"
    source.parent.mkdir(parents=True)
    for path in (tmp_path / "pom.xml", source):
        path.touch()
        os.utime(path, (100, 100))
    jar = tmp_path / "a.jar"
    assert is_older(jar, tmp_path)
    jar.touch()
    os.utime(jar, (200, 200))
    assert not is_older(jar, tmp_path)
    os.utime(source, (300, 300))
    assert is_older(jar, tmp_path)


def test_two_clusters_may_have_different_plugins(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for folder in ("lib", "lib-worker", "log4j2"):
        (cache / folder).mkdir(parents=True)
    plugin = tmp_path / "storm-plugin.jar"
    plugin.write_text("one")
    make_storm_home(tmp_path / "with", cache, plugin)
    make_storm_home(tmp_path / "without", cache, None)
    assert (tmp_path / "with" / "extlib" / "storm-plugin.jar").read_text() == "one"
    assert (tmp_path / "with" / "extlib-daemon" / "storm-plugin.jar").exists()
    assert list((tmp_path / "without" / "extlib").iterdir()) == []
    make_storm_home(tmp_path / "with", cache, None)
    assert list((tmp_path / "with" / "extlib").iterdir()) == []


def test_used_cpu_is_unknown_when_a_reading_is() -> None:
    assert used_millicores(1.0, 1.5, 0.5) == 1000.0
    assert used_millicores(None, 1.5, 0.5) is None


def test_clusters_of_different_names_look_for_ports_at_different_places() -> None:
    assert preferred_port(6627, "local") == 6627
    places = {preferred_port(6627, f"test{number}") for number in range(20)}
    assert len(places) > 10
    assert preferred_port(6627, "other") != preferred_port(6700, "other")
