"""`storm-operator demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from storm_operator.adapters.errors import AdapterError
from storm_operator.demo.run import DemoError, run_demo
from storm_operator.demo.scenario import NORMAL_MINUTES
from storm_operator.local.spec import LocalClusterError


def demo(
    minutes: Annotated[float, typer.Option(min=2.0, help="About how long it takes.")] = NORMAL_MINUTES,
    output: Annotated[Path, typer.Option(help="Folder for report.html and report.json.")] = Path("build/demo"),
) -> None:
    """Real Storm on this machine: Storm's own scheduler against storm-operator, with a report."""
    console = Console(highlight=False)
    try:
        page = run_demo(minutes, output, console)
    except (AdapterError, DemoError, LocalClusterError) as error:
        console.print(f"[red]the demo could not go on:[/] {error}")
        raise typer.Exit(1) from error
    console.print(f"report: {page} and {page.with_suffix('.json')}")
