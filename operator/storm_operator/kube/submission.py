"""Submission in Kubernetes: a request, the Job that carries it out, and a submitter that starts it only once."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from storm_operator.adapters.errors import SubmissionError, SubmissionFailed
from storm_operator.adapters.kube.jobs import JobPhase, Jobs
from storm_operator.core.lifecycle import fingerprint, submission_conf
from storm_operator.core.topology_spec import (
    AdoptSource,
    FluxSource,
    JarOrigin,
    JarSource,
    TopologySource,
    TopologySpec,
)
from storm_operator.kube.managed import Managed
from storm_operator.kube.submission_pod import SubmissionPod

TOPOLOGY_LABEL = "storm-operator.dev/topology"
REQUEST_VARIABLE = "STORM_OPERATOR_REQUEST"
CLAIM_FOLDER = "/var/lib/storm-operator/claim"
COPIED_FOLDER = "/var/lib/storm-operator/jar"
COPIED_JAR = f"{COPIED_FOLDER}/topology.jar"
LONGEST_REQUEST_BYTES = 128 * 1024 - len(f"{REQUEST_VARIABLE}=\0")
"""Linux starts no program with a longer variable. JSON is written in ASCII: a character is a byte."""
KEPT_SECONDS = 600
ENDING_SECONDS = 60.0
"""A pod that has not ended so long after its Job was called off may never: its node is gone, or it has a finalizer."""
USER_ID = 10001


@dataclass(frozen=True, slots=True)
class JobSettings:
    """What all submission Jobs have in common."""

    image: str
    pull_policy: str = "IfNotPresent"
    service_account: str = "default"
    pod: SubmissionPod = SubmissionPod()


@dataclass(frozen=True, slots=True)
class JobSubmitter:
    """A `lifecycle_manager.Submitter` by Jobs. `owner_of` gives the resource that a topology's name belongs to.

    A Job is named after its topology and what is submitted where, so that an operator that was restarted finds the
    one that is under way instead of starting another.
    """

    jobs: Jobs
    settings: JobSettings
    owner_of: Callable[[str], Managed]
    read_config_map: Callable[[str, str, str], str]
    other_nimbuses: tuple[str, ...] = ()
    """Where another may lead when the cluster's own address is away: see `connecting.other_nimbuses`."""
    last: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By uid of a resource: the last Job's name and the fingerprint of what it submits."""
    called_off: dict[str, dict[str, float]] = field(default_factory=dict)
    """By uid of a resource, the Jobs that were called off and are still there, and since when."""
    now: Callable[[], float] = time.monotonic

    def fingerprint(self, spec: TopologySpec) -> str:
        """Jars are told by what the spec says of them (sha256, path, image): their bytes are not at hand here.

        `SubmissionError` for what no Job can submit: what runs must not be killed for it.
        """
        if isinstance(spec.source, AdoptSource):
            return "adopted"
        flux_text = self._flux_text(spec)
        wanted = fingerprint(spec, flux_text or "")
        _as_variable(self._request(spec, wanted, flux_text))
        return wanted

    def submit(self, spec: TopologySpec, wanted: str) -> bool:
        """Start the Job, or see how it stands. A failed one is removed, so that a later try begins anew.

        What was wanted before is called off first: it could get into Storm in the place of what is wanted now.
        """
        owner = self.owner_of(spec.name)
        namespace, name = owner.key[0], job_name(owner.key[1], wanted, owner.nimbus)
        self.last[owner.uid] = (name, wanted)
        if not self.call_off(owner, but=name):
            return False
        outcome = self.jobs.outcome(namespace, name)
        if outcome.phase is JobPhase.ABSENT:
            request = self._request(spec, wanted, self._flux_text(spec))
            self.jobs.create(namespace, job_body(owner, name, spec, request, self.settings))
            return False
        if outcome.phase is JobPhase.RUNNING:
            if outcome.message:
                raise SubmissionError(f"submission job {name} waits: {outcome.message}")
            return False
        self.jobs.delete(namespace, name)
        if outcome.phase is JobPhase.FAILED:
            log, _, reason = outcome.message.rstrip().rpartition("\n")  # as `_log_and_reason` has it
            raise SubmissionFailed(f"submission job {name} failed: {reason}".removesuffix(": "), log)
        return True

    def withdraw(self, spec: TopologySpec) -> bool:
        """End what is under way for the topology; True once no pod can submit it any more."""
        return self.call_off(self.owner_of(spec.name))

    def call_off(self, owner: Managed, but: str = "") -> bool:
        """End what is under way for a resource, `but` that Job, unless it was called off before; True once none of the
        pods can submit anything any more. `SubmissionError` where one takes very long to end.
        """
        namespace, name = owner.key
        owned = self.jobs.owned_by(owner.uid, namespace, f"{TOPOLOGY_LABEL}={label_value(name)}")
        before, now = self.called_off.get(owner.uid, {}), self.now()
        names = [job for job in owned if job != but or job in before]
        for job in names:
            self.jobs.delete(namespace, job, pods_first=True)
        since = {job: before.get(job, now) for job in names}
        self.called_off.pop(owner.uid, None)
        if not names:
            return True
        self.called_off[owner.uid] = since
        for job in names:
            if now - since[job] >= ENDING_SECONDS:
                raise SubmissionError(_does_not_end(namespace, job))
        return False

    def give_up(self, owner: Managed) -> None:
        """End the last Job of a resource that is invalid by now, or names another Nimbus, and no Job for that one."""
        name, _ = self.last[owner.uid]
        self.jobs.delete(owner.key[0], name, pods_first=True)
        self.called_off.setdefault(owner.uid, {}).setdefault(name, self.now())  # it may come back before that has ended
        del self.last[owner.uid]

    def forget_all_but(self, uids: Collection[str]) -> None:
        """Resources of other uids are gone, and Kubernetes sees to their Jobs."""
        for known in (self.last, self.called_off):
            for uid in known.keys() - set(uids):
                del known[uid]

    def _request(self, spec: TopologySpec, wanted: str, flux_text: str | None) -> dict[str, Any]:
        nimbus, seconds = self.owner_of(spec.name).nimbus, self.settings.pod.main_class_seconds
        request = submission_request(spec, wanted, nimbus, flux_text, self.other_nimbuses)
        return {**request, "timeoutSeconds": seconds}

    def _flux_text(self, spec: TopologySpec) -> str | None:
        source = spec.source
        if not isinstance(source, FluxSource):
            return None
        if source.config_map is not None:
            namespace = self.owner_of(spec.name).key[0]
            return self.read_config_map(namespace, source.config_map.name, source.config_map.key)
        return source.definition


