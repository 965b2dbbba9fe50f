"""Chart `storm`: what it renders is what the operator, the plugin and the agent count on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from functional.charts.chart_objects import Helm, HelmRefused, Rendered, container, containers, options_of
from storm_operator.adapters.kube.pods import CAPACITY_ANNOTATION, SELECTOR
from storm_operator.agent.options import DEFAULT_LISTEN
from storm_operator.local import daemons, storm_config
from storm_operator.local.jvm import Jvm, daemon_options, log_writer_options, worker_options
from storm_operator.local.spec import LocalClusterSpec, lay_out

SERVICES = {
    "storm-zookeeper": {2181},
    "storm-nimbus": {6627},
    "storm-supervisor": {6628, 9464},
}
OF_THE_LOCAL_MACHINE = {
    "nimbus.seeds",
    "nimbus.thrift.port",
    "storm.local.dir",
    "storm.local.hostname",
    "storm.workers.artifacts.dir",
    "storm.zookeeper.port",
    "storm.zookeeper.servers",
    "storm_operator.metrics.dir",
    "supervisor.cpu.capacity",
    "supervisor.memory.capacity.mb",
    "worker.childopts",
}
"""Keys of the local cluster's storm.yaml whose values are addresses, folders and sizes of its own."""
CLASS_DATA = {
    str(kind): f"-XX:SharedArchiveFile=/opt/storm/class-data/{kind}.jsa" for kind in (Jvm.WORKER, Jvm.LOG_WRITER)
}
"""Where the Dockerfile puts them."""
ONLY_IN_PODS = {"storm.metricstore.rocksdb.location", "storm.zookeeper.root"}


@pytest.fixture(scope="session")
def rendered(helm: Helm) -> Rendered:
    return helm.template("storm")


def storm_yaml(rendered: Rendered) -> dict[str, Any]:
    conf: dict[str, Any] = yaml.safe_load(rendered.one("ConfigMap", "storm-storm")["data"]["storm.yaml"])
    return conf


def pod_of(rendered: Rendered, component: str) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = rendered.one("StatefulSet", f"storm-{component}")["spec"]["template"]["spec"]
    return spec


def java_of(rendered: Rendered, component: str) -> list[str]:
    return list(container(pod_of(rendered, component), component)["args"])


def test_storm_yaml_is_that_of_the_local_cluster(rendered: Rendered, tmp_path: Path) -> None:
    spec = LocalClusterSpec(plugin_jar=tmp_path / "plugin.jar", worker_heap_mb=256)
    planned = lay_out(spec, tmp_path, isolated=True, nimbus_port=6627, zookeeper_port=2181)
    layout = replace(planned, class_data=CLASS_DATA)
    local = storm_config.machine_conf(layout, layout.machines[0])
    conf = storm_yaml(rendered)
    assert conf.keys() - ONLY_IN_PODS == local.keys() - {"storm.local.hostname"}
    shared = local.keys() - OF_THE_LOCAL_MACHINE
    # Options are a text here, a list there: in pods no path has a space at which Storm would cut it.
    as_in_pods = {key: " ".join(local[key]) if key.endswith("childopts") else local[key] for key in shared}
    assert {key: conf[key] for key in shared} == as_in_pods


def test_jvms_have_the_options_of_the_local_cluster(rendered: Rendered) -> None:
    for kind in (Jvm.ZOOKEEPER, Jvm.NIMBUS, Jvm.SUPERVISOR):
        heap, *others = daemon_options(kind, None)
        options = java_of(rendered, kind)
        assert options[2 : 2 + len(others)] == others
        assert options[1].startswith(heap[:4])
    conf = storm_yaml(rendered)
    local = worker_options(256, fast_start=False, class_data=CLASS_DATA[Jvm.WORKER])
    assert conf["worker.childopts"].split()[: len(local)] == list(local)
    assert conf["topology.worker.logwriter.childopts"].split() == list(log_writer_options(CLASS_DATA[Jvm.LOG_WRITER]))


def test_a_heap_for_which_the_images_classes_have_the_wrong_pointers_does_without(helm: Helm) -> None:
    """Java has an archive of its own for such a heap, of which ours would deprive it."""
    for heap_mb, is_used in ((31_999, True), (32_000, False)):
        conf = storm_yaml(helm.template("storm", f"supervisor.workerHeapMb={heap_mb}"))
        assert ("SharedArchiveFile" in conf["worker.childopts"]) is is_used
        assert "SharedArchiveFile" in conf["topology.worker.logwriter.childopts"]


