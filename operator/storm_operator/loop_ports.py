"""What the control loop needs of others, what it tells them, and what it remembers between passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from storm_operator.core.agent_enforcement import AgentEnforcement
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decision import Decision, Hold, HoldReason
from storm_operator.core.decision_memory import DecisionMemory
from storm_operator.core.forecast import ComponentKey, LoadForecast
from storm_operator.core.learned_profile import ProfileReading
from storm_operator.core.missed_turns import MissedTurns
from storm_operator.core.model import Executor
from storm_operator.core.plan_record import PlanRecord
from storm_operator.core.proposals import Proposals
from storm_operator.core.served_first import NOBODY_SERVED, Served
from storm_operator.core.snapshot import ClusterSnapshot, LoadPeriod
from storm_operator.core.topology_spec import TopologySpec


class Observer(Protocol):
    """Makes the picture that one pass decides from. Raises `AdapterError`.

    `steady_since_seconds` is when somebody last worked at putting a plan in force; minus infinity: nobody did.
    """

    def observe(
        self,
        specs: Mapping[str, TopologySpec],
        history: tuple[LoadPeriod, ...],
        now_seconds: float,
        period_seconds: float,
        steady_since_seconds: float,
    ) -> ClusterSnapshot: ...


class ProfileSource(Protocol):
    """Where learned profiles come from. Never raises: what cannot be read is a reading that says so."""

    @property
    def cluster(self) -> str:
        """What the Storm cluster is called in profiles that were learned from it."""

    def read(self, specs: Mapping[str, TopologySpec]) -> Mapping[str, ProfileReading]:
        """By topology name; those that no profile is given for are absent."""


class NoProfiles:
    """Nothing was learned."""

    cluster = ""

    def read(self, specs: Mapping[str, TopologySpec]) -> Mapping[str, ProfileReading]:
        return {}


class Journal(Protocol):
    """Where the plan in progress survives the operator."""

    def save(self, record: PlanRecord) -> None: ...

    def load(self) -> PlanRecord | None: ...

    def clear(self) -> None: ...


class Listener(Protocol):
    """Whoever wants to see what happens: a terminal, events, a report."""

    def on_pass(self, report: PassReport) -> None: ...

    def on_record(self, record: PlanRecord) -> None: ...


@dataclass(frozen=True, slots=True)
class PassReport:
    """What one pass saw and decided, for status, events and pictures."""

    at_seconds: float
    snapshot: ClusterSnapshot | None
    demand: Demand | None
    decisions: tuple[tuple[tuple[str, ...], Decision], ...]
    """(topology ids, decision) for each group, in order."""
    forecasts: Mapping[ComponentKey, LoadForecast] = field(default_factory=dict)
    """What each component is expected to have to process in the period that begins with this pass."""
    step_seconds: Mapping[str, float] = field(default_factory=dict)
    """How long each step of the pass took, in the order in which they ended."""
    limited: frozenset[str] = frozenset()
    """Ids of the topologies whose executors are to be held to CPU limits."""
    limits_millicores: Mapping[Executor, float] = field(default_factory=dict)
    """The limits of executors of these, as they are kept for the agents: between plans, and while one settles."""
    agents: Mapping[str, AgentEnforcement] | None = None
    """By supervisor host, what its agent said last of whether it holds executors to limits; one that said nothing is
    absent. None: nobody asks, as in a simulation, where all are held."""
    open_plans: tuple[PlanRecord, ...] = ()
    """Those that wait for a person or are in hand as the pass ends, whoever made them: an earlier life of the operator
    told its own listeners."""


def report_of_unseen(at_seconds: float, why: str) -> PassReport:
    """Of a pass that could not see the cluster; `why` in words."""
    return PassReport(at_seconds, None, None, (((), Hold(HoldReason.CLUSTER_UNREACHABLE, why)),))


@dataclass(frozen=True, slots=True)
class Audience:
    """Several listeners as one. What goes wrong in one of them is said, and stops neither the others nor the loop."""

    listeners: tuple[Listener, ...]
    say: Callable[[str], None]

    def on_pass(self, report: PassReport) -> None:
        for listener in self.listeners:
            try:
                listener.on_pass(report)
            except Exception as error:
                self._complain(listener, error)

    def on_record(self, record: PlanRecord) -> None:
        for listener in self.listeners:
            try:
                listener.on_record(record)
            except Exception as error:
                self._complain(listener, error)

    def _complain(self, listener: Listener, error: Exception) -> None:
        self.say(f"{type(listener).__name__} could not take in what the loop did: {type(error).__name__}: {error}")


@dataclass(slots=True)
class LoopMemory:
    """What is remembered between passes. All of it can be lost: a restarted operator warms up again."""

    history: tuple[LoadPeriod, ...] = ()
    demand: Demand | None = None
    decisions: DecisionMemory = field(default_factory=DecisionMemory)
    records: tuple[PlanRecord, ...] = ()
    steady_since_seconds: float = -math.inf
    """When a plan was last begun, carried on or given up here."""
    measured_anew_since: Mapping[str, float] = field(default_factory=dict)
    """By topology id, since when what is measured of it tells its load, in seconds since 1970."""
    left_paused: tuple[str, ...] = ()
    """Ids of the topologies whose spouts a plan that is over has paused, and could not resume."""
    proposals: Proposals = field(default_factory=Proposals)
    asked_for: str = ""
    """Id of the way back that failed, and that a person was asked for since: one who says no is not asked again."""
    ended: frozenset[str] = frozenset()
    """Topologies that something is kept for although the last pass did not see them run."""
    watched_since_seconds: float = 0.0
    """When this life of the operator began: what it measures, it measures from then on."""
    limited: frozenset[str] = frozenset()
    """Topologies whose executors are held to CPU limits."""
    missed_turns: MissedTurns = field(default_factory=MissedTurns)
    """Until when each policy has been heard."""
    served: Served = NOBODY_SERVED
    """The CPU limits of the last pass, and who is held to less than it needs."""
