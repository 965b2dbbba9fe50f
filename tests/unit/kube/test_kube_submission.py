"""Submission by Job: what it is asked, how it brings the jar, and that it is started only once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kube_builders import NIMBUS, managed
from storm_operator.adapters.errors import SubmissionError, SubmissionFailed
from storm_operator.adapters.kube.jobs import JobOutcome, JobPhase, Jobs
from storm_operator.core.lifecycle import FINGERPRINT_KEY
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.kube.managed import Managed
from storm_operator.kube.submission import (
    CLAIM_FOLDER,
    COPIED_JAR,
    ENDING_SECONDS,
    REQUEST_VARIABLE,
    USER_ID,
    JobSettings,
    JobSubmitter,
    job_body,
    job_name,
    submission_request,
)
from storm_operator.kube.submission_pod import SubmissionPod

SHA256 = "0123456789abcdef" * 4
WANTED, OTHER = "abcdef0123456789", "bbcdef0123456789"
JOB = job_name("words", WANTED, NIMBUS)
SETTINGS = JobSettings("x/storm:2.8.3", "Never", "submitter")
BY_PATH = {"jar": {"path": "/opt/words.jar", "mainClass": "a.Words", "args": ["--rate", "5"]}}
BY_CLAIM = {"jar": {"persistentVolumeClaim": {"claimName": "jars", "path": "a/words.jar"}, "mainClass": "a.Words"}}
BY_IMAGE = {"jar": {"image": "x/words:1", "path": "/opt/words.jar", "mainClass": "a.Words"}}
BY_URL = {"jar": {"url": "https://x/words.jar", "sha256": SHA256.upper(), "mainClass": "a.Words"}}
INLINE = {"flux": {"definition": {"name": "words"}, "jar": "/opt/flux.jar"}}
IN_MAP = {
    "flux": {
        "configMap": {"name": "flux", "key": "words.yaml"},
        "jarFrom": {"persistentVolumeClaim": {"claimName": "jars", "path": "a/words.jar"}},
    }
}
IMAGE_FLUX = {"flux": {"definition": {"name": "words"}, "jarFrom": {"image": "x/words:1", "path": "/opt/words.jar"}}}


class FakeJobs(Jobs):
    """Jobs by name; they stand as told."""

    def __init__(self) -> None:
        self.bodies: dict[str, Mapping[str, Any]] = {}
        self.outcomes: dict[str, JobOutcome] = {}
        self.deleted: list[str] = []

    def create(self, namespace: str, body: Mapping[str, Any]) -> bool:
        name = f"{namespace}/{body['metadata']['name']}"
        assert name not in self.bodies
        self.bodies[name] = body
        self.outcomes[name] = JobOutcome(JobPhase.RUNNING)
        return True

    def outcome(self, namespace: str, name: str) -> JobOutcome:
        return self.outcomes.get(f"{namespace}/{name}", JobOutcome(JobPhase.ABSENT))

    def owned_by(self, uid: str, namespace: str, label: str) -> tuple[str, ...]:
        key, _, value = label.partition("=")
        return tuple(
            body["metadata"]["name"]
            for name, body in self.bodies.items()
            if name.startswith(f"{namespace}/")
            and body["metadata"]["labels"][key] == value
            and body["metadata"]["ownerReferences"][0]["uid"] == uid
        )

    def delete(self, namespace: str, name: str, *, pods_first: bool = False) -> None:
        """With `pods_first` the Job stays: its pods take their time, see `pods_end`."""
        self.deleted.append(f"{namespace}/{name}")
        if not pods_first:
            self.pods_end(f"{namespace}/{name}")

    def pods_end(self, name: str) -> None:
        self.outcomes.pop(name)
        self.bodies.pop(name)


def owner(spec: Mapping[str, Any] = BY_PATH, name: str = "words") -> Managed:
    one = managed(name, spec=spec)
    assert one.problem == ""
    return one


def spec_of(one: Managed) -> TopologySpec:
    assert one.spec is not None
    return one.spec


class Submission:
    """One topology, submitted by Jobs."""

    def __init__(self, spec: Mapping[str, Any] = BY_PATH, flux_text: str = "name: words") -> None:
        self.owner = owner(spec)
        self.spec = spec_of(self.owner)
        self.jobs = FakeJobs()
        self.flux_text = flux_text
        self.seconds = 0.0
        self.submitter = JobSubmitter(
            self.jobs, SETTINGS, lambda name: {"words": self.owner}[name], self.read_map, now=lambda: self.seconds
        )

    def read_map(self, namespace: str, name: str, key: str) -> str:
        assert (namespace, name, key) == ("streams", "flux", "words.yaml")
        return self.flux_text

    def submit(self) -> bool:
        return self.submitter.submit(self.spec, WANTED)

    def stands(self, phase: JobPhase, message: str = "") -> str:
        """The only Job's name, now that it stands so."""
        (name,) = self.jobs.outcomes
        self.jobs.outcomes[name] = JobOutcome(phase, message)
        return name


