"""Which StormRebalance is the operator's own of a plan: in namespaces of other people, others may bear its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from storm_operator.core.decision import Plan
from storm_operator.kube.managed import Body, Managed, Registry, key_of
from storm_operator.kube.rebalances import is_of

Place = tuple[str, dict[str, Any]]
"""The namespace of a StormRebalance, and its status."""


@dataclass(slots=True)
class ShownPlans:
    """Where the plans of one Storm cluster are shown: in one namespace each, that of the StormTopology of the first of
    their topologies. Who may write StormRebalances in another one has no say in them. The page reads it, too.

    `holder_of` gives the resource that a topology id belongs to, also one that is invalid by now.
    """

    registry: Registry
    holder_of: Callable[[str], Managed | None]
    written: dict[str, Place] = field(default_factory=dict)
    """By plan id: what this life of the operator wrote last, or took up of an earlier one."""

    def namespace_of(self, plan: Plan) -> str:
        """Where the plan is shown, or would be; empty where it belongs to nobody."""
        return self._namespace(plan.id, plan.topology_ids)

    def shows(self, body: Body, plan: Plan) -> bool:
        """Whether `body` is the operator's own of `plan`: what is asked of it, is asked of the plan."""
        return key_of(body) == (self.namespace_of(plan), plan.id) and is_of(body, plan)

    def body_of(self, plan: Plan) -> Body | None:
        """The operator's own of `plan`, as the watch has told of it."""
        body = self.registry.rebalance((self.namespace_of(plan), plan.id))
        return body if body is not None and self.shows(body, plan) else None

    def place_of(self, plan: Plan) -> Place | None:
        """Where the plan is shown, and its status; None where it is not shown."""
        known = self.written.get(plan.id)
        body = self.body_of(plan) if known is None else None
        return known if body is None else _place(body)

    def is_in_its_place(self, body: Body) -> bool:
        """Whether it is where the operator shows plans for the topologies that it names."""
        namespace, name = key_of(body)
        return namespace == self._namespace(name, body["spec"].get("topologies") or ())

    def found(self, plan_id: str) -> Place | None:
        """What the watch has told of a plan of which no more than the id is known."""
        named = (body for body in self.registry.rebalances() if key_of(body)[1] == plan_id)
        return next((_place(body) for body in named if self.is_in_its_place(body)), None)

    def take_up(self, body: Body) -> None:
        """It is gone on with, wherever the StormTopologies of its topologies will be."""
        self.written[key_of(body)[1]] = _place(body)

    def _namespace(self, plan_id: str, topology_ids: Iterable[str]) -> str:
        known = self.written.get(plan_id)
        if known is not None:
            return known[0]
        holder = next((one for one in map(self.holder_of, topology_ids) if one is not None), None)
        return "" if holder is None else holder.key[0]


def _place(body: Body) -> Place:
    return key_of(body)[0], dict(body.get("status") or {})
