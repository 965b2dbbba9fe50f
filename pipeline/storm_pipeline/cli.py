"""`storm-pipeline`: a command for each job. A job's module is imported only when it is called."""

from __future__ import annotations

from typing import Any

from storm_operator.lazy_commands import LazyCommand, lazy_program, load_available

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
    "run": LazyCommand("storm_pipeline.jobs.run:run", "Several of these in one Spark session, which is faster."),
    "backfill": LazyCommand("storm_pipeline.jobs.backfill:backfill", "Bronze tables from a Prometheus server."),
    "jars": LazyCommand("storm_pipeline.jars:jars", "Fetch what Spark needs for Delta tables."),
}

app = lazy_program(PROGRAM, JOBS, "Learns from the history of storm-operator, on Apache Spark.")


def load_job(name: str) -> Any:
    """The command of a job, a name of `JOBS`. Raises CommandUnavailable."""
    return load_available(PROGRAM, name, JOBS[name])


def main() -> None:
    """The console script."""
    app()
