"""What of a StormTopology has no meaning without Kubernetes, and what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ASKED_ON_THE_PAGE = "say scheduling.mode Recommend: plans then wait for a yes on the page (standalone --page-approval)"


@dataclass(frozen=True, slots=True)
class KubernetesOnly:
    """A field below spec (or one `value` of it) that needs Kubernetes."""

    field: str
    instead: str
    value: str | None = None

    def sentence(self) -> str:
        if self.value is None:
            return f"spec.{self.field} needs Kubernetes; {self.instead}"
        return f"spec.{self.field} is {self.value!r}, which needs Kubernetes; {self.instead}"


FIELDS = (
    KubernetesOnly("jar.url", "download the jar and give spec.jar.path"),
    KubernetesOnly("jar.persistentVolumeClaim", "give spec.jar.path"),
    KubernetesOnly("jar.image", "spec.jar.path is a path on this machine here"),
    KubernetesOnly("flux.configMap", "give spec.flux.path or spec.flux.definition"),
    KubernetesOnly("flux.jarFrom", "give spec.flux.jar"),
    KubernetesOnly("learnedProfile", "give standalone --profile FILE"),
    KubernetesOnly("supervisors", "here the number of supervisors is yours to choose"),
    KubernetesOnly("rebalanceHistoryLimit", "here plans are said on the terminal and not kept"),
    KubernetesOnly("scheduling.approval.autoApproveWhen", ASKED_ON_THE_PAGE),
    KubernetesOnly("scheduling.approval.mode", ASKED_ON_THE_PAGE, "Manual"),
    KubernetesOnly("deletionPolicy", "here a topology whose file goes is left running", "Kill"),
    KubernetesOnly("resources.enforcement", "say None or Executor", "Pod"),
)


def kubernetes_only(document: Mapping[str, Any]) -> list[str]:
    """A sentence for every such field that a StormTopology (as its user wrote it) has."""
    return [entry.sentence() for entry in FIELDS if _concerns(entry, document)]


def _concerns(entry: KubernetesOnly, document: Mapping[str, Any]) -> bool:
    value: Any = document
    for name in ("spec", *entry.field.split(".")):
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return entry.value is None or value == entry.value
