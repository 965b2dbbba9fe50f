"""`storm-pipeline report`: one page over all that was learned, and the same as tables."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer
from pyspark.sql import SparkSession

from storm_pipeline.job_console import job_console
from storm_pipeline.jobs.learning import clusters_of
from storm_pipeline.lake import Lake
from storm_pipeline.options import (
    Cluster,
    Conf,
    Heap,
    LakeRoot,
    Master,
    OffHeap,
    cleaned_lake,
    insist_on_writable,
    settings_of,
    spark_job,
)
from storm_pipeline.reporting.page import write_report
from storm_pipeline.reporting.reading import read_known, sources
from storm_pipeline.reporting.sections import sections


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

    Of several clusters each has a folder of its name; what no folder's name may have is in it as in a URL (%2F for /).
    Reads what the other jobs have written; where there is nothing, it says why.
    """
    console = job_console()
    tables = cleaned_lake(lake)
    insist_on_writable("--output", output)

    rows = sources(tables, cluster)
    with spark_job("report", settings_of(master, heap, off_heap, conf), console, tables, sources=rows) as spark:
        clusters = clusters_of(spark, tables, cluster)
        for name in clusters:
            with console.status(f"report on {name}"):
                path = run(spark, tables, name, output if len(clusters) == 1 else folder_of(name, output))
            console.print(f"report: {path}", soft_wrap=True)


def folder_of(cluster: str, output: str) -> str:
    """Of one of several clusters: no two names have the same, and none is of more than one part."""
    folder = "%2E" * len(cluster) if cluster in (".", "..") else quote(cluster, safe=":")
    return f"{output.rstrip('/')}/{folder}"


def run(spark: SparkSession, lake: Lake, cluster: str, folder: str) -> str:
    """Write the report on one cluster; the page's path."""
    words = f"Made from {lake.root}."
    return write_report(cluster, sections(read_known(spark, lake, cluster)), words, folder)
