"""`storm-pipeline backfill`: bronze tables of a time in which nothing was recorded, from a Prometheus server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import Progress

from storm_operator.core.history_rows import columns_of
from storm_operator.core.server_url import checked_url
from storm_operator.core.view_from_metrics import UNKNOWN_COLUMNS
from storm_operator.history.settings import NoHistory, insist_on_plain
from storm_operator.history.store import HistoryStore, Limits, NotPublished
from storm_operator.prometheus_api import PrometheusError
from storm_pipeline.error_console import error_console
from storm_pipeline.job_console import job_console
from storm_pipeline.options import MOST_SECONDS, insist_on_writable
from storm_pipeline.prometheus_history import PrometheusHistory

NO_LIMITS = Limits(keep_bytes=None, keep_days=None)


def backfill(
    history: Annotated[str, typer.Argument(metavar="HISTORY", help="Folder or s3:// prefix of recorded history.")],
    prometheus: Annotated[str, typer.Option(metavar="URL", help="The server that scraped the agents.")],
    cluster: Annotated[str, typer.Option(help="Name of the cluster in the history.")],
    first: Annotated[str, typer.Option("--from", metavar="TIME", help="UTC, as 2026-01-31T12:00:00.")],
    last: Annotated[str, typer.Option("--to", metavar="TIME", help="Likewise.")],
    period_seconds: Annotated[
        float,
        typer.Option(min=1.0, max=MOST_SECONDS, help="Length of a period: at least two scrapes of the server."),
    ] = 10.0,
    match: Annotated[str, typer.Option(help="Narrows to the cluster's series: 'cluster=\"blue\"'.")] = "",
    ignore_label: Annotated[
        list[str] | None, typer.Option(help="A label that the scrape configuration adds (repeatable).")
    ] = None,
) -> None:
    """Record the past as the operator would have. The same times again give the same files, and change nothing."""
    console = job_console()
    begin, end = parse_time("--from", first), parse_time("--to", last)
    if not cluster:
        raise typer.BadParameter("--cluster: it is empty; give the name that the cluster is to have in the history")
    try:
        insist_on_plain(cluster)
    except NoHistory as error:
        raise typer.BadParameter(f"--cluster: {error}") from error
    begin -= begin % period_seconds
    if end - begin < period_seconds:
        raise typer.BadParameter(f"--to: {last} must be at least a period of {period_seconds:g} s after --from {first}")
    run_id = f"backfill-{begin:.0f}-{end:.0f}-{period_seconds:g}"
    try:
        address = checked_url("--prometheus", prometheus)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    insist_on_writable("HISTORY", history)
    store = HistoryStore.at(history, cluster, run_id, NO_LIMITS, survives_death=False)
    source = PrometheusHistory(address, match, frozenset(ignore_label or ()))
    seen = empty = 0
    try:
        with Progress(console=console) as progress:
            task = progress.add_task("periods", total=(end - begin) // period_seconds)
            try:
                for made in source.passes(begin, end, period_seconds):
                    progress.advance(task)
                    if made is None or made.snapshot is None:
                        empty += 1
                        continue
                    seen += 1
                    store.write(
                        made.at_seconds, made.snapshot.period_seconds, columns_of(made, "backfill", UNKNOWN_COLUMNS)
                    )
            finally:
                store.publish()
    except PrometheusError as error:
        error_console().print(f"[red]{escape(str(error))}[/]", soft_wrap=True)
        raise typer.Exit(1) from error
    except (OSError, NotPublished) as error:
        words = f"[red]{escape(history)} cannot be written to any more:[/] {escape(str(error))}"
        error_console().print(words, soft_wrap=True)
        raise typer.Exit(1) from error
    console.print(f"{seen} periods written to {history}; {empty} without any metrics are gaps")
    if store.left_alone:
        console.print(
            f"but {store.left_alone} files were there already, of an earlier backfill of the same times, and stay as "
            f"they are; to have others, delete those named *{run_id}* first, before ingest has taken them in",
            soft_wrap=True,
        )


def parse_time(option: str, text: str) -> float:
    """Seconds since 1970 of a UTC time; a usage error names what is wrong."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise typer.BadParameter(f"{option}: {text!r} must be a time like 2026-01-31T12:00:00") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
