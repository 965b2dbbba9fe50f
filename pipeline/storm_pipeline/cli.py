"""`storm-pipeline`: a command for each job. A job's module is imported only when it is called."""

from __future__ import annotations

from typing import Annotated

import typer

from storm_operator.lazy_commands import LazyCommand, lazy_group

PROGRAM = "storm-pipeline"

JOBS: dict[str, LazyCommand] = {
    "ingest": LazyCommand("storm_pipeline.jobs.ingest:ingest", "Recorded history (bronze) into clean tables (silver)."),
    "traffic": LazyCommand("storm_pipeline.jobs.traffic:traffic", "Traffic matrices by window and level."),
    "profile": LazyCommand("storm_pipeline.jobs.profile:profile", "Cost, selectivity, queues of components."),
    "forecast": LazyCommand("storm_pipeline.jobs.forecast:forecast", "Backtests of forecasters; the winner's profile."),
    "evaluate": LazyCommand(
        "storm_pipeline.jobs.evaluate:evaluate", "What each plan brought, against what was expected."
    ),
    "tune": LazyCommand("storm_pipeline.jobs.tune:tune", "Replays history over a grid of settings."),
    "report": LazyCommand("storm_pipeline.jobs.report:report", "One page over all of it."),
    "backfill": LazyCommand("storm_pipeline.jobs.backfill:backfill", "Bronze tables from a Prometheus server."),
    "jars": LazyCommand("storm_pipeline.jars:jars", "Fetch what Spark needs for Delta tables."),
}

app = typer.Typer(
    name=PROGRAM,
    cls=lazy_group(PROGRAM, JOBS),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    help="Learns from the history of storm-operator, on Apache Spark.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"{PROGRAM} {version('storm-operator')}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and end.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the program itself."""


def main() -> None:
    """The console script."""
    app()
