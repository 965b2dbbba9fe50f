"""Good and bad values of every field of StormTopology's spec, and specs that lack a required one."""

from __future__ import annotations

from crd_cases import (
    CLAIM,
    SHA256,
    Case,
    Spec,
    adopt,
    auto_approve,
    component,
    flux,
    jar,
    scheduling,
    window,
)

REFERENCE = {"name": "words", "key": "flux.yaml"}
LIMITS = {"minimum": 1, "maximum": 2}


def without(fields: Spec, name: str) -> Spec:
    return {key: value for key, value in fields.items() if key != name}


REQUIRED = (
    Case("spec.jar", jar(), {"jar": {"path": "/a.jar"}}, "mainClass"),
    *(
        Case(
            "spec.jar.persistentVolumeClaim",
            jar(persistentVolumeClaim=CLAIM),
            jar(persistentVolumeClaim=without(CLAIM, name)),
            name,
        )
        for name in CLAIM
    ),
    *(
        Case("spec.flux.configMap", flux(configMap=REFERENCE), flux(configMap=without(REFERENCE, name)), name)
        for name in REFERENCE
    ),
    Case(
        "spec.learnedProfile",
        adopt(learnedProfile={"configMap": {"name": "learned"}}),
        adopt(learnedProfile={}),
        "configMap",
    ),
    Case(
        "spec.learnedProfile.configMap",
        adopt(learnedProfile={"configMap": {"name": "learned"}}),
        adopt(learnedProfile={"configMap": {"key": "p"}}),
        "name",
    ),
    *(
        Case("spec.supervisors", adopt(supervisors=LIMITS), adopt(supervisors=without(LIMITS, name)), name)
        for name in LIMITS
    ),
    *(
        Case("spec.scheduling.excludedWindows[0]", window(), scheduling(excludedWindows=[fields]), name)
        for name, fields in (("cron", {"durationSeconds": 60}), ("durationSeconds", {"cron": "0 8 * * *"}))
    ),
)

