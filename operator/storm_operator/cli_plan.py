"""`storm-operator plan`: a plan from a snapshot file. What a policy would do, without a cluster to do it to."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from storm_operator.core.decide import DecisionMemory, decide
from storm_operator.core.demand import estimate_demand
from storm_operator.core.model import Decision
from storm_operator.core.placement.registry import check_parameters, policy_named
from storm_operator.core.settings import PlacementSettings, Separation
from storm_operator.core.settings_overrides import Settings, override_settings
from storm_operator.core.snapshot import ClusterSnapshot
from storm_operator.core.snapshot_document import InvalidSnapshot
from storm_operator.core.snapshot_json import load_snapshot
from storm_operator.plan_preview import decision_document, decision_view

PREVIEW_PLAN_ID = "p-preview"
EXIT_BAD_INPUT = 2


class Output(StrEnum):
    """How the plan is shown."""

    TABLE = "table"
    JSON = "json"


def plan(
    snapshot: Annotated[Path, typer.Option(help="A file that `storm-operator snapshot` wrote.", dir_okay=False)],
    policy: Annotated[str, typer.Option(help="adaptive, liu, aniello-online, aniello-offline or even.")] = "adaptive",
    separation: Annotated[
        Separation | None, typer.Option(help="Stateful and stateless executors in separate workers.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting, e.g. minimumGainPercent=5 (repeatable)."),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to show the plan.")] = Output.TABLE,
) -> None:
    """Make a plan from a snapshot file: what would move, why, before and after. A hold is an answer too."""
    overrides = [*(set_ or ()), *([f"separation={separation.value}"] if separation else ())]
    try:
        settings = override_settings(Settings(), [f"policy={policy}", *overrides])
        check_parameters(settings.scheduling.policy, settings.scheduling.parameters)
        picture = read_snapshot(snapshot)
        decision = decide_from_snapshot(picture, settings)
    except ValueError as error:
        typer.echo(f"storm-operator plan: {error}", err=True)
        raise typer.Exit(EXIT_BAD_INPUT) from None
    if output is Output.JSON:
        typer.echo(json.dumps(decision_document(decision), indent=2))
    else:
        Console().print(decision_view(decision, picture), highlight=False)


def read_snapshot(path: Path) -> ClusterSnapshot:
    """The snapshot in a file; InvalidSnapshot, with the file's name, when it cannot be read or is not one."""
    try:
        return load_snapshot(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSnapshot(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidSnapshot(f"{path} is not UTF-8 text: expected a snapshot in JSON") from None
    except InvalidSnapshot as error:
        raise InvalidSnapshot(f"{path}: {error}") from None


def decide_from_snapshot(snapshot: ClusterSnapshot, settings: Settings) -> Decision:
    """What would be decided at the moment of the snapshot, with every topology in it movable and nothing remembered."""
    scheduling = settings.scheduling
    memory = DecisionMemory()
    demand = estimate_demand(snapshot, None, settings.resources, phi=scheduling.history_periods)
    placement = PlacementSettings(
        scheduling=scheduling,
        movable=frozenset(topology.id for topology in snapshot.topologies),
        restart_seconds=memory.restart_seconds,
    )
    proposal = policy_named(scheduling.policy)(snapshot, demand, placement)
    return decide(
        snapshot, demand, proposal, placement, memory, now_seconds=snapshot.taken_at_seconds, plan_id=PREVIEW_PLAN_ID
    )