def test_daemons_run_the_classes_of_the_local_cluster(rendered: Rendered) -> None:
    assert daemons.NIMBUS_MAIN in java_of(rendered, "nimbus")
    assert daemons.SUPERVISOR_MAIN in java_of(rendered, "supervisor")
    # QuorumPeerMain runs the local cluster's ZooKeeperServerMain, and clears away old snapshots.
    package = daemons.ZOOKEEPER_MAIN.rpartition(".")[0]
    assert f"{package}.quorum.QuorumPeerMain" in java_of(rendered, "zookeeper")


@pytest.mark.parametrize("values", [(), ("nimbus.persistence.enabled=true",), ("nimbus.resources.limits.memory=1Gi",)])
def test_a_single_nimbus_first_forgets_the_topologies_that_it_has_no_code_of(
    helm: Helm, values: tuple[str, ...]
) -> None:
    """By Storm's own command, run as Nimbus is: it would never lead with them."""
    pod = pod_of(helm.template("storm", *values), "nimbus")
    (forget,), nimbus = pod["initContainers"], container(pod, "nimbus")
    assert forget["args"][-2:] == ["org.apache.storm.command.AdminCommands", "remove_corrupt_topologies"]
    of_their_own = ("nimbus.log", "admin.log")
    assert [word for word in forget["args"][:-2] if not word.endswith(of_their_own)] == [
        word for word in nimbus["args"][:-1] if not word.endswith(of_their_own)
    ]
    assert "WAIT_FOR_PORT" in [item["name"] for item in forget["env"]]
    for part in ("image", "imagePullPolicy", "command", "env", "volumeMounts", "securityContext", "resources"):
        assert forget[part] == nimbus[part]
    assert "restartPolicy" not in forget, "Nimbus begins when it has ended"


def test_one_of_several_nimbuses_forgets_nothing_that_another_may_have_the_code_of(helm: Helm) -> None:
    assert "initContainers" not in pod_of(helm.template("storm", "nimbus.replicas=2"), "nimbus")


def test_a_nimbus_behind_an_external_zookeeper_forgets_nothing_that_another_storm_may_run(helm: Helm) -> None:
    external = ("zookeeper.enabled=false", "externalZookeeper.servers={zk-0.example}")
    assert "initContainers" not in pod_of(helm.template("storm", *external), "nimbus")


def test_text_is_utf_8_to_each_jvm_whatever_its_image_says(rendered: Rendered) -> None:
    """Also to workers, which get the environment of their supervisor."""
    for component in ("zookeeper", "nimbus", "supervisor"):
        for item in containers(pod_of(rendered, component)):
            told = {entry["name"]: entry["value"] for entry in item["env"] if "value" in entry}
            environment = {"PATH": os.environ["PATH"], **{name: told[name] for name in told if name == "LANG"}}
            asked = ["java", "-XshowSettings:properties", "-version"]
            said = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True).stderr
            assert "file.encoding = UTF-8" in said, item["name"]
            assert "sun.jnu.encoding = UTF-8" in said, item["name"]


def test_services_select_the_pods_that_listen(rendered: Rendered) -> None:
    assert {service["metadata"]["name"] for service in rendered.of_kind("Service")} == SERVICES.keys()
    for name, ports in SERVICES.items():
        service, owner = rendered.one("Service", name), rendered.one("StatefulSet", name)
        assert {port["port"] for port in service["spec"]["ports"]} == ports
        assert service["spec"]["clusterIP"] == "None"
        assert service["spec"]["publishNotReadyAddresses"] is True
        assert owner["spec"]["serviceName"] == name
        assert owner["spec"]["template"]["metadata"]["labels"].items() >= service["spec"]["selector"].items()
        pod = owner["spec"]["template"]["spec"]
        assert {port["containerPort"] for item in containers(pod) for port in item.get("ports", ())} == ports


def test_the_operator_finds_supervisor_pods_and_may_resize_them(rendered: Rendered) -> None:
    template = rendered.one("StatefulSet", "storm-supervisor")["spec"]["template"]
    assert template["metadata"]["labels"].items() >= dict(part.split("=") for part in SELECTOR.split(",")).items()
    assert template["metadata"]["labels"]["app.kubernetes.io/instance"] == "storm"
    assert template["metadata"]["annotations"][CAPACITY_ANNOTATION] == "1000"
    assert [item["name"] for item in containers(template["spec"])] == ["agent", "supervisor"]
    supervisor = container(template["spec"], "supervisor")
    assert {rule["resourceName"]: rule["restartPolicy"] for rule in supervisor["resizePolicy"]} == {
        "cpu": "NotRequired",
        "memory": "NotRequired",
    }