FIELDS = (
    Case("spec.topologyName", adopt(topologyName="words_2"), adopt(topologyName="a/b")),
    Case("spec.nimbus", adopt(nimbus="nimbus.storm"), adopt(nimbus="nimbus:many")),
    Case("spec.nimbus", adopt(nimbus="[fd00::7]"), adopt(nimbus="fd00::7")),
    Case("spec.nimbus", adopt(nimbus="[::ffff:10.0.0.7]:6627"), adopt(nimbus="[nimbus]:6627")),
    Case("spec.nimbus", adopt(nimbus="nimbus:6627"), adopt(nimbus="nimbus:6627\n")),
    Case("spec.jar.path", jar(path="/a.jar"), jar(path="")),
    Case("spec.jar.image", jar(image="x/words:1"), jar(image="x words")),
    Case("spec.jar.url", jar(url="https://x/a.jar", sha256=SHA256), jar(url="ftp://x/a.jar", sha256=SHA256)),
    Case("spec.jar.sha256", jar(url="https://x/a", sha256=SHA256.upper()), jar(url="https://x/a", sha256="abc")),
    Case(
        "spec.jar.persistentVolumeClaim.claimName",
        jar(persistentVolumeClaim=CLAIM),
        jar(persistentVolumeClaim={**CLAIM, "claimName": ""}),
    ),
    Case(
        "spec.jar.persistentVolumeClaim.path",
        jar(persistentVolumeClaim=CLAIM),
        jar(persistentVolumeClaim={**CLAIM, "path": ""}),
    ),
    Case("spec.jar.mainClass", jar(mainClass="a.b.Words$Main"), jar(mainClass="a/b.class")),
    Case("spec.jar.mainClass", jar(mainClass="a.Words"), jar(mainClass="a.Words\n")),
    Case("spec.jar.mainClass", jar(mainClass="a.Woerter"), jar(mainClass="a.W\u00f6rter")),
    Case("spec.jar.args", jar(args=["--rate", "5"]), jar(args="--rate 5")),
    Case("spec.flux.definition", flux(definition={"anything": [1]}), flux(definition="name: words")),
    Case(
        "spec.flux.configMap.name",
        flux(configMap=REFERENCE),
        flux(configMap={"name": "", "key": "k"}),
    ),
    Case(
        "spec.flux.configMap.key",
        flux(configMap=REFERENCE),
        flux(configMap={"name": "words", "key": ""}),
    ),
    Case(
        "spec.learnedProfile.configMap.name",
        adopt(learnedProfile={"configMap": {"name": "learned"}}),
        adopt(learnedProfile={"configMap": {"name": ""}}),
    ),
    Case(
        "spec.learnedProfile.configMap.key",
        adopt(learnedProfile={"configMap": {"name": "learned", "key": "p"}}),
        adopt(learnedProfile={"configMap": {"name": "learned", "key": ""}}),
    ),
    Case("spec.flux.path", flux(), flux(path="")),
    Case("spec.flux.jar", flux(jar="/a.jar"), flux(jar="")),
    Case("spec.flux.jarFrom.path", flux(jarFrom={"path": "/a.jar"}), flux(jarFrom={"path": ""})),
    Case(
        "spec.flux.jarFrom.image",
        flux(jarFrom={"path": "/a.jar", "image": "x/words@sha256:1"}),
        flux(jarFrom={"path": "/a.jar", "image": ""}),
    ),
    Case(
        "spec.flux.jarFrom.url",
        flux(jarFrom={"url": "https://x/a", "sha256": SHA256}),
        flux(jarFrom={"url": "x/a", "sha256": SHA256}),
    ),
    Case(
        "spec.flux.jarFrom.sha256",
        flux(jarFrom={"url": "https://x/a", "sha256": SHA256}),
        flux(jarFrom={"url": "https://x/a", "sha256": SHA256 + "0"}),
    ),
    Case(
        "spec.flux.jarFrom.persistentVolumeClaim.claimName",
        flux(jarFrom={"persistentVolumeClaim": CLAIM}),
        flux(jarFrom={"persistentVolumeClaim": {**CLAIM, "claimName": ""}}),
    ),
    Case(
        "spec.flux.jarFrom.persistentVolumeClaim.path",
        flux(jarFrom={"persistentVolumeClaim": CLAIM}),
        flux(jarFrom={"persistentVolumeClaim": {**CLAIM, "path": ""}}),
    ),
    Case("spec.adopt", adopt(), {"adopt": True}),
    Case("spec.config", jar() | {"config": {"topology.workers": 2}}, jar() | {"config": "topology.workers=2"}),
    Case("spec.stateful.stateful", adopt(stateful={"stateful": ["a"]}), adopt(stateful={"stateful": "a"})),
    Case("spec.stateful.stateless", adopt(stateful={"stateless": ["a"]}), adopt(stateful={"stateless": "a"})),
    Case("spec.suspend", adopt(suspend=True), adopt(suspend="yes")),
    Case("spec.priority", adopt(priority=-1000), adopt(priority=1001)),
    Case("spec.killWaitSeconds", adopt(killWaitSeconds=0), adopt(killWaitSeconds=-1)),
    Case("spec.deletionPolicy", adopt(deletionPolicy="Leave"), adopt(deletionPolicy="Keep")),
    Case("spec.rebalanceHistoryLimit", adopt(rebalanceHistoryLimit=0), adopt(rebalanceHistoryLimit=-1)),
    Case(
        "spec.supervisors.minimum",
        adopt(supervisors={"minimum": 1, "maximum": 2}),
        adopt(supervisors={"minimum": 0, "maximum": 2}),
    ),
    Case(
        "spec.supervisors.maximum",
        adopt(supervisors={"minimum": 1, "maximum": 10000}),
        adopt(supervisors={"minimum": 1, "maximum": 10001}),
    ),
    Case(
        "spec.supervisors.statefulSet",
        adopt(supervisors={"minimum": 1, "maximum": 2, "statefulSet": "storm-supervisor"}),
        adopt(supervisors={"minimum": 1, "maximum": 2, "statefulSet": "storm/supervisor"}),
    ),
    Case("spec.parallelism.mode", adopt(parallelism={"mode": "Auto"}), adopt(parallelism={"mode": "Free"})),
    Case("spec.parallelism.workers", adopt(parallelism={"workers": 1}), adopt(parallelism={"workers": 0})),
    Case("spec.parallelism.components.count.executors", component(executors=1), component(executors=0)),
    Case("spec.parallelism.components.count.minimum", component(minimum=1), component(minimum=0)),
    Case("spec.parallelism.components.count.maximum", component(maximum=1), component(maximum=0)),
    Case("spec.scheduling.policy", scheduling(policy="liu"), scheduling(policy="best")),
    Case("spec.scheduling.mode", scheduling(mode="Observe"), scheduling(mode="observe")),
    Case("spec.scheduling.approval.mode", scheduling(approval={"mode": "Manual"}), scheduling(approval={"mode": "No"})),
    Case(
        "spec.scheduling.approval.autoApproveWhen.minimumGainPercent",
        auto_approve(minimumGainPercent=100),
        auto_approve(minimumGainPercent=101),
    ),
    Case(
        "spec.scheduling.approval.autoApproveWhen.maximumRestartedWorkers",
        auto_approve(maximumRestartedWorkers=0),
        auto_approve(maximumRestartedWorkers=1.5),
    ),
    Case(
        "spec.scheduling.approval.autoApproveWhen.maximumPaybackSeconds",
        auto_approve(maximumPaybackSeconds=0.5),
        auto_approve(maximumPaybackSeconds=-1),
    ),
    Case("spec.scheduling.excludedWindows[0].cron", window(), window(cron=8)),
    Case("spec.scheduling.excludedWindows[0].durationSeconds", window(), window(durationSeconds=59)),
    Case("spec.scheduling.excludedWindows[0].timeZone", window(timeZone="Europe/Berlin"), window(timeZone="")),
    Case("spec.scheduling.applyMethod", scheduling(applyMethod="Drain"), scheduling(applyMethod="Kill")),
    Case("spec.scheduling.separation", scheduling(separation="Never"), scheduling(separation="Sometimes")),
    Case("spec.scheduling.trigger", scheduling(trigger="Policy"), scheduling(trigger="policy")),
    Case("spec.scheduling.forecast", scheduling(forecast="Line"), scheduling(forecast="line")),
    Case("spec.scheduling.periodSeconds", scheduling(periodSeconds=1.5), scheduling(periodSeconds=0)),
    Case("spec.scheduling.coolDownSeconds", scheduling(coolDownSeconds=0), scheduling(coolDownSeconds=-1)),
    Case("spec.scheduling.minimumGainPercent", scheduling(minimumGainPercent=0), scheduling(minimumGainPercent=-1)),
    Case(
        "spec.scheduling.maximumPaybackSeconds",
        scheduling(maximumPaybackSeconds=1),
        scheduling(maximumPaybackSeconds="1"),
    ),
    Case(
        "spec.scheduling.rollbackMarginPercent",
        scheduling(rollbackMarginPercent=0),
        scheduling(rollbackMarginPercent=-1),
    ),
    Case("spec.scheduling.settlingSeconds", scheduling(settlingSeconds=0), scheduling(settlingSeconds=-1)),
    Case("spec.scheduling.historyPeriods", scheduling(historyPeriods=60), scheduling(historyPeriods=61)),
    Case(
        "spec.scheduling.minimumCompleteness", scheduling(minimumCompleteness=0.5), scheduling(minimumCompleteness=1.1)
    ),
    Case("spec.scheduling.maximumAgeSeconds", scheduling(maximumAgeSeconds=1), scheduling(maximumAgeSeconds=0)),
    Case("spec.scheduling.minimumPeriods", scheduling(minimumPeriods=20), scheduling(minimumPeriods=0)),
    Case("spec.scheduling.peakSeconds", scheduling(peakSeconds=1), scheduling(peakSeconds=0)),
    Case("spec.scheduling.roomPeakSeconds", scheduling(roomPeakSeconds=1), scheduling(roomPeakSeconds=0)),
    Case("spec.scheduling.spareFraction", scheduling(spareFraction=0.5), scheduling(spareFraction=-0.1)),
    Case("spec.scheduling.headroomFraction", scheduling(headroomFraction=0.05), scheduling(headroomFraction=0)),
    Case("spec.scheduling.expectedLifeSeconds", scheduling(expectedLifeSeconds=1), scheduling(expectedLifeSeconds=0)),
    Case(
        "spec.scheduling.parameters.alpha",
        scheduling(policy="aniello-offline", parameters={"alpha": 0.5}),
        scheduling(policy="aniello-offline", parameters={"alpha": "much"}),
    ),
    Case(
        "spec.scheduling.pinnedComponents",
        scheduling(policy="dqos", pinnedComponents=["camera"]),
        scheduling(policy="dqos", pinnedComponents="camera"),
    ),
    Case(
        "spec.resources.thetaMillicores",
        adopt(resources={"thetaMillicores": 1}),
        adopt(resources={"thetaMillicores": 0}),
    ),
    Case(
        "spec.resources.floorMillicores",
        adopt(resources={"floorMillicores": 0}),
        adopt(resources={"floorMillicores": -1}),
    ),
    Case(
        "spec.resources.ceilingMillicores",
        adopt(resources={"ceilingMillicores": 100}),
        adopt(resources={"ceilingMillicores": 0.5}),
    ),
    Case(
        "spec.resources.enforcement", adopt(resources={"enforcement": "Pod"}), adopt(resources={"enforcement": "Node"})
    ),
)
