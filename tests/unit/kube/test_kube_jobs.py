"""How a submission Job stands, as the API tells it: absent, running, waiting, failed with its last words, done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast
from unittest.mock import Mock

import pytest
from kubernetes.client import (
    ApiClient,
    V1ContainerState,
    V1ContainerStateTerminated,
    V1ContainerStateWaiting,
    V1ContainerStatus,
    V1Job,
    V1JobCondition,
    V1JobList,
    V1JobStatus,
    V1ObjectMeta,
    V1OwnerReference,
    V1Pod,
    V1PodCondition,
    V1PodList,
    V1PodStatus,
)

from kube_builders import api_refusal
from storm_operator.adapters.kube import jobs as module
from storm_operator.adapters.kube.errors import KubernetesError
from storm_operator.adapters.kube.jobs import LOG_TAIL_CHARACTERS, JobOutcome, JobPhase, Jobs

BODY = {"metadata": {"name": "words-submit-1"}}


CREATED = datetime(2027, 1, 1, tzinfo=UTC)
NO_POD = (
    "no pod of it could be made: a quota, an admission policy or a missing ServiceAccount, as"
    " `kubectl describe job -n streams words-submit-1` says"
)


def job(*conditions: tuple[str, str, str], failed: int | None = None) -> V1Job:
    """`conditions`: (type, status, message); `failed`: how many pods."""
    found = [V1JobCondition(type=t, status=s, reason="Reason", message=m) for t, s, m in conditions]
    metadata = V1ObjectMeta(creation_timestamp=CREATED)
    return V1Job(metadata=metadata, status=V1JobStatus(conditions=found or None, failed=failed))


def container(
    name: str = "submit",
    *,
    waiting: tuple[str, str | None] | None = None,
    exit_code: int | None = None,
    why: tuple[str | None, str | None] = (None, None),
) -> Any:
    """`why` it ended: reason and message."""
    ended = (
        V1ContainerStateTerminated(exit_code=exit_code, reason=why[0], message=why[1])
        if exit_code is not None
        else None
    )
    state = V1ContainerState(
        waiting=V1ContainerStateWaiting(reason=waiting[0], message=waiting[1]) if waiting else None, terminated=ended
    )
    return V1ContainerStatus(name=name, image="x/storm:1", image_id="", ready=False, restart_count=0, state=state)


def pod(
    name: str = "words-submit-1-a", *, minute: int = 0, containers: Any = None, init: Any = None, conditions: Any = None
) -> V1Pod:
    return V1Pod(
        metadata=V1ObjectMeta(name=name, creation_timestamp=datetime(2027, 1, 1, 0, minute, tzinfo=UTC)),
        status=V1PodStatus(container_statuses=containers, init_container_statuses=init, conditions=conditions),
    )


class Api:
    """Both clients that Jobs uses."""

    def __init__(self) -> None:
        self.batch, self.core = Mock(), Mock()
        self.core.list_namespaced_pod.return_value = V1PodList(items=[])

    def stands(self, found: V1Job, *pods: V1Pod, log: str = "") -> None:
        self.batch.read_namespaced_job.return_value = found
        self.core.list_namespaced_pod.return_value = V1PodList(items=list(pods))
        self.core.read_namespaced_pod_log.return_value = log


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    api = Api()
    monkeypatch.setattr(module, "BatchV1Api", lambda _: api.batch)
    monkeypatch.setattr(module, "CoreV1Api", lambda _: api.core)
    return api


@pytest.fixture
def jobs(api: Api) -> Jobs:
    return Jobs(cast("ApiClient", None), lambda: CREATED + timedelta(seconds=21))


def outcome(jobs: Jobs) -> JobOutcome:
    return jobs.outcome("streams", "words-submit-1")


class TestOutcome:
    def test_absent(self, api: Api, jobs: Jobs) -> None:
        api.batch.read_namespaced_job.side_effect = api_refusal(404)
        assert outcome(jobs) == JobOutcome(JobPhase.ABSENT)

    def test_api_that_does_not_answer_is_no_absent_job(self, api: Api, jobs: Jobs) -> None:
        api.batch.read_namespaced_job.side_effect = api_refusal(503, "overloaded")
        with pytest.raises(KubernetesError, match="read job streams/words-submit-1: overloaded"):
            outcome(jobs)

    def test_running(self, api: Api, jobs: Jobs) -> None:
        api.stands(job(), pod(containers=[container()]))
        assert outcome(jobs) == JobOutcome(JobPhase.RUNNING)

    def test_condition_that_is_not_true_finishes_nothing(self, api: Api, jobs: Jobs) -> None:
        api.stands(job(("Failed", "False", ""), ("Complete", "False", "")), pod())
        assert outcome(jobs) == JobOutcome(JobPhase.RUNNING)

    def test_succeeded(self, api: Api, jobs: Jobs) -> None:
        api.stands(job(("SuccessCriteriaMet", "True", ""), ("Complete", "True", "")))
        assert outcome(jobs) == JobOutcome(JobPhase.SUCCEEDED)


class TestWaiting:
    @pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing"])
    def test_for_its_container_to_begin_is_running(self, api: Api, jobs: Jobs, reason: str) -> None:
        api.stands(job(), pod(containers=[container(waiting=(reason, None))]))
        assert outcome(jobs) == JobOutcome(JobPhase.RUNNING)

    def test_for_an_image_that_cannot_be_pulled(self, api: Api, jobs: Jobs) -> None:
        api.stands(job(), pod(containers=[container(waiting=("ImagePullBackOff", None))]))
        assert outcome(jobs) == JobOutcome(JobPhase.RUNNING, "ImagePullBackOff: x/storm:1")

    def test_for_the_image_that_holds_the_jar(self, api: Api, jobs: Jobs) -> None:
        copy = container("copy-jar", waiting=("ErrImagePull", "no such image"))
        api.stands(job(), pod(init=[copy], containers=[container(waiting=("PodInitializing", None))]))
        assert outcome(jobs) == JobOutcome(JobPhase.RUNNING, "ErrImagePull: no such image")

    def test_for_a_place_or_a_volume(self, api: Api, jobs: Jobs) -> None:
        condition = V1PodCondition(
            type="PodScheduled", status="False", reason="Unschedulable", message="persistentvolumeclaim jars not found"
        )
        api.stands(job(), pod(conditions=[condition]))
        assert outcome(jobs).message == "Unschedulable: persistentvolumeclaim jars not found"

    def test_for_nothing_once_it_has_a_place(self, api: Api, jobs: Jobs) -> None:
        placed = V1PodCondition(type="PodScheduled", status="True", reason="Placed", message="on a node")
        starting = V1PodCondition(type="Ready", status="False", reason="ContainersNotReady", message="soon")
        api.stands(job(), pod(conditions=[placed, starting]))
        assert outcome(jobs).message == ""

    def test_is_told_of_the_newest_pod(self, api: Api, jobs: Jobs) -> None:
        old = pod("a", minute=1, containers=[container(waiting=("ImagePullBackOff", None))])
        api.stands(job(), pod("b", minute=2, containers=[container()]), old)
        assert outcome(jobs).message == ""

    def test_for_a_pod_that_nobody_makes(self, api: Api, jobs: Jobs) -> None:
        api.stands(job())
        assert outcome(jobs) == JobOutcome(JobPhase.RUNNING, f"NoPod: {NO_POD}")

    def test_for_its_turn(self, api: Api, jobs: Jobs) -> None:
        api.stands(job(("Suspended", "True", "Job suspended")))
        assert outcome(jobs) == JobOutcome(JobPhase.RUNNING, "Suspended: Job suspended")

    def test_for_its_first_pod_is_running_for_a_while(self, api: Api) -> None:
        api.stands(job())
        early = Jobs(cast("ApiClient", None), lambda: CREATED + timedelta(seconds=19))
        assert outcome(early) == JobOutcome(JobPhase.RUNNING)

    def test_for_the_end_of_a_job_whose_pod_has_ended_is_running(self, api: Api, jobs: Jobs) -> None:
        api.stands(job(failed=1))
        assert outcome(jobs) == JobOutcome(JobPhase.RUNNING)


class TestFailed:
    FAILED = job(("Failed", "True", "Job has reached the specified backoff limit"))

    def test_says_the_end_of_the_newest_log(self, api: Api, jobs: Jobs) -> None:
        api.stands(self.FAILED, pod("b", minute=2), pod("a", minute=1), log="at a.B\nno class a.B in the jar\n")
        assert outcome(jobs) == JobOutcome(JobPhase.FAILED, "at a.B\nno class a.B in the jar")
        assert api.core.read_namespaced_pod_log.call_args.args == ("b", "streams")

    def test_keeps_the_end_of_a_long_log(self, api: Api, jobs: Jobs) -> None:
        api.stands(self.FAILED, pod(), log="x" * 2 * LOG_TAIL_CHARACTERS + " the reason")
        message = outcome(jobs).message
        assert message.endswith(" the reason")
        assert len(message) == LOG_TAIL_CHARACTERS

    def test_log_is_that_of_the_init_container_that_failed(self, api: Api, jobs: Jobs) -> None:
        api.stands(self.FAILED, pod(init=[container("copy-jar", exit_code=1)]), log="cp: /opt/words.jar: no such file")
        assert outcome(jobs).message == "cp: /opt/words.jar: no such file"
        assert api.core.read_namespaced_pod_log.call_args.kwargs["container"] == "copy-jar"

    def test_log_is_that_of_the_submission_after_a_good_init_container(self, api: Api, jobs: Jobs) -> None:
        api.stands(self.FAILED, pod(init=[container("copy-jar", exit_code=0)]), log="no")
        outcome(jobs)
        assert "container" not in api.core.read_namespaced_pod_log.call_args.kwargs

    def test_without_a_pod_says_why_the_job_failed(self, api: Api, jobs: Jobs) -> None:
        api.stands(job(("Failed", "True", "Job was active longer than specified deadline"), failed=1))
        assert outcome(jobs).message == (
            "Job was active longer than specified deadline; its pod is gone, and its log with it"
        )

    def test_pod_that_was_never_made_is_no_pod_that_is_gone(self, api: Api, jobs: Jobs) -> None:
        api.stands(job(("Failed", "True", "Job was active longer than specified deadline")))
        assert outcome(jobs).message == f"Job was active longer than specified deadline; {NO_POD}"

    def test_log_that_cannot_be_read_is_said(self, api: Api, jobs: Jobs) -> None:
        api.stands(self.FAILED, pod())
        api.core.read_namespaced_pod_log.side_effect = api_refusal(403, "may not get pods/log")
        found = outcome(jobs)
        assert found.phase is JobPhase.FAILED
        assert found.message.startswith("its log cannot be read: ")
        assert "may not get pods/log" in found.message

    def test_empty_log_is_said(self, api: Api, jobs: Jobs) -> None:
        api.stands(self.FAILED, pod(), log="\n")
        assert outcome(jobs).message == "it said nothing"

    @pytest.mark.parametrize("init", [True, False])
    def test_command_that_the_image_does_not_have_is_told(self, api: Api, jobs: Jobs, init: bool) -> None:
        why = 'runc create failed: exec: "storm-operator": executable file not found in $PATH: unknown'
        ended = [container(exit_code=128, why=("StartError", why))]
        waits = [container(waiting=("PodInitializing", None))]
        api.stands(self.FAILED, pod(init=ended, containers=waits) if init else pod(containers=ended))
        assert outcome(jobs).message == f"StartError: {why}"

    def test_too_little_memory_is_told_after_the_log(self, api: Api, jobs: Jobs) -> None:
        killed = container(exit_code=137, why=("OOMKilled", "submitting words\n"))
        api.stands(self.FAILED, pod(containers=[killed]), log="submitting words\n")
        assert outcome(jobs).message == (
            "submitting words\nOOMKilled: it needed more memory than the limit of container submit"
        )

    def test_usual_end_has_no_other_reason_than_the_log(self, api: Api, jobs: Jobs) -> None:
        api.stands(self.FAILED, pod(containers=[container(exit_code=1, why=("Error", "no\n"))]), log="no\n")
        assert outcome(jobs).message == "no"

    def test_pod_that_was_evicted_says_so_though_its_log_is_gone(self, api: Api, jobs: Jobs) -> None:
        evicted = pod(containers=[container(exit_code=137, why=("Error", None))])
        assert evicted.status is not None
        evicted.status.reason, evicted.status.message = "Evicted", "The node was low on resource: memory."
        api.stands(self.FAILED, evicted)
        api.core.read_namespaced_pod_log.side_effect = api_refusal(404, "no such log")
        log, why = outcome(jobs).message.splitlines()
        assert log.startswith("its log cannot be read: ")
        assert why == "Evicted: The node was low on resource: memory."


class TestCreateAndDelete:
    def test_job_that_is_there_already_is_not_made_again(self, api: Api, jobs: Jobs) -> None:
        assert jobs.create("streams", BODY)
        api.batch.create_namespaced_job.side_effect = api_refusal(409)
        assert not jobs.create("streams", BODY)

    def test_refused_job_is_an_error(self, api: Api, jobs: Jobs) -> None:
        api.batch.create_namespaced_job.side_effect = api_refusal(422, "spec.template invalid")
        with pytest.raises(KubernetesError, match=r"create job streams/words-submit-1: spec.template invalid"):
            jobs.create("streams", BODY)

    def test_deletion_takes_the_pods_with_it(self, api: Api, jobs: Jobs) -> None:
        jobs.delete("streams", "words-submit-1")
        assert api.batch.delete_namespaced_job.call_args.kwargs["propagation_policy"] == "Background"

    def test_deletion_can_keep_the_job_until_its_pods_are_gone(self, api: Api, jobs: Jobs) -> None:
        jobs.delete("streams", "words-submit-1", pods_first=True)
        assert api.batch.delete_namespaced_job.call_args.kwargs["propagation_policy"] == "Foreground"

    def test_jobs_of_a_resource_are_those_that_it_owns_whatever_their_label(self, api: Api, jobs: Jobs) -> None:
        def of(name: str, *owners: str) -> V1Job:
            references = [V1OwnerReference(api_version="a/v1", kind="A", name="a", uid=uid) for uid in owners]
            return V1Job(metadata=V1ObjectMeta(name=name, owner_references=references or None))

        found = V1JobList(items=[of("b", "u"), of("a", "other", "u"), of("c", "earlier"), of("d")])
        api.batch.list_namespaced_job.return_value = found
        assert jobs.owned_by("u", "streams", "topology=words") == ("a", "b")
        assert api.batch.list_namespaced_job.call_args.kwargs["label_selector"] == "topology=words"

    def test_job_that_is_gone_is_none_to_delete(self, api: Api, jobs: Jobs) -> None:
        api.batch.delete_namespaced_job.side_effect = api_refusal(404)
        jobs.delete("streams", "words-submit-1")
