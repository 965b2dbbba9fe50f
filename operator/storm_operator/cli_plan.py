"""`storm-operator plan`: a plan from a snapshot file. What a policy would do, without a cluster to do it to."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from storm_operator.cli_output import Form, Output, table_console, written_out
from storm_operator.core.assumed_needs import with_assumed_needs
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.decide import DecisionMemory, decide
from storm_operator.core.decision import Decision
from storm_operator.core.groups import Group, estimate_group_demand, forecast_groups
from storm_operator.core.model import Assignment, Infeasible
from storm_operator.core.placement.optimal import SolverMissing, gap_to_optimum
from storm_operator.core.placement.registry import POLICIES, check_policy, once_due, proposed
from storm_operator.core.settings import PlacementSettings, Separation
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.snapshot_document import InvalidSnapshot
from storm_operator.core.snapshot_json import load_snapshot
from storm_operator.plan_preview import decision_document, decision_view
from storm_operator.settings_overrides import Settings, override_settings

PREVIEW_PLAN_ID = "p-preview"
EXIT_BAD_INPUT = 2


def plan(
    snapshot: Annotated[Path, typer.Option(help="A file that `storm-operator snapshot` wrote.", dir_okay=False)],
    policy: Annotated[str, typer.Option(help="adaptive, optimal, liu, aniello-online, ...")] = "adaptive",
    separation: Annotated[
        Separation | None, typer.Option(help="Stateful and stateless executors in separate workers.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting, e.g. minimumGainPercent=5 (repeatable)."),
    ] = None,
    gap: Annotated[bool, typer.Option("--gap", help="How far the proposal is from the proven optimum.")] = False,
    output: Form = Output.TABLE,
) -> None:
    """Make a plan from a snapshot file: what would move, why, before and after. A hold is an answer too.

    A policy that acts from time to time is asked as if its time had come.
    """
    if not policy:
        _fail(f"--policy is '': one of {', '.join(sorted(POLICIES))} is right")
    overrides = [*(set_ or ()), *([f"separation={separation.value}"] if separation else ())]
    try:
        settings = override_settings(Settings(), [f"policy={policy}", *overrides])
        check_policy(settings.scheduling.policy, settings.scheduling.parameters)
        picture = read_snapshot(snapshot)
        placed = propose(picture, settings)
        decision = decide_on(picture, placed)
        distance = gap_to_optimum(picture, placed.demand, placed.proposal, placed.settings) if gap else None
    except (ValueError, SolverMissing) as error:
        _fail(str(error))
    with written_out("plan"):
        if output is Output.JSON:
            typer.echo(json.dumps(decision_document(decision, distance), indent=2, allow_nan=False))
        else:
            table_console().print(decision_view(decision, picture, distance))


def _fail(message: str) -> NoReturn:
    typer.echo(f"storm-operator plan: {message}", err=True)
    raise typer.Exit(EXIT_BAD_INPUT) from None


def read_snapshot(path: Path) -> ClusterSnapshot:
    """The snapshot in a file; InvalidSnapshot, with the file's name, when it cannot be read or is not one."""
    try:
        return load_snapshot(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidSnapshot(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidSnapshot(f"{path} is not UTF-8 text: expected a snapshot in JSON") from None
    except InvalidSnapshot as error:
        raise InvalidSnapshot(f"{path}: {error}") from None


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a policy proposes, with the demand and the settings that it was asked with."""

    proposal: Assignment | Infeasible
    demand: Demand
    settings: PlacementSettings


def propose(snapshot: ClusterSnapshot, settings: Settings) -> Proposal:
    """What the policy would do with the snapshot once its time has come, with every topology in it movable."""
    scheduling = settings.scheduling
    movable = frozenset(topology.id for topology in snapshot.topologies)
    groups = (Group(scheduling, settings.resources, tuple(sorted(movable))),)
    demand = estimate_group_demand(snapshot, groups, forecast_groups(snapshot, groups), None, {})
    placement = PlacementSettings(
        scheduling=replace(scheduling, minimum_periods=1),  # a file has the periods that it has
        movable=movable,
        restart_seconds=DecisionMemory().restart_seconds,
        resources=settings.resources,
    )
    demand = with_assumed_needs(snapshot, demand, placement)
    return Proposal(proposed(once_due(snapshot, scheduling), demand, placement), demand, placement)


def decide_on(snapshot: ClusterSnapshot, placed: Proposal) -> Decision:
    """What would be decided at the moment of the snapshot, with nothing remembered."""
    return decide(
        snapshot,
        placed.demand,
        placed.proposal,
        placed.settings,
        DecisionMemory(),
        now_seconds=snapshot.taken_at_seconds,
        plan_id=PREVIEW_PLAN_ID,
    )
