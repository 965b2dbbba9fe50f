"""`storm-operator demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from storm_operator.adapters.errors import AdapterError
from storm_operator.demo.run import DemoError, run_demo
from storm_operator.demo.scenario import NORMAL_MINUTES
from storm_operator.demo.simulated import play_simulated
from storm_operator.local.spec import LocalClusterError


def demo(
    minutes: Annotated[float, typer.Option(min=2.0, help="About how long it takes.")] = NORMAL_MINUTES,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="On a simulated cluster: needs no Java and takes seconds.")
    ] = False,
    output: Annotated[Path, typer.Option(help="Folder for report.html and report.json.")] = Path("build/demo"),
) -> None:
    """Storm's own scheduler against storm-operator, with a report: on real Storm on this machine, or simulated."""
    console = Console(highlight=False)
    try:
        page = play_simulated(minutes, output, console) if simulated else run_demo(minutes, output, console)
    except (AdapterError, DemoError, LocalClusterError) as error:
        console.print(f"[red]the demo could not go on:[/] {error}")
        raise typer.Exit(1) from error
    console.print(f"report: {page} and {page.with_suffix('.json')}")
