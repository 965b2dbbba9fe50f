"""Submission as a Kubernetes Job in the Storm image: started once, and asked how it went."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from kubernetes.client import ApiClient, BatchV1Api, CoreV1Api

from storm_operator.adapters.kube.errors import Conflict, KubernetesError, NotFound, api_errors

TIMEOUT_SECONDS = 10.0
LOG_TAIL_LINES = 25
LOG_TAIL_CHARACTERS = 8_000
LOG_LIMIT_BYTES = 1_000_000  # the API cuts the end off, and the end is what matters
NEVER_BEGAN = frozenset({"StartError", "ContainerCannotRun"})
OUT_OF_MEMORY = "OOMKilled"
NO_POD_SECONDS = 20.0
"""A Job that has no pod after so long is not given one."""


class JobPhase(StrEnum):
    """How far a Job has come."""

    ABSENT = "Absent"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """`message`: of a failed Job why, with the end of its log; of a running one what it waits for, if anything."""

    phase: JobPhase
    message: str = ""


class Jobs:
    """Creates, reads and deletes Jobs. Raises `KubernetesError`."""

    def __init__(self, client: ApiClient, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._batch: Any = BatchV1Api(client)
        self._core: Any = CoreV1Api(client)
        self._now = now

    def create(self, namespace: str, body: Mapping[str, Any]) -> bool:
        """Create the Job; False when it is there already."""
        try:
            with api_errors(f"create job {namespace}/{body['metadata']['name']}"):
                self._batch.create_namespaced_job(namespace, body, _request_timeout=TIMEOUT_SECONDS)
        except Conflict:
            return False
        return True

    def outcome(self, namespace: str, name: str) -> JobOutcome:
        """How the Job stands."""
        try:
            with api_errors(f"read job {namespace}/{name}"):
                job = self._batch.read_namespaced_job(name, namespace, _request_timeout=TIMEOUT_SECONDS)
        except NotFound:
            return JobOutcome(JobPhase.ABSENT)
        finished = {
            condition.type: condition for condition in job.status.conditions or () if condition.status == "True"
        }
        if "Complete" in finished:
            return JobOutcome(JobPhase.SUCCEEDED)
        if "Failed" in finished:
            return JobOutcome(JobPhase.FAILED, self._last_words(namespace, name, job))
        return JobOutcome(JobPhase.RUNNING, self._waits_for(namespace, name, job))

    def owned_by(self, uid: str, namespace: str, label: str) -> tuple[str, ...]:
        """Names of the Jobs with that label that the object `uid` owns, also of those that are being deleted."""
        with api_errors(f"list jobs {namespace}/{label}"):
            answer = self._batch.list_namespaced_job(namespace, label_selector=label, _request_timeout=TIMEOUT_SECONDS)
        return tuple(
            sorted(
                job.metadata.name
                for job in answer.items
                if any(owner.uid == uid for owner in job.metadata.owner_references or ())
            )
        )

    def delete(self, namespace: str, name: str, *, pods_first: bool = False) -> None:
        """Delete the Job and its pods; with `pods_first` the Job is there for as long as any of its pods."""
        policy = "Foreground" if pods_first else "Background"
        try:
            with api_errors(f"delete job {namespace}/{name}"):
                self._batch.delete_namespaced_job(
                    name, namespace, propagation_policy=policy, _request_timeout=TIMEOUT_SECONDS
                )
        except NotFound:
            return

    def pod_log(self, namespace: str, pod: str, **container: str) -> str:
        """The end of a pod's log; of its only container, or of the one that is named."""
        with api_errors(f"log of pod {namespace}/{pod}"):
            log = self._core.read_namespaced_pod_log(
                pod,
                namespace,
                tail_lines=LOG_TAIL_LINES,
                limit_bytes=LOG_LIMIT_BYTES,
                _request_timeout=TIMEOUT_SECONDS,
                **container,
            )
        return str(log).strip()[-LOG_TAIL_CHARACTERS:]

    def _pods(self, namespace: str, job: str) -> list[Any]:
        with api_errors(f"list pods of job {namespace}/{job}"):
            answer = self._core.list_namespaced_pod(
                namespace, label_selector=f"job-name={job}", _request_timeout=TIMEOUT_SECONDS
            )
        return sorted(answer.items, key=lambda pod: pod.metadata.creation_timestamp)

    def _waits_for(self, namespace: str, name: str, job: Any) -> str:
        """Why no container runs, e.g. an image that cannot be pulled or a volume that is not there."""
        pods = self._pods(namespace, name)
        for condition in job.status.conditions or ():
            if condition.type == "Suspended" and condition.status == "True":  # by what lets Jobs begin in turn
                return f"Suspended: {condition.message}"
        age_seconds = (self._now() - job.metadata.creation_timestamp).total_seconds()
        has_had_one = pods or job.status.failed or job.status.succeeded
        if not has_had_one and age_seconds > NO_POD_SECONDS:
            return f"NoPod: {_why_no_pod(namespace, name)}"
        for pod in pods[-1:]:
            for status in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())):
                waiting = status.state.waiting if status.state else None
                if waiting is not None and waiting.reason not in ("ContainerCreating", "PodInitializing"):
                    return f"{waiting.reason}: {waiting.message or status.image}"
            for condition in pod.status.conditions or ():
                if condition.type == "PodScheduled" and condition.status == "False":
                    return f"{condition.reason}: {condition.message}"
        return ""

    def _last_words(self, namespace: str, name: str, job: Any) -> str:
        failure = next(one.message or "" for one in job.status.conditions if one.type == "Failed")
        try:
            pods = self._pods(namespace, name)
        except KubernetesError as error:
            return f"its log cannot be read: {error}"
        if not pods:
            # Kubernetes counts each pod of a Job that has ended, also one that was deleted.
            why = "its pod is gone, and its log with it" if job.status.failed else _why_no_pod(namespace, name)
            return f"{failure}; {why}".removeprefix("; ")
        try:
            log = self.pod_log(namespace, pods[-1].metadata.name, **_init_container_that_failed(pods[-1]))
        except KubernetesError as error:
            log = f"its log cannot be read: {error}"
        return "\n".join(filter(None, (log, _why_ended(pods[-1])))) or "it said nothing"


def _why_no_pod(namespace: str, job: str) -> str:
    """Only the Job's events say it, and these the operator has no right to read."""
    return (
        "no pod of it could be made: a quota, an admission policy or a missing ServiceAccount, as"
        f" `kubectl describe job -n {namespace} {job}` says"
    )


def _why_ended(pod: Any) -> str:
    """What Kubernetes knows and no log does: that a container never began, or that something ended it."""
    if pod.status.reason:
        return f"{pod.status.reason}: {pod.status.message}"
    for status in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())):
        terminated = status.state.terminated if status.state else None
        if terminated is not None and terminated.exit_code != 0 and terminated.reason in NEVER_BEGAN:
            return f"{terminated.reason}: {terminated.message}"
        if terminated is not None and terminated.exit_code != 0 and terminated.reason == OUT_OF_MEMORY:
            return f"{OUT_OF_MEMORY}: it needed more memory than the limit of container {status.name}"
    return ""


def _init_container_that_failed(pod: Any) -> dict[str, str]:
    """Where to look for the reason then, since the main container never ran."""
    for status in pod.status.init_container_statuses or ():
        terminated = status.state.terminated if status.state else None
        if terminated is not None and terminated.exit_code != 0:
            return {"container": status.name}
    return {}