@pytest.mark.parametrize(("limit", "millicores"), [("500m", 500), ("2", 2000), ("2.5", 2500), ("0.25", 250)])
def test_a_supervisors_cpu_limit_is_its_capacity_everywhere(helm: Helm, limit: str, millicores: int) -> None:
    rendered = helm.template("storm", f"supervisor.resources.limits.cpu={limit}")
    template = rendered.one("StatefulSet", "storm-supervisor")["spec"]["template"]
    assert template["metadata"]["annotations"][CAPACITY_ANNOTATION] == str(millicores)
    assert f"--cpu-capacity-millicores={millicores}" in container(template["spec"], "agent")["args"]
    assert storm_yaml(rendered)["supervisor.cpu.capacity"] == millicores / 10


@pytest.mark.parametrize(("limit", "mebibytes"), [("512Mi", 512), ("3Gi", 3072), ("1.5Gi", 1536), ("2G", 1907)])
def test_a_supervisors_memory_limit_is_what_storm_may_schedule(helm: Helm, limit: str, mebibytes: int) -> None:
    rendered = helm.template("storm", f"supervisor.resources.limits.memory={limit}")
    assert storm_yaml(rendered)["supervisor.memory.capacity.mb"] == mebibytes


def test_daemons_call_themselves_by_their_pods_full_names(helm: Helm) -> None:
    rendered = helm.template("storm", "clusterDomain=k8s.example", "nimbus.replicas=2")
    for component in ("nimbus", "supervisor"):
        name = f"$(POD_NAME).storm-{component}.streams.svc.k8s.example"
        assert f"-Dstorm.options=storm.local.hostname%3D%22{name}%22" in java_of(rendered, component)
    agent = container(pod_of(rendered, "supervisor"), "agent")
    assert "--host=$(POD_NAME).storm-supervisor.streams.svc.k8s.example" in agent["args"]
    assert storm_yaml(rendered)["nimbus.seeds"] == [
        "storm-nimbus-0.storm-nimbus.streams.svc.k8s.example",
        "storm-nimbus-1.storm-nimbus.streams.svc.k8s.example",
    ]


def test_the_agent_is_started_with_options_that_it_has(rendered: Rendered) -> None:
    agent = container(pod_of(rendered, "supervisor"), "agent")
    assert agent["args"][:2] == ["storm-operator", "agent"]
    assert {argument.partition("=")[0] for argument in agent["args"][2:]} <= options_of("agent")
    listen = next(argument for argument in agent["args"] if argument.startswith("--listen="))
    assert listen == f"--listen={DEFAULT_LISTEN}"


def test_agent_and_workers_mean_the_same_folder(rendered: Rendered) -> None:
    folder = storm_yaml(rendered)["storm_operator.metrics.dir"]
    pod = pod_of(rendered, "supervisor")
    assert f"--metrics-dir={folder}" in container(pod, "agent")["args"]
    volumes = {
        mount["name"] for item in containers(pod) for mount in item["volumeMounts"] if mount["mountPath"] == folder
    }
    assert volumes == {"metrics"}
    assert pod["shareProcessNamespace"] is True


def test_everything_storm_writes_is_on_a_volume(rendered: Rendered) -> None:
    written = [value for key, value in storm_yaml(rendered).items() if key.endswith((".dir", ".location"))]
    assert written
    mounts = [mount["mountPath"] for mount in container(pod_of(rendered, "supervisor"), "supervisor")["volumeMounts"]]
    for folder in written:
        assert any(Path(folder).is_relative_to(mount) for mount in mounts), folder


def test_enforcement_makes_the_agent_and_nobody_else_privileged(helm: Helm) -> None:
    pod = pod_of(helm.template("storm", "agent.enforceExecutors=true"), "supervisor")
    agent = container(pod, "agent")
    assert "--enforce" in agent["args"]
    assert agent["securityContext"]["privileged"] is True
    assert {"name": "cgroups", "mountPath": "/sys/fs/cgroup"} in agent["volumeMounts"]
    assert "privileged" not in container(pod, "supervisor")["securityContext"]
    without = container(pod_of(helm.template("storm"), "supervisor"), "agent")
    assert "--no-enforce" in without["args"]