class TestJobSubmitter:
    def test_starts_a_job_beside_the_resource_and_is_not_done(self) -> None:
        played = Submission()
        assert not played.submit()
        assert list(played.jobs.bodies) == [f"streams/{JOB}"]

    def test_starts_none_while_one_runs(self) -> None:
        played = Submission()
        played.submit()
        assert not played.submit()
        assert len(played.jobs.bodies) == 1

    def test_names_the_other_nimbuses_of_the_cluster_where_there_are_any(self) -> None:
        for others in ((), ("nimbus2.example.com:6627",)):
            played = Submission()
            replace(played.submitter, other_nimbuses=others).submit(played.spec, WANTED)
            (body,) = played.jobs.bodies.values()
            assert request_in(body).get("otherNimbuses", []) == list(others)

    @pytest.mark.parametrize(("deadline_seconds", "seconds"), [(900, 870), (40, 20)])
    def test_a_main_class_is_ended_before_kubernetes_ends_its_job_and_takes_the_log_away(
        self, deadline_seconds: int, seconds: float
    ) -> None:
        played = Submission()
        settings = replace(SETTINGS, pod=SubmissionPod(deadline_seconds=deadline_seconds))
        replace(played.submitter, settings=settings).submit(played.spec, WANTED)
        (body,) = played.jobs.bodies.values()
        assert body["spec"]["activeDeadlineSeconds"] == deadline_seconds
        assert request_in(body)["timeoutSeconds"] == seconds

    def test_is_called_off_once_all_its_pods_have_ended(self) -> None:
        played = Submission()
        played.submit()
        assert not played.submitter.call_off(played.owner)
        assert not played.submitter.call_off(played.owner)
        assert set(played.jobs.deleted) == {f"streams/{JOB}"}
        played.jobs.pods_end(f"streams/{JOB}")
        assert played.submitter.call_off(played.owner)

    def test_what_is_wanted_no_more_has_ended_before_anything_else_is_begun(self) -> None:
        played = Submission()
        played.submit()
        for _ in range(2):
            assert not played.submitter.submit(played.spec, OTHER)
            assert list(played.jobs.bodies) == [f"streams/{JOB}"]
        assert set(played.jobs.deleted) == {f"streams/{JOB}"}
        played.jobs.pods_end(f"streams/{JOB}")
        assert not played.submitter.submit(played.spec, OTHER)
        assert list(played.jobs.bodies) == [f"streams/{job_name('words', OTHER, NIMBUS)}"]

    def test_what_was_called_off_and_does_not_end_is_told_with_its_name(self) -> None:
        played = Submission()
        played.submit()
        assert not played.submitter.submit(played.spec, OTHER)
        played.seconds = ENDING_SECONDS
        words = f"^submission job streams/{JOB} was called off, and its pod has not ended"
        with pytest.raises(SubmissionError, match=words):
            played.submitter.submit(played.spec, OTHER)
        with pytest.raises(SubmissionError, match=words):
            played.submitter.withdraw(played.spec)
        played.jobs.pods_end(f"streams/{JOB}")
        assert not played.submitter.submit(played.spec, OTHER)
        assert not played.submit(), "this one has only just been called off"
        assert list(played.jobs.bodies) == [f"streams/{job_name('words', OTHER, NIMBUS)}"]

    def test_what_is_wanted_again_after_it_was_called_off_is_begun_anew_once_it_has_ended(self) -> None:
        played = Submission()
        played.submit()
        assert not played.submitter.withdraw(played.spec)
        played.stands(JobPhase.FAILED, "its pod was ended")
        assert not played.submit(), "that was no failure of its own"
        played.seconds = ENDING_SECONDS
        with pytest.raises(SubmissionError, match="was called off, and its pod has not ended"):
            played.submit()
        played.jobs.pods_end(f"streams/{JOB}")
        assert not played.submit()
        assert list(played.jobs.bodies) == [f"streams/{JOB}"]

    def test_what_is_given_up_since_another_nimbus_is_named_has_ended_before_it_is_begun_again(self) -> None:
        played = Submission()
        played.submit()
        played.submitter.give_up(replace(played.owner, nimbus="other:6627"))
        assert played.jobs.deleted == [f"streams/{JOB}"]
        assert played.submitter.last == {}
        played.stands(JobPhase.FAILED, "its pod was ended")
        assert not played.submit(), "that was no failure of its own"
        played.jobs.pods_end(f"streams/{JOB}")
        assert not played.submit()
        assert list(played.jobs.bodies) == [f"streams/{JOB}"]

    def test_what_was_begun_for_another_nimbus_is_ended_first_and_is_no_submission_here(self) -> None:
        played = Submission()
        played.submit()
        played.stands(JobPhase.SUCCEEDED)
        played.owner = replace(played.owner, nimbus="other:6627")
        assert not played.submit()
        assert played.jobs.deleted == [f"streams/{JOB}"]
        played.jobs.pods_end(f"streams/{JOB}")
        assert not played.submit()
        (body,) = played.jobs.bodies.values()
        assert request_in(body)["nimbus"] == "other:6627"

    def test_next_life_of_the_operator_calls_off_what_an_earlier_one_began(self) -> None:
        first, second = Submission(), Submission()
        first.submit()
        second.jobs.bodies, second.jobs.outcomes = first.jobs.bodies, first.jobs.outcomes
        assert not second.submitter.call_off(second.owner)
        assert second.jobs.deleted == [f"streams/{JOB}"]

    def test_next_life_of_the_operator_finds_the_job_that_is_under_way(self) -> None:
        first, second = Submission(), Submission()
        first.submit()
        second.jobs.outcomes, second.jobs.bodies = first.jobs.outcomes, first.jobs.bodies
        assert not second.submit()
        assert len(first.jobs.bodies) == 1

    def test_says_what_a_job_waits_for_and_leaves_it(self) -> None:
        played = Submission()
        played.submit()
        played.stands(JobPhase.RUNNING, "ImagePullBackOff: x/storm:2.8.3")
        with pytest.raises(SubmissionError, match=rf"{JOB} waits: ImagePullBackOff: x/storm"):
            played.submit()
        assert played.jobs.deleted == []

    def test_failed_job_is_told_with_its_log_and_removed(self) -> None:
        played = Submission()
        played.submit()
        name = played.stands(JobPhase.FAILED, "java.lang.Error\nno class a.Words")
        with pytest.raises(SubmissionFailed) as caught:
            played.submit()
        assert str(caught.value) == f"submission job {JOB} failed: no class a.Words\njava.lang.Error"
        assert played.jobs.deleted == [name]

    def test_try_after_a_failed_one_begins_anew(self) -> None:
        played = Submission()
        played.submit()
        played.stands(JobPhase.FAILED)
        with pytest.raises(SubmissionFailed):
            played.submit()
        assert not played.submit()
        assert len(played.jobs.bodies) == 1

    def test_is_done_when_the_job_is_and_removes_it(self) -> None:
        played = Submission()
        played.submit()
        name = played.stands(JobPhase.SUCCEEDED)
        assert played.submit()
        assert played.jobs.deleted == [name]

    def test_remembers_the_last_job_for_the_status(self) -> None:
        played = Submission()
        played.submit()
        assert played.submitter.last == {played.owner.uid: (JOB, WANTED)}

    def test_jobs_of_resources_that_are_gone_are_forgotten(self) -> None:
        played = Submission()
        played.submit()
        played.submitter.call_off(played.owner)
        played.submitter.forget_all_but({played.owner.uid})
        assert played.submitter.last.keys() == played.submitter.called_off.keys() == {played.owner.uid}
        played.submitter.forget_all_but({"uid-other"})
        assert (played.submitter.last, played.submitter.called_off) == ({}, {})

    def test_flux_definition_is_read_from_its_config_map(self) -> None:
        played = Submission(IN_MAP, flux_text="name: words\nbolts: []")
        played.submit()
        (body,) = played.jobs.bodies.values()
        assert request_in(body)["flux"] == "name: words\nbolts: []"


