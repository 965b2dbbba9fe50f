"""The pod security level `restricted`, as far as charts can break it (Kubernetes' Pod Security Standards). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functional.charts.chart_objects import containers

ALLOWED_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}


def violations(spec: Mapping[str, Any]) -> list[str]:
    """What of a pod's spec `restricted` forbids, one sentence each."""
    found = [f"{name} is set" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    for volume in spec.get("volumes", ()):
        kinds = set(volume) - {"name"}
        if not kinds <= ALLOWED_VOLUMES:
            found.append(f"volume {volume['name']} is a {', '.join(sorted(kinds))}")
    for container in containers(spec):
        found += [f"{container['name']}: {problem}" for problem in _container_violations(spec, container)]
    return found


def _container_violations(spec: Mapping[str, Any], container: Mapping[str, Any]) -> list[str]:
    own = container.get("securityContext", {})
    context = spec.get("securityContext", {}) | own
    found = []
    if own.get("privileged"):
        found.append("privileged")
    if own.get("allowPrivilegeEscalation") is not False:
        found.append("allows privilege escalation")
    if own.get("capabilities", {}).get("drop") != ["ALL"] or own["capabilities"].get("add"):
        found.append("keeps capabilities")
    if context.get("runAsNonRoot") is not True or context.get("runAsUser") == 0:
        found.append("may run as root")
    if context.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        found.append("has no seccomp profile")
    if any(port.get("hostPort") for port in container.get("ports", ())):
        found.append("takes a port of the host")
    return found
