"""Submission by a real JVM: jars, Flux, and everything that goes wrong there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_operator.adapters.errors import (
    MainClassMissing,
    NimbusUnreachable,
    SubmissionFailed,
    TopologyAlreadyAlive,
)
from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.submission import (
    FluxSubmission,
    JarSubmission,
    StormClientHome,
    submit_flux,
    submit_jar,
)

pytestmark = pytest.mark.functional
NAME = "nimbus-submission"
FLUX_NAME = "nimbus-flux"
DEFINITION = f"""
name: {FLUX_NAME}
config: {{topology.workers: 1}}
spouts: [{{id: numbers, className: ManyKinds$Numbers, parallelism: 1}}]
bolts: [{{id: pass, className: ManyKinds$Pass, parallelism: 2}}]
streams: [{{from: numbers, to: pass, grouping: {{type: SHUFFLE}}}}]
"""


@pytest.fixture(autouse=True)
def nothing_left_behind(client: NimbusClient) -> Iterator[None]:
    yield
    for name in (NAME, FLUX_NAME):
        if client.cluster_info().topology_named(name):
            client.kill(name)
    deadline = time.monotonic() + 60.0
    while any(each.name in (NAME, FLUX_NAME) for each in client.cluster_info().topologies):
        assert time.monotonic() < deadline, "a killed topology is still there"
        time.sleep(0.3)


def test_conf_overrides_reach_the_topology_and_a_name_runs_once(
    client: NimbusClient, home: StormClientHome, many_kinds_jar: Path
) -> None:
    overrides = {"topology.message.timeout.secs": 7, "note": 'commas, "quotes" and = signs'}
    submit_jar(JarSubmission(many_kinds_jar, "ManyKinds", (NAME,), overrides), home)
    running = client.cluster_info().topology_named(NAME)
    assert running is not None
    conf = client.topology_conf(running.id)
    assert {key: conf[key] for key in overrides} == overrides
    with pytest.raises(TopologyAlreadyAlive, match=f"a topology {NAME} runs already"):
        submit_jar(JarSubmission(many_kinds_jar, "ManyKinds", (NAME,)), home)


def test_a_flux_definition(client: NimbusClient, home: StormClientHome, flux_jar: Path) -> None:
    submitted = submit_flux(FluxSubmission(flux_jar, DEFINITION, {"topology.message.timeout.secs": 7}), home)
    assert submitted.topology_names == (FLUX_NAME,)
    running = client.cluster_info().topology_named(FLUX_NAME)
    assert running is not None
    assert client.topology_conf(running.id)["topology.message.timeout.secs"] == 7


def test_a_flux_definition_with_an_unknown_class(home: StormClientHome, flux_jar: Path) -> None:
    with pytest.raises(SubmissionFailed, match=r"ClassNotFoundException: ManyKinds\$Psas"):
        submit_flux(FluxSubmission(flux_jar, DEFINITION.replace("$Pass", "$Psas")), home)


def test_a_jar_without_flux(home: StormClientHome, many_kinds_jar: Path) -> None:
    with pytest.raises(MainClassMissing, match=r"has no class org\.apache\.storm\.flux\.Flux"):
        submit_flux(FluxSubmission(many_kinds_jar, DEFINITION), home)


def test_main_classes_that_cannot_be_run(home: StormClientHome, many_kinds_jar: Path) -> None:
    with pytest.raises(MainClassMissing, match="has no class Nothing with a main method"):
        submit_jar(JarSubmission(many_kinds_jar, "Nothing"), home)
    with pytest.raises(MainClassMissing, match=r"has no class ManyKinds\$Pass with a main method"):
        submit_jar(JarSubmission(many_kinds_jar, "ManyKinds$Pass"), home)


def test_a_main_class_that_throws(home: StormClientHome, many_kinds_jar: Path) -> None:
    with pytest.raises(SubmissionFailed, match="IllegalArgumentException: give the topology's name") as caught:
        submit_jar(JarSubmission(many_kinds_jar, "ManyKinds"), home)
    assert "at ManyKinds.main" in caught.value.log_tail


def test_nimbus_out_of_reach(home: StormClientHome, many_kinds_jar: Path) -> None:
    nowhere = {"nimbus.thrift.port": 1, "nimbus.seeds": ["127.0.0.1"]}
    with pytest.raises(NimbusUnreachable, match=r"no leading Nimbus among the seeds \[127\.0\.0\.1\]"):
        submit_jar(JarSubmission(many_kinds_jar, "ManyKinds", (NAME,), nowhere), home)