class TestFingerprint:
    def test_of_an_adopted_topology_is_always_the_same(self) -> None:
        played = Submission({"adopt": {}})
        assert played.submitter.fingerprint(played.spec) == "adopted"

    def test_of_more_than_a_job_can_carry_is_refused_before_anything_is_killed_for_it(self) -> None:
        just, beyond = (Submission(IN_MAP, flux_text=f"name: words {'x' * length}") for length in (130_000, 131_072))
        assert just.submitter.fingerprint(just.spec)
        with pytest.raises(SubmissionError, match=r"spec.flux.* is 13\d{4} bytes as JSON, and a Job takes 131048"):
            beyond.submitter.fingerprint(beyond.spec)

    def test_changes_with_the_text_in_the_config_map(self) -> None:
        one, same, other = Submission(IN_MAP), Submission(IN_MAP), Submission(IN_MAP, flux_text="name: words\nx: 1")
        assert one.submitter.fingerprint(one.spec) == same.submitter.fingerprint(same.spec)
        assert one.submitter.fingerprint(one.spec) != other.submitter.fingerprint(other.spec)

    @pytest.mark.parametrize("change", [{"path": "/opt/other.jar"}, {"args": ["a"]}, {"image": "x/words:2"}])
    def test_changes_with_what_the_spec_says_of_the_jar(self, change: dict[str, Any]) -> None:
        one, other = Submission(BY_IMAGE), Submission({"jar": {**BY_IMAGE["jar"], **change}})
        assert one.submitter.fingerprint(one.spec) != other.submitter.fingerprint(other.spec)

    def test_does_not_change_with_settings(self) -> None:
        one, tuned = Submission(), Submission({**BY_PATH, "scheduling": {"periodSeconds": 5}})
        assert one.submitter.fingerprint(one.spec) == tuned.submitter.fingerprint(tuned.spec)


