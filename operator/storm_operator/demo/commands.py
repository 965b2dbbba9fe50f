"""`storm-operator demo`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from storm_operator.adapters.errors import AdapterError
from storm_operator.cli_output import written_out
from storm_operator.console.server import DEFAULT_PORT
from storm_operator.console.site import PageUnavailable
from storm_operator.demo.run import DemoError, run_demo
from storm_operator.demo.scenario import NORMAL_MINUTES
from storm_operator.demo.simulated import play_beside_page, play_simulated
from storm_operator.local.spec import LocalClusterError
from storm_operator.simulated_page import DEFAULT_PACE

OUTPUT, OUTPUT_SIMULATED = Path("build/demo"), Path("build/demo-simulated")
"""Apart, so that neither report takes the place of the other."""
EXIT_NOTHING_COMPARED = 3
LONGEST_MINUTES = 24 * 60.0


def demo(
    minutes: Annotated[
        float, typer.Option(min=2.0, max=LONGEST_MINUTES, help="About how long it takes.")
    ] = NORMAL_MINUTES,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="On a simulated cluster: needs no Java and takes seconds.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder for report.html and report.json.",
            show_default="build/demo; with --simulated build/demo-simulated",
        ),
    ] = None,
    page: Annotated[
        bool, typer.Option("--page", help="With --simulated: at a pace to look at, beside the operator's page.")
    ] = False,
    page_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port of that page; 0: any.", show_default=str(DEFAULT_PORT)),
    ] = None,
    pace: Annotated[
        float | None,
        typer.Option(
            min=0.1, help="Simulated seconds that pass in a second, with --page.", show_default=f"{DEFAULT_PACE:g}"
        ),
    ] = None,
) -> None:
    """Storm's own scheduler against storm-operator, with a report: on real Storm on this machine, or simulated.

    Exit code 1: it could not go on. 3: played to its end, but no plan held when it was to be compared; the last lines
    and the report say why.
    """
    console = Console(highlight=False)
    if page and not simulated:
        raise typer.BadParameter("--page needs --simulated; beside a real cluster storm-operator standalone serves it")
    for option, value in (("--page-port", page_port), ("--pace", pace)):
        if value is not None and not page:
            raise typer.BadParameter(f"{option} is for --page, beside which it is played at a pace to look at")
    folder = output or (OUTPUT_SIMULATED if simulated else OUTPUT)
    check_output(folder)
    with written_out("demo"):
        try:
            if page:
                port = DEFAULT_PORT if page_port is None else page_port
                ended = play_beside_page(minutes, folder, console, port, pace or DEFAULT_PACE)
            else:
                ended = play_simulated(minutes, folder, console) if simulated else run_demo(minutes, folder, console)
        except (AdapterError, DemoError, LocalClusterError, PageUnavailable, OSError) as error:
            console.print(f"[red]the demo could not go on:[/] {escape(str(error))}")
            raise typer.Exit(1) from error
        except KeyboardInterrupt:
            console.print("ended before its end: no report")
            raise typer.Exit(1) from None
        console.print(f"report: {ended.page} and {ended.page.with_suffix('.json')}", markup=False, emoji=False)
    if not ended.compared:
        raise typer.Exit(EXIT_NOTHING_COMPARED)


def check_output(folder: Path) -> None:
    """A usage error where no report can be written; better known before the demo than after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise typer.BadParameter(f"--output: {folder} is no folder that can be written to: {error.strerror}") from None
