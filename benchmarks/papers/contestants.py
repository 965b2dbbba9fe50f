"""Who competes: schedulers as their papers run them, and ours with its defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from storm_operator.core.demand import estimate_demand
from storm_operator.core.model import ACKER_COMPONENT, Assignment, Executor, Infeasible, Topology
from storm_operator.core.placement.registry import policy_named
from storm_operator.core.settings import (
    Enforcement,
    Forecast,
    PlacementSettings,
    ResourceSettings,
    SchedulingSettings,
    Separation,
    Trigger,
)
from storm_operator.core.topology_spec import AdoptSource, TopologySpec
from storm_operator.simulated_loop import Scenario, even_start
from storm_operator.simulator.engine import Engine
from storm_operator.simulator.measure import Meter
from storm_operator.simulator.model import ClusterModel

NEVER = 1e9
NOTHING_DECLARED: Mapping[str, float] = {}
HOLD_TO_CPU = frozenset({"liu"})
"""Published policies that enforce the CPU that they give."""
Parameters = tuple[tuple[str, float], ...]


def as_published(policy: str, parameters: Parameters = ()) -> SchedulingSettings:
    """Its own trigger decides alone: nothing waits, and nothing is taken back."""
    return SchedulingSettings(
        policy=policy,
        parameters=tuple(sorted(parameters)),
        trigger=Trigger.POLICY,
        forecast=Forecast.LINE,
        cool_down_seconds=0.0,
        rollback_margin_percent=NEVER,
        settling_seconds=0.0,
    )


def published_enforcement(policy: str) -> Enforcement:
    return Enforcement.EXECUTOR if policy in HOLD_TO_CPU else Enforcement.NONE


@dataclass(frozen=True, slots=True)
class Contestant:
    """A scheduler by its name in the tables.

    `acts`: it schedules while topologies run; else it places them once, when they are submitted. `fixed_millicores`:
    each executor but Storm's own is held to so much throughout, one of `component_millicores` to what is given there.
    `declared` is what each executor but Storm's own is declared to need, by topology id; with `holds_to_declared` it is
    held to that. `is_ours`: with all defaults but, where it is named, that of `separation`, by the operator's own
    trigger; the topology called `first` has priority.
    """

    name: str
    policy: str = "even"
    parameters: Parameters = ()
    acts: bool = True
    fixed_millicores: float | None = None
    component_millicores: Parameters = ()
    declared: Parameters = ()
    holds_to_declared: bool = False
    is_ours: bool = False
    separation: Separation | None = None
    first: str = ""

    def specs(self, model: ClusterModel) -> dict[str, TopologySpec] | None:
        """The settings under which the loop manages the topologies; None where nobody does."""
        if not self.acts:
            return None
        if self.is_ours:
            ours = SchedulingSettings()
            if self.separation is not None:
                ours = replace(ours, separation=self.separation)
            return {
                t.name: TopologySpec(t.name, AdoptSource(), scheduling=ours, priority=int(t.name == self.first))
                for t in model.topologies
            }
        scheduling = as_published(self.policy, self.parameters)
        resources = ResourceSettings(enforcement=published_enforcement(self.policy))
        return {
            topology.name: TopologySpec(topology.name, AdoptSource(), scheduling=scheduling, resources=resources)
            for topology in model.topologies
        }

    def start(self, scenario: Scenario) -> Assignment:
        """Where the topologies are when the experiment begins: whoever acts later takes over from Storm's default."""
        given = scenario.start if scenario.start is not None else even_start(scenario.model)
        if self.acts or self.policy == "even":
            return given
        return placed_at_submission(scenario.model, given, self.policy, self.parameters, dict(self.declared))

    def fixed_limits(self, executors: Iterable[Executor]) -> Mapping[Executor, float]:
        own = dict(self.component_millicores)
        declared = dict(self.declared) if self.holds_to_declared else {}
        limits = {
            e: declared.get(e.topology_id, own.get(e.component, self.fixed_millicores))
            for e in executors
            if e.component != ACKER_COMPONENT
        }
        return {executor: limit for executor, limit in limits.items() if limit is not None}


DEFAULT = Contestant("default", acts=False)
ADAPTIVE = Contestant("adaptive", policy="adaptive", is_ours=True)
ADAPTIVE_A_FIRST = Contestant("adaptive, A first", policy="adaptive", is_ours=True, first="A")
ALWAYS_APART = Contestant("adaptive, Always", policy="adaptive", is_ours=True, separation=Separation.ALWAYS)
OURS = (ADAPTIVE, ALWAYS_APART)


def placed_at_submission(
    model: ClusterModel,
    start: Assignment,
    policy: str,
    parameters: Parameters,
    declared: Mapping[str, float] = NOTHING_DECLARED,
) -> Assignment:
    """What a policy makes that knows nothing but machines and topologies, with the CPU that they declare (by id).

    ValueError when it finds no place.
    """
    engine = Engine(model, start)
    seen = Meter(engine).read()
    snapshot = replace(seen, topologies=tuple(_declaring(one, declared.get(one.id)) for one in seen.topologies))
    settings = PlacementSettings(
        scheduling=SchedulingSettings(policy=policy, parameters=tuple(sorted(parameters))),
        movable=frozenset(topology.id for topology in model.topologies),
    )
    demand = estimate_demand(snapshot, None, ResourceSettings(), settings.scheduling.history_periods)
    placed = policy_named(policy)(snapshot, demand, settings)
    if isinstance(placed, Infeasible):
        raise ValueError(f"{policy}: {placed.reason}")
    return placed


def _declaring(topology: Topology, millicores: float | None) -> Topology:
    """With so much declared for each executor but Storm's own; None: as it is."""
    if millicores is None:
        return topology
    components = (
        component if component.name == ACKER_COMPONENT else replace(component, declared_cpu_millicores=millicores)
        for component in topology.components
    )
    return replace(topology, components=tuple(components))