class TestJobName:
    @pytest.mark.parametrize("resource", ["words", "w" * 63, "a" * 39 + "-b", "a" * 39 + ".b", "words.v2", "a" * 253])
    def test_is_one_that_pods_can_carry_as_a_label(self, resource: str) -> None:
        name = job_name(resource, WANTED, NIMBUS)
        assert len(name) <= 63
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)

    def test_is_the_same_for_the_same_and_another_for_another(self) -> None:
        assert job_name("words", WANTED, NIMBUS) == job_name("words", WANTED, NIMBUS)
        assert job_name("words", WANTED, NIMBUS) != job_name("words", OTHER, NIMBUS)
        assert job_name("words", WANTED, NIMBUS) != job_name("other", WANTED, NIMBUS)

    @pytest.mark.parametrize(("one", "other"), [("w" * 40 + "-west", "w" * 40 + "-east"), ("words.v2", "words-v2")])
    def test_is_another_for_another_resource_that_is_made_from_the_same(self, one: str, other: str) -> None:
        assert job_name(one, WANTED, NIMBUS) != job_name(other, WANTED, NIMBUS)


def request_for(spec: Mapping[str, Any], flux_text: str | None = None) -> dict[str, Any]:
    return submission_request(spec_of(owner(spec)), "print", NIMBUS, flux_text)