def _does_not_end(namespace: str, job: str) -> str:
    return (
        f"submission job {namespace}/{job} was called off, and its pod has not ended: it is waited for, as it could"
        f" still submit something; `kubectl get pods -n {namespace} -l job-name={job} -o wide` shows where it is; if"
        " that node is gone for good, delete the pod with --force"
    )


def job_name(resource: str, wanted: str, nimbus: str) -> str:
    """At most 63 characters, as pods take their job's name for a label. `wanted` is a fingerprint.

    Resources may be made from the same, and their names begin with the same 40 characters, or differ in a dot.
    """
    what = hashlib.sha256(f"{wanted} {nimbus} {resource}".encode()).hexdigest()[:10]
    return f"{resource[:40].rstrip('-.')}-submit-{what}".replace(".", "-")


def submission_request(
    spec: TopologySpec, wanted: str, nimbus: str, flux_text: str | None, other_nimbuses: tuple[str, ...] = ()
) -> dict[str, Any]:
    """What `storm-operator submit` reads in the Job; see `submit_command`."""
    source = spec.source
    request: dict[str, Any] = {
        "topology": spec.name,
        "nimbus": nimbus,
        "conf": submission_conf(spec, wanted),
        **({"otherNimbuses": list(other_nimbuses)} if other_nimbuses else {}),
    }
    if isinstance(source, FluxSource):
        request |= {"jar": _jar_in_job(source, source.jar), "flux": flux_text}
    elif isinstance(source, JarSource):
        request |= {"jar": _jar_in_job(source, source.path), "mainClass": source.main_class, "args": list(source.args)}
    return request


