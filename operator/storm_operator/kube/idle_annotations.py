"""Annotations of ours that do nothing are told on what they are on: else a mistyped `paused` seems to pause."""

from __future__ import annotations

from collections.abc import Iterable

from storm_operator.adapters.kube.events import Events
from storm_operator.adapters.resource_metadata import unknown_annotations
from storm_operator.kube.managed import Body, Managed, annotations_of
from storm_operator.kube.rebalances import ASK_ANNOTATION, cluster_of

ANNOTATION_IGNORED = "AnnotationIgnored"
"""Reason of the event."""


def tell_of_idle_annotations(
    topologies: Iterable[Managed], rebalances: Iterable[Body], nimbus: str, events: Events
) -> None:
    """An event for each, of `topologies` and of those of `rebalances` that are plans for the cluster of `nimbus`."""
    for one in topologies:
        for words in one.idle_annotations:
            events.post(one.body, ANNOTATION_IGNORED, words, warning=True)
    for body in rebalances:
        if cluster_of(body) != nimbus:
            continue
        for words in unknown_annotations(annotations_of(body), ASK_ANNOTATION):
            events.post(body, ANNOTATION_IGNORED, words, warning=True)
