"""What a plan says of declared memory and of supervisors that do not always answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from builders import (
    chain_topology,
    component_load,
    even_traffic,
    history,
    placed,
    placement_settings,
    same_demand,
    snapshot,
    supervisors,
)
from storm_operator.core.decision import PlanCause
from storm_operator.core.model import Assignment, Topology
from storm_operator.core.placement.adaptive import place_adaptive
from storm_operator.core.proposed_change import ProposedChange, examine_proposal
from storm_operator.core.settings import SchedulingSettings, Separation
from storm_operator.core.snapshot import ClusterSnapshot

LINE = chain_topology("t", ("spout", 1), ("work", 3))
DECLARED = replace(LINE, components=tuple(replace(c, declared_memory_mb=300.0) for c in LINE.components))
SETTINGS = placement_settings([LINE], scheduling=SchedulingSettings(separation=Separation.NEVER, minimum_periods=1))


def together(topology: Topology = DECLARED, **machine: Any) -> ClusterSnapshot:
    machines = tuple(replace(supervisor, **machine) for supervisor in supervisors(3))
    periods = history("t", {c.name: [component_load(100.0)] for c in LINE.components})
    at = {component.name: "s1" for component in LINE.components}
    return snapshot((topology,), machines, placed(LINE, at), rates=even_traffic(LINE, 100.0), periods=periods)


def change_of(seen: ClusterSnapshot) -> ProposedChange | None:
    demand = same_demand([LINE], 50.0)
    proposal = place_adaptive(seen, demand, SETTINGS)
    assert isinstance(proposal, Assignment)
    return examine_proposal(seen, demand, proposal, SETTINGS)


def test_memory_that_is_short_is_said_and_spread() -> None:
    change = change_of(together(memory_mb=700.0))
    assert change is not None
    assert change.trouble is not None
    assert change.trouble.what == "500 MB of declared memory more than supervisors have"
    assert change.trouble.cause is PlanCause.MEMORY
    assert change.overfull_megabytes == 0.0


def test_memory_that_nobody_has_is_said() -> None:
    change = change_of(together(memory_mb=350.0))
    assert change is not None
    assert change.overfull_megabytes == 2 * 300.0 - 350.0  # two of four share a supervisor


def test_whoever_answers_less_is_left() -> None:
    seen = together(LINE)
    assert change_of(seen) is None
    worse = tuple(replace(m, availability=0.85) if m.id == "s1" else m for m in seen.supervisors)
    change = change_of(replace(seen, supervisors=worse))
    assert change is not None
    assert "s1" not in change.target.used_supervisors()
    assert change.gain_percent > 50.0
