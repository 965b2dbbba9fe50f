"""`storm-pipeline run`: several jobs one after the other in one Spark session, which starts and warms up once."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from storm_operator.lazy_commands import CommandUnavailable
from storm_pipeline.cli import JOBS, PROGRAM, load_job
from storm_pipeline.job_console import job_console
from storm_pipeline.jobs.learning import publication_of
from storm_pipeline.lake import lake_at
from storm_pipeline.options import (
    Conf,
    Heap,
    LakeRoot,
    Master,
    OffHeap,
    insist_on_writable,
    parse_bins,
    parse_dates,
    parse_interval,
    session_for,
    settings_of,
)

USUAL = ("ingest", "traffic", "profile", "forecast", "evaluate")
CANNOT = ("run", "backfill", "jars")
"""Commands that have no Spark session to share."""
OF_SPARK = {"master": "--master", "heap": "--heap", "off_heap": "--off-heap", "conf": "--conf"}
"""Options that all jobs of a run have in common, as they share its session."""
Called = tuple[Any, typer.Context]
"""A job's command and its options, read."""


def run(
    lake: LakeRoot,
    jobs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="JOB...",
            help=f"Jobs, in order; with options in quotes: 'forecast --days 28'. Without any: {' '.join(USUAL)}.",
        ),
    ] = None,
    master: Master = "local[*]",
    heap: Heap = "2g",
    off_heap: OffHeap = "2g",
    conf: Conf = None,
) -> None:
    """Several jobs in one Spark session: most of what a job costs on little data is to start and warm up Spark.

    All options are read before the first job starts. The first job that fails ends the run; what those
    before it have made stays: run the ones that are left.
    """
    console = job_console()
    settings = settings_of(master, heap, off_heap, conf)
    called = [parse_job(text, lake) for text in jobs or USUAL]
    with session_for("run", settings, lake_at(lake, _history_of(called)), console):
        for command, context in called:
            console.rule(str(context.info_name), align="left")
            with context:
                command.invoke(context)


def parse_job(text: str, lake: str) -> Called:
    """The job that `text` (a name, with options behind it) calls on `lake`; a usage error names what is wrong."""
    try:
        name, *options = shlex.split(text) or [""]
    except ValueError as error:  # a quotation that does not end
        raise typer.BadParameter(
            f"JOB: {text!r} must be a job and its options, as a shell reads them: {error}"
        ) from error
    if name not in JOBS or name in CANNOT:
        allowed = ", ".join(job for job in JOBS if job not in CANNOT)
        raise typer.BadParameter(f"JOB: {text!r} must be one of {allowed}, with its options behind it")
    try:
        command = load_job(name)
    except CommandUnavailable as error:  # now, and not when its turn comes
        raise typer.BadParameter(f"JOB: {text!r}: {error}") from error
    context = command.make_context(f"{PROGRAM} {name}", [lake, *options])
    try:
        check_options(context.params)
    except typer.BadParameter as error:
        raise typer.BadParameter(f"JOB: {text!r}: {error}") from error
    for parameter, option in OF_SPARK.items():
        if _is_given(context, parameter):
            raise typer.BadParameter(
                f"JOB: {text!r} has {option}, but its session is the run's: give it before the jobs"
            )
    return command, context


def check_options(given: Mapping[str, Any]) -> None:
    """What the jobs themselves refuse only when they begin, by the names of their parameters; a usage error."""
    if "first" in given:
        parse_dates(given["first"], given["last"], given["days"])
    if "every" in given:
        parse_interval("--every", given["every"])
    if "bins" in given:
        parse_bins(given["cycle"], given["bins"])
    if "config_map" in given:
        publication_of(given["publish_file"], given["config_map"], given["valid_days"])
    if "output" in given:
        insist_on_writable("--output", given["output"])


def _history_of(called: Sequence[Called]) -> str | None:
    """Where a job says that recorded history is: Spark must be able to reach that, too."""
    return next((context.params["history"] for _, context in called if context.params.get("history")), None)


def _is_given(context: typer.Context, parameter: str) -> bool:
    """On the command line; environment variables are the run's as well."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"