class TestRequest:
    def test_of_a_jar_in_the_storm_image(self) -> None:
        assert request_for(BY_PATH) == {
            "topology": "words",
            "nimbus": NIMBUS,
            "conf": {FINGERPRINT_KEY: "print"},
            "jar": {"path": "/opt/words.jar"},
            "mainClass": "a.Words",
            "args": ["--rate", "5"],
        }

    def test_jar_by_url_comes_with_its_hash(self) -> None:
        assert request_for(BY_URL)["jar"] == {"url": "https://x/words.jar", "sha256": SHA256}

    def test_jar_in_a_claim_is_where_the_claim_is_mounted(self) -> None:
        assert request_for(BY_CLAIM)["jar"] == {"path": f"{CLAIM_FOLDER}/a/words.jar"}

    def test_jar_in_another_image_is_where_it_is_copied_to(self) -> None:
        assert request_for(BY_IMAGE)["jar"] == {"path": COPIED_JAR}

    def test_of_a_flux_definition(self) -> None:
        request = request_for(INLINE, "name: words")
        assert (request["jar"], request["flux"]) == ({"path": "/opt/flux.jar"}, "name: words")
        assert "mainClass" not in request

    def test_config_of_the_spec_goes_along_but_cannot_change_the_fingerprint(self) -> None:
        conf = {"topology.debug": True, FINGERPRINT_KEY: "mine"}
        assert request_for({**BY_PATH, "config": conf})["conf"] == {"topology.debug": True, FINGERPRINT_KEY: "print"}


def body_for(
    spec: Mapping[str, Any],
    name: str = "words",
    request: Mapping[str, Any] | None = None,
    pod: SubmissionPod | None = None,
) -> dict[str, Any]:
    one = owner(spec, name)
    settings = replace(SETTINGS, pod=pod or SubmissionPod())
    return job_body(one, "the-job", spec_of(one), request or {"topology": "words"}, settings)


def pod_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    pod: Mapping[str, Any] = body["spec"]["template"]["spec"]
    return pod


def request_in(body: Mapping[str, Any]) -> dict[str, Any]:
    (variable,) = pod_of(body)["containers"][0]["env"]
    assert variable["name"] == REQUEST_VARIABLE
    request: dict[str, Any] = json.loads(variable["value"])
    return request


def mounts_of(body: Mapping[str, Any]) -> set[str]:
    return {mount["name"] for mount in pod_of(body)["containers"][0]["volumeMounts"]}