def test_draining_fits_into_the_pods_grace(helm: Helm) -> None:
    pod = pod_of(helm.template("storm", "supervisor.drainSeconds=120"), "supervisor")
    environment = {item["name"]: item.get("value") for item in container(pod, "supervisor")["env"]}
    assert environment["DRAIN_SECONDS"] == "120"
    assert pod["terminationGracePeriodSeconds"] > 120
    # A sidecar ends after the containers beside it: draining workers are still measured.
    assert container(pod, "agent")["restartPolicy"] == "Always"


def test_an_external_zookeeper_takes_the_place_of_the_charts_own(helm: Helm) -> None:
    rendered = helm.template(
        "storm",
        "zookeeper.enabled=false",
        "externalZookeeper.servers={zk-0.example,zk-1.example}",
        "externalZookeeper.port=2182",
        "zookeeperRoot=/storm/blue",
    )
    conf = storm_yaml(rendered)
    assert conf["storm.zookeeper.servers"] == ["zk-0.example", "zk-1.example"]
    assert (conf["storm.zookeeper.port"], conf["storm.zookeeper.root"]) == (2182, "/storm/blue")
    assert {item["metadata"]["name"] for item in rendered.of_kind("StatefulSet")} == {
        "storm-nimbus",
        "storm-supervisor",
    }
    agent = container(pod_of(rendered, "supervisor"), "agent")
    assert "--zookeeper=zk-0.example:2182,zk-1.example:2182" in agent["args"]
    assert "--zookeeper-root=/storm/blue/storm-operator" in agent["args"]


def test_volumes_are_asked_for_only_on_request(helm: Helm, rendered: Rendered) -> None:
    assert not any("volumeClaimTemplates" in item["spec"] for item in rendered.of_kind("StatefulSet"))
    kept = helm.template(
        "storm", *(f"{part}.persistence.enabled=true" for part in ("nimbus", "supervisor", "zookeeper"))
    )
    for item in kept.of_kind("StatefulSet"):
        assert [claim["metadata"]["name"] for claim in item["spec"]["volumeClaimTemplates"]] == ["data"]
        assert "data" not in [volume["name"] for volume in item["spec"]["template"]["spec"]["volumes"]]


def test_storms_own_settings_are_laid_over_the_charts(helm: Helm) -> None:
    rendered = helm.template("storm", r"config.nimbus\.monitor\.freq\.secs=5", r"config.my\.limit=1500000")
    conf = storm_yaml(rendered)
    assert (conf["nimbus.monitor.freq.secs"], conf["my.limit"]) == (5, 1_500_000)
    assert conf["storm.scheduler"] == "dev.stormoperator.scheduler.PlanScheduler"


@pytest.mark.parametrize(
    ("setting", "value", "instead"),
    [
        ("nimbus.seeds", "{elsewhere}", "set nimbus.replicas instead"),
        ("nimbus.thrift.port", "7000", "leave it out"),
        ("storm.zookeeper.port", "2182", "set externalZookeeper.port instead"),
        ("storm.zookeeper.root", "/elsewhere", "set zookeeperRoot instead"),
        ("storm.zookeeper.servers", "{elsewhere}", "set externalZookeeper.servers instead"),
        ("storm_operator.metrics.dir", "/elsewhere", "leave it out"),
        ("supervisor.slots.ports", "{7700,7701}", "set supervisor.slots instead"),
        ("supervisor.thrift.port", "7000", "leave it out"),
    ],
)
def test_settings_that_not_storm_yaml_alone_goes_by_are_refused(
    helm: Helm, setting: str, value: str, instead: str
) -> None:
    name = setting.replace(".", r"\.")
    with pytest.raises(HelmRefused, match=f"config: {setting}: .* would be in storm.yaml alone, .*: {instead}"):
        helm.template("storm", f"config.{name}={value}")


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("storm.scheduler", "org.apache.storm.scheduler.EvenScheduler", "PlanScheduler, .* set fallbackScheduler"),
        ("topology.auto.task.hooks", "{my.Hook}", "TrafficHook, which measures traffic"),
        ("storm.topology.metrics.system.reporters[0].class", "my.Reporter", "SnapshotReporter, which measures"),
    ],
)
def test_settings_without_the_plugin_are_refused(helm: Helm, setting: str, value: str, words: str) -> None:
    name, index, key = setting.partition("[")
    escaped = name.replace(".", r"\.") + index + key
    with pytest.raises(HelmRefused, match=f"config: {name}: .* lacks dev.*{words}"):
        helm.template("storm", f"config.{escaped}={value}")