def _jar_in_job(origin: JarOrigin, path: str) -> dict[str, str]:
    if origin.url is not None:
        return {"url": origin.url, "sha256": origin.sha256 or ""}
    if origin.claim is not None:
        return {"path": f"{CLAIM_FOLDER}/{path}"}
    if origin.image is not None:
        return {"path": COPIED_JAR}
    return {"path": path}


def job_body(
    owner: Managed, name: str, spec: TopologySpec, request: Mapping[str, Any], settings: JobSettings
) -> dict[str, Any]:
    """Pure: the Job. It is owned by the resource, runs once, and may do nothing but talk to Nimbus."""
    metadata = owner.body["metadata"]
    labels = {
        "app.kubernetes.io/managed-by": "storm-operator",
        TOPOLOGY_LABEL: label_value(metadata["name"]),
    }
    main = {
        "name": "submit",
        "image": settings.image,
        "imagePullPolicy": settings.pull_policy,
        "command": ["storm-operator", "submit"],
        "env": [{"name": REQUEST_VARIABLE, "value": _as_variable(request)}],
        "securityContext": _restricted(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - a volume of the pod's own
        **settings.pod.container_fields(),
    }
    volumes: list[dict[str, Any]] = [{"name": "tmp", "emptyDir": {}}]
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "serviceAccountName": settings.service_account,
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "fsGroup": USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [main],
        "volumes": volumes,
        **settings.pod.pod_fields(),
    }
    _bring_jar(pod, main, spec.source, settings)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner_reference(owner.body)]},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": settings.pod.deadline_seconds,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def label_value(name: str) -> str:
    """As much of a resource's name as a label can hold."""
    return name[:63].rstrip("-.")


def _as_variable(request: Mapping[str, Any]) -> str:
    """`SubmissionError` when it is longer than a variable can be."""
    # Kubernetes replaces $(NAME), and $$ by $, in the values of variables.
    text = json.dumps(request, sort_keys=True).replace("$", r"\u0024")
    if len(text) > LONGEST_REQUEST_BYTES:
        raise SubmissionError(
            f"what is to be submitted (spec.flux, or spec.jar with its arguments) is {len(text)} bytes as JSON, and a"
            f" Job takes {LONGEST_REQUEST_BYTES}: make it shorter, or build the topology in a main class"
        )
    return text


def _bring_jar(pod: dict[str, Any], main: dict[str, Any], source: TopologySource, settings: JobSettings) -> None:
    """Volumes for a jar that is not in the Storm image: a claim, or a copy out of another image."""
    if isinstance(source, AdoptSource):
        return
    if source.claim is not None:
        claim = {"claimName": source.claim, "readOnly": True}
        pod["volumes"].append({"name": "claim", "persistentVolumeClaim": claim})
        main["volumeMounts"].append({"name": "claim", "mountPath": CLAIM_FOLDER, "readOnly": True})
    elif source.image is not None:
        mount = {"name": "jar", "mountPath": COPIED_FOLDER}
        pod["volumes"].append({"name": "jar", "emptyDir": {}})
        main["volumeMounts"].append(mount)
        pod["initContainers"] = [
            {
                "name": "copy-jar",
                "image": source.image,
                "imagePullPolicy": settings.pull_policy,
                "command": ["cp", source.path if isinstance(source, JarSource) else source.jar, COPIED_JAR],
                "securityContext": _restricted(),
                "volumeMounts": [mount],
                **settings.pod.container_fields(),
            }
        ]


def owner_reference(body: Mapping[str, Any]) -> dict[str, Any]:
    """Objects with it go when the resource goes."""
    return {
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "name": body["metadata"]["name"],
        "uid": body["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": False,
    }


def _restricted() -> dict[str, Any]:
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True}