class TestJobBody:
    def test_runs_the_submission_once_in_the_storm_image(self) -> None:
        body = body_for(BY_PATH)
        (container,) = pod_of(body)["containers"]
        assert (container["image"], container["imagePullPolicy"]) == ("x/storm:2.8.3", "Never")
        assert container["command"] == ["storm-operator", "submit"]
        assert (body["spec"]["backoffLimit"], pod_of(body)["restartPolicy"]) == (0, "Never")

    def test_its_pod_has_what_the_administrator_gives(self) -> None:
        pod = SubmissionPod(
            resources={"limits": {"memory": "1Gi"}},
            node_selector={"disk": "ssd"},
            tolerations=({"operator": "Exists"},),
            image_pull_secrets=({"name": "registry"},),
            deadline_seconds=900,
        )
        body = body_for(BY_IMAGE, pod=pod)
        spec = pod_of(body)
        assert [one["resources"] for one in (*spec["containers"], *spec["initContainers"])] == 2 * [
            {"limits": {"memory": "1Gi"}}
        ]
        assert (spec["nodeSelector"], spec["tolerations"]) == ({"disk": "ssd"}, [{"operator": "Exists"}])
        assert spec["imagePullSecrets"] == [{"name": "registry"}]
        assert body["spec"]["activeDeadlineSeconds"] == 900

    def test_its_pod_has_no_more_than_that(self) -> None:
        spec = pod_of(body_for(BY_IMAGE))
        assert spec.keys().isdisjoint({"nodeSelector", "tolerations", "imagePullSecrets"})
        assert "resources" not in spec["containers"][0]

    def test_goes_with_its_resource(self) -> None:
        (reference,) = body_for(BY_PATH)["metadata"]["ownerReferences"]
        assert (reference["kind"], reference["name"], reference["uid"]) == ("StormTopology", "words", "uid-words")

    def test_may_do_nothing_but_run(self) -> None:
        for container in (*pod_of(body_for(BY_IMAGE))["containers"], *pod_of(body_for(BY_IMAGE))["initContainers"]):
            security = container["securityContext"]
            assert security["allowPrivilegeEscalation"] is False
            assert security["capabilities"] == {"drop": ["ALL"]}
        pod = pod_of(body_for(BY_PATH))
        assert pod["securityContext"]["runAsUser"] == USER_ID
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        assert pod["serviceAccountName"] == "submitter"

    def test_jar_in_the_storm_image_needs_no_volume(self) -> None:
        assert mounts_of(body_for(BY_PATH)) == {"tmp"}
        assert "initContainers" not in pod_of(body_for(BY_PATH))

    def test_jar_by_url_needs_no_volume(self) -> None:
        assert mounts_of(body_for(BY_URL)) == {"tmp"}

    @pytest.mark.parametrize("spec", [BY_CLAIM, IN_MAP], ids=["jar", "flux"])
    def test_claim_is_mounted_read_only(self, spec: dict[str, Any]) -> None:
        body = body_for(spec)
        claims = [volume for volume in pod_of(body)["volumes"] if "persistentVolumeClaim" in volume]
        assert claims == [{"name": "claim", "persistentVolumeClaim": {"claimName": "jars", "readOnly": True}}]
        mount = {"name": "claim", "mountPath": CLAIM_FOLDER, "readOnly": True}
        assert mount in pod_of(body)["containers"][0]["volumeMounts"]

    @pytest.mark.parametrize("spec", [BY_IMAGE, IMAGE_FLUX], ids=["jar", "flux"])
    def test_jar_of_another_image_is_copied_out_of_it(self, spec: dict[str, Any]) -> None:
        body = body_for(spec)
        (copy,) = pod_of(body)["initContainers"]
        assert copy["image"] == "x/words:1"
        assert copy["command"] == ["cp", "/opt/words.jar", COPIED_JAR]
        assert {mount["name"] for mount in copy["volumeMounts"]} == {"jar"} <= mounts_of(body)

    def test_request_arrives_as_it_was_whatever_is_in_it(self) -> None:
        # Kubernetes replaces $(NAME), and $$ by $, in values of variables.
        request = {"mainClass": "a.Words$Main", "args": ["$(HOME)", "$$", "a\nb", "ü"]}
        body = body_for(BY_PATH, request=request)
        assert request_in(body) == request
        assert "$" not in pod_of(body)["containers"][0]["env"][0]["value"]

    @pytest.mark.parametrize("name", ["words", "w" * 62 + "-words", "w" * 62 + ".words"])
    def test_labels_are_ones_that_kubernetes_takes(self, name: str) -> None:
        body = body_for({**BY_PATH, "topologyName": "words"}, name)
        for labels in (body["metadata"]["labels"], body["spec"]["template"]["metadata"]["labels"]):
            assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", labels["storm-operator.dev/topology"])


def test_what_is_withdrawn_is_gone_once_its_pods_are() -> None:
    submission = Submission()
    assert submission.submitter.withdraw(submission.spec)
    submission.submitter.submit(submission.spec, WANTED)
    assert not submission.submitter.withdraw(submission.spec)
    submission.jobs.pods_end(*submission.jobs.deleted)
    assert submission.submitter.withdraw(submission.spec)
