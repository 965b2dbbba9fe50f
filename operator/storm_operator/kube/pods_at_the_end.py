"""Supervisor pods get their own CPU again when the loop of their cluster ends for good."""

from __future__ import annotations

from collections.abc import Callable

from storm_operator.adapters.errors import AdapterError
from storm_operator.kube.cluster_care import ClusterCare

PAUSES_SECONDS = (1.0, 2.0, 4.0)
"""Pods are looked at after each of these, too: what was asked for may be refused, or take the kubelet a moment; and a
request may be given back only after the limit. `runners.END_SECONDS` is what the end of all may take."""


def give_back_pods(care: ClusterCare, confirm: Callable[[], None], sleep: Callable[[float], object]) -> None:
    """Until none is held, so often at most; one answer that fails does not end it. `confirm` raises where another
    manages the cluster."""
    care.limits.forget_refusals()
    for seconds in (0.0, *PAUSES_SECONDS):
        sleep(seconds)
        try:
            confirm()
            if care.release_what_is_seen():
                return
        except AdapterError as error:
            care.say(f"{care.nimbus}: {error}")
    if care.limits.held:
        names = ", ".join("/".join(key) for key in sorted(care.limits.held))
        care.say(f"{care.nimbus}: pods {names} keep other CPU than their own, and nobody sees to them any more")