def test_a_hook_may_stand_beside_the_plugins(helm: Helm) -> None:
    hooks = ["dev.stormoperator.metrics.TrafficHook", "my.Hook"]
    beside = rf"config.topology\.auto\.task\.hooks={{{','.join(hooks)}}}"
    assert storm_yaml(helm.template("storm", beside))["topology.auto.task.hooks"] == hooks


def test_a_setting_that_says_what_the_chart_says_is_no_other_setting(helm: Helm, rendered: Rendered) -> None:
    said_again = (r"config.nimbus\.thrift\.port=6627", r"config.supervisor\.slots\.ports={6700,6701,6702,6703}")
    assert storm_yaml(helm.template("storm", *said_again)) == storm_yaml(rendered)


def test_a_new_storm_yaml_restarts_those_that_read_it(helm: Helm, rendered: Rendered) -> None:
    other = helm.template("storm", r"config.nimbus\.monitor\.freq\.secs=5")
    restarted = {
        item["metadata"]["name"]
        for item in other.of_kind("StatefulSet")
        if item["spec"]["template"] != rendered.one("StatefulSet", item["metadata"]["name"])["spec"]["template"]
    }
    assert restarted == {"storm-nimbus", "storm-supervisor"}


def test_budgets_keep_one_supervisor_at_a_time_and_never_forbid_maintenance(helm: Helm, rendered: Rendered) -> None:
    def budgets(found: Rendered) -> dict[str, int]:
        return {
            item["metadata"]["name"]: item["spec"]["maxUnavailable"] for item in found.of_kind("PodDisruptionBudget")
        }

    assert budgets(rendered) == {"storm-supervisor": 1}
    assert budgets(helm.template("storm", "nimbus.replicas=3")) == {"storm-supervisor": 1, "storm-nimbus": 1}
    assert budgets(helm.template("storm", "podDisruptionBudget.enabled=false")) == {}


def test_network_policies_cover_every_port_that_is_listened_on(helm: Helm) -> None:
    rendered = helm.template("storm", "networkPolicy.enabled=true", "supervisor.slots=2")
    opened = {
        policy["metadata"]["name"]: {
            port
            for rule in policy["spec"]["ingress"]
            for item in rule["ports"]
            for port in range(item["port"], item.get("endPort", item["port"]) + 1)
        }
        for policy in rendered.of_kind("NetworkPolicy")
    }
    assert opened == {**SERVICES, "storm-supervisor": {6628, 9464, 6700, 6701}}
    assert all(rule["from"] for policy in rendered.of_kind("NetworkPolicy") for rule in policy["spec"]["ingress"])


@pytest.mark.parametrize(
    ("values", "peers"),
    [
        (("supervisor.replicas=3",), "10"),
        (("supervisor.replicas=12",), "12"),
        (("supervisor.scaling.enabled=true", "supervisor.scaling.maxReplicas=7"), "7"),
    ],
)
def test_agents_probe_all_supervisors_there_may_be(helm: Helm, values: tuple[str, ...], peers: str) -> None:
    agent = container(pod_of(helm.template("storm", *values), "supervisor"), "agent")
    assert {"name": "PEER_COUNT", "value": peers} in agent["env"]
    assert {"name": "PEER_DOMAIN", "value": "storm-supervisor.streams.svc.cluster.local"} in agent["env"]


def test_the_helm_test_checks_this_very_cluster(helm: Helm) -> None:
    pod = helm.template("storm", "supervisor.replicas=5", "test.submit=false").one("Pod", "storm-storm-test")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    arguments = pod["spec"]["containers"][0]["args"]
    assert {"--supervisors=5", "--no-submit", "--timeout-seconds=180"} <= set(arguments)
    assert "--nimbus=storm-nimbus-0.storm-nimbus.streams.svc.cluster.local:6627" in arguments


def test_the_helm_test_asks_for_no_supervisor_that_the_operator_may_have_taken_away(helm: Helm) -> None:
    values = ("supervisor.replicas=5", "supervisor.scaling.enabled=true")
    pod = helm.template("storm", *values).one("Pod", "storm-storm-test")
    assert "--supervisors=1" in pod["spec"]["containers"][0]["args"]


@pytest.mark.parametrize(("values", "cluster"), [((), "storm"), (("podMonitor.cluster=blue",), "blue")])
def test_what_agents_say_is_labelled_with_their_cluster(helm: Helm, values: tuple[str, ...], cluster: str) -> None:
    monitor = helm.template("storm", "podMonitor.enabled=true", *values).one("PodMonitor", "storm-agents")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["relabelings"] == [{"targetLabel": "cluster", "replacement": cluster}]
