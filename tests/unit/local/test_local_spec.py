"""What follows from a specification: addresses, ports, folders; and that the state file says it all."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from storm_operator.local.spec import (
    ClusterLayout,
    LocalClusterError,
    LocalClusterSpec,
    from_json,
    lay_out,
    namespace_of,
    to_json,
)


def layout(isolated: bool = True, **spec: object) -> ClusterLayout:
    return lay_out(
        LocalClusterSpec(**spec),  # type: ignore[arg-type]
        root=Path("/state/local"),
        isolated=isolated,
        nimbus_port=6627,
        zookeeper_port=2181,
        cgroup_root=Path("/sys/fs/cgroup/cpu/x/local") if isolated else None,
    )


def test_machines_have_addresses_from_11_on_and_the_host_is_1() -> None:
    cluster = layout(machines=3, subnet="10.88.1.0/24")
    assert cluster.host == "10.88.1.1"
    assert [machine.host for machine in cluster.machines] == ["10.88.1.11", "10.88.1.12", "10.88.1.13"]
    assert cluster.machines[0].agent_url == "http://10.88.1.11:9464/metrics"


def test_isolated_machines_use_the_same_ports() -> None:
    assert {machine.ports for machine in layout(slots_per_machine=2).machines} == {(6700, 6701)}


def test_on_loopback_no_port_is_used_twice_and_nothing_is_emulated() -> None:
    machines = layout(isolated=False, machines=4).machines
    ports = [port for machine in machines for port in (*machine.ports, machine.thrift_port)]
    assert len(set(ports)) == len(ports) == 4 * 5
    assert [machine.host for machine in machines[:2]] == ["127.77.0.11", "127.77.0.12"]
    assert {(machine.namespace, machine.cgroup) for machine in machines} == {(None, None)}


@pytest.mark.parametrize("isolated", [True, False])
def test_the_state_file_brings_back_the_same_layout(isolated: bool) -> None:
    before = layout(isolated, extra_conf={"topology.debug": True}, plugin_jar=Path("/x/storm-plugin.jar"))
    assert from_json(to_json(before)) == before


def test_a_state_file_of_another_version_is_refused() -> None:
    with pytest.raises(LocalClusterError, match="unknown version"):
        from_json('{"version": 2}')


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Capital"),
        ("name", "thirteen-long"),
        ("name", ""),
        ("name", "../up"),
        ("machines", 0),
        ("machines", 201),
        ("slots_per_machine", 0),
        ("capacity_millicores", 10),
        ("capacity_millicores", math.nan),
        ("capacity_millicores", math.inf),
        ("one_way_delay_ms", -1),
        ("one_way_delay_ms", math.nan),
        ("one_way_delay_ms", math.inf),
        ("subnet", "10.77.0.0/16"),
        ("subnet", "somewhere"),
        ("fallback", "zz"),
        ("fallback", ""),
        ("fallback", "org.example.My-Scheduler"),
    ],
)
def test_a_value_that_cannot_be_is_named_in_the_message(field: str, value: object) -> None:
    with pytest.raises(LocalClusterError, match=field):
        LocalClusterSpec(**{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("fallback", ["default", "resource-aware", "org.apache.storm.scheduler.EvenScheduler"])
def test_a_fallback_is_one_of_the_plugins_names_or_a_class(fallback: str) -> None:
    assert LocalClusterSpec(fallback=fallback).fallback == fallback


def test_no_clusters_namespaces_begin_with_anothers() -> None:
    assert not namespace_of("a-b", "machine-1").startswith(namespace_of("a", ""))


def test_a_machine_is_found_by_name_and_by_host() -> None:
    cluster = layout()
    assert cluster.machine("machine-2") is cluster.machine("10.77.0.12")
    with pytest.raises(LocalClusterError, match="machine-4"):
        cluster.machine("machine-9")
