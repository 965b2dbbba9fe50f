"""Good and bad StormTopology specs: one of each for every rule of the CRD (crd_field_cases.py: for every field).

The same cases go to the API server (which evaluates the CRD's CEL rules) and to the operator's own reader (which has
their twins in Python), so that neither can drift from the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from storm_operator.adapters.resources import API_VERSION, KIND

Spec = dict[str, Any]
SHA256 = "0123456789abcdef" * 4
CLAIM = {"claimName": "jars", "path": "words/words.jar"}


@dataclass(frozen=True)
class Case:
    """`bad` is refused with an error that names `field` and has `words` in it; `good` is accepted.

    Case `server_only`: what the standalone mode allows.
    """

    field: str
    good: Spec
    bad: Spec
    words: str = ""
    name: str = "words"
    server_only: bool = False

    @property
    def id(self) -> str:
        return f"{self.field}: {self.words}" if self.words else self.field


def document(spec: Mapping[str, Any], name: str = "words") -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": deepcopy(dict(spec))}


def jar(**fields: Any) -> Spec:
    """A jar by its path, unless `fields` say where it is."""
    here = {} if set(fields) & {"path", "url", "persistentVolumeClaim"} else {"path": "/opt/words.jar"}
    return {"jar": {"mainClass": "a.Words", **here, **fields}}


def flux(**fields: Any) -> Spec:
    """An inlined definition, its classes in a jar by its path, unless `fields` say otherwise."""
    definition = {} if set(fields) & {"definition", "configMap", "path"} else {"definition": {"name": "words"}}
    where = {} if set(fields) & {"jar", "jarFrom"} else {"jar": "/opt/words.jar"}
    return {"flux": {**definition, **where, **fields}}


def adopt(**fields: Any) -> Spec:
    return {"adopt": {}, **fields}


def scheduling(**fields: Any) -> Spec:
    return adopt(scheduling=fields)


def window(**fields: Any) -> Spec:
    return scheduling(excludedWindows=[{"cron": "0 8 * * MON-FRI", "durationSeconds": 3600, **fields}])


def auto_approve(**conditions: Any) -> Spec:
    return scheduling(approval={"autoApproveWhen": conditions})


def component(**fields: Any) -> Spec:
    mode = "Fixed" if "executors" in fields else "Auto"
    return adopt(parallelism={"mode": mode, "components": {"count": fields}})


WHERE = "exactly one of path, url and persistentVolumeClaim says where the jar is"
PORT = "the port must be 1 to 65535"
TOGETHER = "url and sha256 belong together"
IMAGE_HOLDS = "image is the image that holds path; give path too"
ABSOLUTE = "in Kubernetes this is a path inside an image and must begin with /"
IN_VOLUME = "must be relative to the root of the volume"
SOURCES = "exactly one of spec.jar, spec.flux and spec.adopt is needed"
DEFINITIONS = "exactly one of spec.flux.definition, spec.flux.configMap and spec.flux.path is needed"
MORE_THAN = "minimum must not be more than maximum"

RULES = (
    Case("spec", jar(), {}, SOURCES),
    Case("spec", flux(), {**jar(), **flux()}, SOURCES),
    Case("spec", adopt(), adopt(**jar()), SOURCES),
    Case(
        "spec.topologyName",
        adopt(topologyName="words"),
        adopt(),
        "Storm allows no dot in a topology's name",
        name="words.v2",
    ),
    Case("spec.nimbus", adopt(nimbus="nimbus:65535"), adopt(nimbus="nimbus:66270"), PORT),
    Case("spec.nimbus", adopt(nimbus="nimbus:1"), adopt(nimbus="nimbus:0"), PORT),
    Case("spec.nimbus", adopt(nimbus="[fd00::7]:65535"), adopt(nimbus="[fd00::7]:65536"), PORT),
    Case("spec.nimbus", adopt(nimbus="nimbus"), adopt(nimbus=f"nimbus:{10**40}"), PORT),
    Case("spec.jar", jar(path="/a.jar"), jar(path="/a.jar", url="https://x/a.jar", sha256=SHA256), WHERE),
    Case("spec.jar", jar(persistentVolumeClaim=CLAIM), {"jar": {"mainClass": "a.Words"}}, WHERE),
    Case("spec.jar", jar(url="https://x/a.jar", sha256=SHA256), jar(url="https://x/a.jar"), TOGETHER),
    Case("spec.jar", jar(), jar(sha256=SHA256), TOGETHER),
    Case("spec.jar", jar(image="x/words:1"), jar(image="x/words:1", persistentVolumeClaim=CLAIM), IMAGE_HOLDS),
    Case("spec.jar.path", jar(path="/a.jar"), jar(path="a.jar"), ABSOLUTE, server_only=True),
    Case(
        "spec.jar.persistentVolumeClaim.path",
        jar(persistentVolumeClaim=CLAIM),
        jar(persistentVolumeClaim={**CLAIM, "path": "/a.jar"}),
        IN_VOLUME,
    ),
    Case(
        "spec.jar.persistentVolumeClaim.path",
        jar(persistentVolumeClaim={**CLAIM, "path": "a..b/c.jar"}),
        jar(persistentVolumeClaim={**CLAIM, "path": "a/../../c.jar"}),
        IN_VOLUME,
    ),
    Case("spec.flux", flux(), {"flux": {"jar": "/a.jar"}}, DEFINITIONS),
    Case(
        "spec.flux",
        flux(configMap={"name": "words", "key": "flux.yaml"}),
        flux(configMap={"name": "words", "key": "flux.yaml"}, definition={}),
        DEFINITIONS,
    ),
    Case("spec.flux", flux(), flux(path="words.yaml"), "path is for the standalone mode", server_only=True),
    Case("spec.flux", flux(), {"flux": {"definition": {}}}, "exactly one of jar (a path) and jarFrom"),
    Case(
        "spec.flux",
        flux(jarFrom={"path": "/a.jar"}),
        flux(jar="/a.jar", jarFrom={"path": "/a.jar"}),
        "exactly one of jar (a path) and jarFrom",
    ),
    Case("spec.flux.jar", flux(jar="/a.jar"), flux(jar="a.jar"), ABSOLUTE, server_only=True),
    Case("spec.flux.jarFrom", flux(jarFrom={"path": "/a.jar"}), flux(jarFrom={}), WHERE),
    Case(
        "spec.flux.jarFrom.path",
        flux(jarFrom={"path": "/a.jar"}),
        flux(jarFrom={"path": "a.jar"}),
        ABSOLUTE,
        server_only=True,
    ),
    Case(
        "spec.flux.jarFrom",
        flux(jarFrom={"url": "http://x/a.jar", "sha256": SHA256}),
        flux(jarFrom={"url": "http://x/a.jar"}),
        TOGETHER,
    ),
    Case(
        "spec.flux.jarFrom",
        flux(jarFrom={"image": "x/words:1", "path": "/a.jar"}),
        flux(jarFrom={"image": "x/words:1", "persistentVolumeClaim": CLAIM}),
        IMAGE_HOLDS,
    ),
    Case(
        "spec.flux.jarFrom.persistentVolumeClaim.path",
        flux(jarFrom={"persistentVolumeClaim": CLAIM}),
        flux(jarFrom={"persistentVolumeClaim": {**CLAIM, "path": "../a.jar"}}),
        IN_VOLUME,
    ),
    Case(
        "spec.stateful",
        adopt(stateful={"stateful": ["count"], "stateless": ["split"]}),
        adopt(stateful={"stateful": ["count", "join"], "stateless": ["split", "count"]}),
        "a component cannot be both stateful and stateless",
    ),
    Case(
        "spec.supervisors",
        adopt(supervisors={"minimum": 3, "maximum": 3}),
        adopt(supervisors={"minimum": 4, "maximum": 3}),
        MORE_THAN,
    ),
    Case(
        "spec.parallelism",
        adopt(parallelism={"mode": "Auto", "components": {"count": {"maximum": 4}}}),
        adopt(parallelism={"components": {"split": {"executors": 2}, "count": {"maximum": 4}}}),
        "minimum and maximum of components need mode Auto",
    ),
    Case(
        "spec.parallelism.components.count",
        adopt(parallelism={"mode": "Auto", "components": {"count": {"executors": 2}}}),
        adopt(parallelism={"mode": "Auto", "components": {"count": {"executors": 2, "minimum": 1}}}),
        "give executors, or bounds (minimum, maximum), and not both",
    ),
    Case(
        "spec.parallelism.components.count",
        component(minimum=1),
        adopt(parallelism={"components": {"count": {}}}),
        "give executors, or bounds (minimum, maximum), and not both",
    ),
    Case(
        "spec.parallelism.components.count", component(minimum=2, maximum=2), component(minimum=3, maximum=2), MORE_THAN
    ),
    Case(
        "spec.scheduling.approval",
        scheduling(approval={"mode": "Auto", "autoApproveWhen": {"maximumRestartedWorkers": 2}}),
        scheduling(approval={"mode": "Manual", "autoApproveWhen": {"maximumRestartedWorkers": 2}}),
        "autoApproveWhen needs mode Auto",
    ),
    Case(
        "spec.scheduling.approval.autoApproveWhen",
        auto_approve(minimumGainPercent=30),
        auto_approve(),
        "give at least one of minimumGainPercent, maximumRestartedWorkers and maximumPaybackSeconds",
    ),
    Case(
        "spec.scheduling.excludedWindows[0].cron",
        window(cron="*/15 8-18 1,15 JAN-MAR MON-FRI"),
        window(cron="@daily"),
        "must have five fields",
    ),
    Case(
        "spec.scheduling.headroomFraction",
        scheduling(headroomFraction=0.05),
        scheduling(headroomFraction=0.04),
        "must be at least 0.05",
    ),
    Case(
        "spec.resources",
        adopt(resources={"floorMillicores": 1000}),
        adopt(resources={"floorMillicores": 1001}),
        "floorMillicores must not be more than ceilingMillicores",
    ),
)
