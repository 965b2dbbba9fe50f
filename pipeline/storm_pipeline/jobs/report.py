"""`storm-pipeline report`: one page over all that was learned, and the same as tables."""

from __future__ import annotations

from typing import Annotated

import pandas as pd
import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from rich.console import Console

from storm_operator.history.files import Files
from storm_pipeline import gold
from storm_pipeline.jobs.learning import clusters_of
from storm_pipeline.lake import Lake, read
from storm_pipeline.options import Cluster, Conf, Heap, LakeRoot, Master, OffHeap, cleaned_lake, settings_of, spark_job
from storm_pipeline.reporting.page import write_report
from storm_pipeline.reporting.sections import sections
from storm_pipeline.schemas import CLUSTER, DATE, QUALITY, TRAFFIC_SHARE, DerivedTable

PROBE = ".probe"
TABLES: tuple[DerivedTable, ...] = (
    TRAFFIC_SHARE,
    gold.COMPONENT_PROFILE,
    gold.RESTARTS,
    gold.FORECAST_ERRORS,
    gold.SEASONS,
    gold.PLAN_EFFECTS,
    gold.LEAGUE,
    gold.PREDICTION_ERRORS,
    gold.RESTART_COSTS,
    gold.TUNING_ADVICE,
    QUALITY,
)


def report(
    lake: LakeRoot,
    output: Annotated[
        str, typer.Option("--output", "-f", help="Folder, also of an object store, for the page and its tables.")
    ] = "report",
    cluster: Cluster = None,
    master: Master = "local[*]",
    heap: Heap = "2g",
    off_heap: OffHeap = "2g",
    conf: Conf = None,
) -> None:
    """A self-contained HTML page with plots for each cluster, and its tables as CSV files beside it.

    Reads what the other jobs have written; what no job has written yet is left out.
    """
    console = Console(highlight=False)
    tables = cleaned_lake(lake)
    check_output(output, console)

    def read_rows(spark: SparkSession) -> list[tuple[str, DataFrame]]:
        return [(table.name, chosen_rows(spark, path_of(tables, table), table, cluster)) for table in TABLES]

    with spark_job("report", settings_of(master, heap, off_heap, conf), console, tables, sources=read_rows) as spark:
        clusters = clusters_of(spark, tables, cluster, console)
        for name in clusters:
            folder = output if len(clusters) == 1 else f"{output.rstrip('/')}/{name.replace('/', '-')}"
            with console.status(f"report on {name}"):
                path = run(spark, tables, name, folder)
            console.print(f"report: {path}", soft_wrap=True)


def check_output(folder: str, console: Console) -> None:
    """One that nothing can be written to ends the job before Spark starts."""
    try:
        files = Files.at(folder)
        files.write_whole(PROBE, lambda sink: sink.write(b""))
        files.delete(PROBE)
    except (OSError, ValueError, ImportError) as error:
        console.print(f"--output {folder}: nothing can be written there: {error}", soft_wrap=True)
        raise typer.Exit(2) from error


def run(spark: SparkSession, lake: Lake, cluster: str, folder: str) -> str:
    """Write the report on one cluster; the page's path."""
    frames = {table.name: frame_of(spark, path_of(lake, table), table, cluster) for table in TABLES}
    words = f"Made from {lake.root}."
    return write_report(cluster, sections(frames), words, folder)


def path_of(lake: Lake, table: DerivedTable) -> str:
    """Where the table is: what ingest tells of itself lies beside what it made."""
    return lake.silver(table.name) if table is QUALITY else lake.gold(table.name)


def chosen_rows(spark: SparkSession, path: str, table: DerivedTable, cluster: str | None) -> DataFrame:
    """Of the table at `path` those of the cluster; None: of all clusters."""
    rows = read(spark, path, table)
    return rows.where(f.col(CLUSTER) == cluster) if cluster is not None and CLUSTER in rows.columns else rows


def frame_of(spark: SparkSession, path: str, table: DerivedTable, cluster: str) -> pd.DataFrame:
    """A cluster's rows of a table, sorted, without paths and the columns that are the same in all of them."""
    rows = chosen_rows(spark, path, table, cluster)
    kept = [name for name in rows.columns if name not in (CLUSTER, DATE, "files")]
    plain = [field.name for field in rows.schema.fields if field.name in kept and field.dataType.typeName() != "map"]
    return rows.orderBy(*plain).select(*kept).toPandas()


if __name__ == "__main__":
    typer.run(report)
