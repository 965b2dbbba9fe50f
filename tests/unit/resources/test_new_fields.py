"""Where jars come from, parallelism, scale limits, approval, excluded windows: from a document to values."""

from __future__ import annotations

from typing import Any

import pytest

from crd_cases import CLAIM, SHA256, adopt, auto_approve, component, document, flux, jar, scheduling, window
from storm_operator.adapters.resources import InvalidResource, parse_topology
from storm_operator.core.settings import ApprovalMode, ApprovalSettings, AutoApproval, ExcludedWindow
from storm_operator.core.topology_spec import (
    ComponentParallelism,
    ConfigMapKey,
    DeletionPolicy,
    FluxSource,
    JarSource,
    ParallelismMode,
    ParallelismSpec,
    ScaleLimits,
    TopologySpec,
)


def parsed(spec: dict[str, Any]) -> TopologySpec:
    return parse_topology(document(spec))


@pytest.mark.parametrize(
    ("spec", "source"),
    [
        (jar(path="/a.jar"), JarSource("/a.jar", "a.Words")),
        (jar(path="/a.jar", image="x/words:1"), JarSource("/a.jar", "a.Words", image="x/words:1")),
        (
            jar(url="https://x/a.jar", sha256=SHA256.upper(), args=["1"]),
            JarSource("", "a.Words", ("1",), url="https://x/a.jar", sha256=SHA256),
        ),
        (jar(persistentVolumeClaim=CLAIM), JarSource("words/words.jar", "a.Words", claim="jars")),
        (
            flux(configMap={"name": "words", "key": "flux.yaml"}),
            FluxSource("/opt/words.jar", config_map=ConfigMapKey("words", "flux.yaml")),
        ),
        (flux(path="words.yaml"), FluxSource("/opt/words.jar", path="words.yaml")),
        (
            flux(jarFrom={"url": "https://x/a.jar", "sha256": SHA256}),
            FluxSource("", "name: words\n", url="https://x/a.jar", sha256=SHA256),
        ),
        (flux(jarFrom={"path": "/a.jar", "image": "i"}), FluxSource("/a.jar", "name: words\n", image="i")),
        (
            flux(jarFrom={"persistentVolumeClaim": CLAIM}),
            FluxSource("words/words.jar", "name: words\n", claim="jars"),
        ),
    ],
)
def test_where_the_jar_comes_from(spec: dict[str, Any], source: JarSource | FluxSource) -> None:
    assert parsed(spec).source == source


def test_sources_can_be_written_as_before() -> None:
    source = JarSource("words.jar", "a.Words", ("1",))
    assert (source.path, source.main_class, source.args) == ("words.jar", "a.Words", ("1",))
    assert (source.url, source.sha256, source.claim, source.image) == (None, None, None, None)


def test_all_settings_beside_the_source() -> None:
    spec = parsed(
        adopt(
            nimbus="nimbus.storm",
            suspend=True,
            priority=-3,
            killWaitSeconds=30,
            rebalanceHistoryLimit=0,
            deletionPolicy="Kill",
            supervisors={"minimum": 1, "maximum": 4, "statefulSet": "storm-supervisor"},
        )
    )
    assert (spec.nimbus, spec.suspend, spec.priority) == ("nimbus.storm:6627", True, -3)
    assert (spec.kill_wait_seconds, spec.rebalance_history_limit) == (30, 0)
    assert spec.supervisors == ScaleLimits(1, 4, "storm-supervisor")
    assert spec.deletion_policy is DeletionPolicy.KILL


def test_a_port_that_is_given_stays() -> None:
    assert parsed(adopt(nimbus="nimbus:7000")).nimbus == "nimbus:7000"
    assert parsed(adopt(nimbus="[fd00::7]")).nimbus == "[fd00::7]:6627"
    assert parsed(adopt(nimbus="[fd00::7]:7000")).nimbus == "[fd00::7]:7000"


@pytest.mark.parametrize(
    ("spec", "dies"),
    [
        (jar(), True),
        (flux(), True),
        (adopt(), False),
        (jar() | {"deletionPolicy": "Leave"}, False),
        (adopt(deletionPolicy="Kill"), True),
        (adopt(deletionPolicy="Leave"), False),
    ],
)
def test_what_was_submitted_dies_with_its_resource_and_what_was_adopted_lives_on(
    spec: dict[str, Any], dies: bool
) -> None:
    assert parsed(spec).dies_with_resource is dies


def test_parallelism() -> None:
    given = {"mode": "Auto", "components": {"count": {"minimum": 1, "maximum": 4}, "split": {"executors": 2}}}
    spec = parsed(adopt(parallelism={**given, "workers": 3}))
    counted, split = ComponentParallelism(minimum=1, maximum=4), ComponentParallelism(executors=2)
    assert spec.parallelism == ParallelismSpec(ParallelismMode.AUTO, {"count": counted, "split": split}, 3)
    assert parsed(component(minimum=2)).parallelism.components["count"] == ComponentParallelism(minimum=2)
    assert parsed(adopt()).parallelism == ParallelismSpec()


def test_approval() -> None:
    assert parsed(scheduling(approval={"mode": "Manual"})).scheduling.approval == ApprovalSettings(ApprovalMode.MANUAL)
    conditions = auto_approve(minimumGainPercent=30, maximumRestartedWorkers=2, maximumPaybackSeconds=60)
    assert parsed(conditions).scheduling.approval == ApprovalSettings(
        ApprovalMode.AUTO,
        AutoApproval(minimum_gain_percent=30.0, maximum_restarted_workers=2, maximum_payback_seconds=60.0),
    )
    assert parsed(auto_approve(maximumRestartedWorkers=0)).scheduling.approval.auto_approve_when == AutoApproval(
        maximum_restarted_workers=0
    )


def test_excluded_windows() -> None:
    assert parsed(window(timeZone="Europe/Berlin")).scheduling.excluded_windows == (
        ExcludedWindow("0 8 * * MON-FRI", 3600, "Europe/Berlin"),
    )
    assert parsed(window()).scheduling.excluded_windows[0].time_zone == "UTC"


def test_settings_are_hashable_so_that_topologies_can_be_grouped_by_them() -> None:
    spec = parsed(window() | {"resources": {"floorMillicores": 1}})
    assert len({spec.scheduling, parsed(window()).scheduling, parsed(adopt()).scheduling}) == 2


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (window(cron="61 8 * * *"), "spec.scheduling.excludedWindows[0].cron is '61 8 * * *': minute is '61': 0 to 59"),
        (window(timeZone="Mars/Olympus"), "spec.scheduling.excludedWindows[0].timeZone: there is no time zone 'Mars/"),
        (window(timeZone="Europe"), "there is no time zone 'Europe'"),
        (window(timeZone="../etc/passwd"), "there is no time zone"),
    ],
)
def test_what_only_the_operator_can_tell(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidResource) as caught:
        parsed(spec)
    assert words in str(caught.value)
    assert caught.value.others == ()


def test_all_that_only_the_operator_can_tell_of_excluded_windows_is_told_at_once() -> None:
    wrong = window(cron="61 8 * * *", timeZone="Mars/Olympus")
    wrong["scheduling"]["excludedWindows"] += window(timeZone="Europe")["scheduling"]["excludedWindows"]
    with pytest.raises(InvalidResource) as caught:
        parsed(wrong)
    fields = [words.split()[0] for words in (str(caught.value), *caught.value.others)]
    assert fields == [
        f"spec.scheduling.excludedWindows{rest}" for rest in ("[0].cron", "[0].timeZone:", "[1].timeZone:")
    ]
