"""Recorded files: whose they are, what is in them, and which of them cannot be read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from storm_operator.core.history_tables import Table
from storm_pipeline.lake import Lake
from storm_pipeline.schemas import CLUSTER, DATE, bronze_schema
from storm_pipeline.transforms.clean import FILE

FILE_ITSELF = "path string, modificationTime timestamp, length bigint, content binary"
"""As Spark reads files of any kind; what is not asked for is not read."""
UNREADABLE = "this file cannot be read"
MISPLACED = f"{UNREADABLE}: it does not lie in a folder cluster=C/date=YYYY-MM-DD of its table"
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
UNKNOWN = "unknown"
"""Whose a file is that lies in no cluster's folder."""


def is_in_place(path: str, table: Table) -> bool:
    """Whether a file lies where recorders put those of `table`; Spark refuses to read others beside them."""
    folders = path.split("/")[-4:-1]
    return len(folders) == 3 and folders[0] == table.name and _names_cluster(folders[1]) and _names_date(folders[2])


def _names_cluster(folder: str) -> bool:
    """Spark reads no folder whose cluster has no name, and takes Hive's word for one that has none."""
    return folder.startswith(f"{CLUSTER}=") and folder.removeprefix(f"{CLUSTER}=") not in ("", NO_VALUE)


def _names_date(folder: str) -> bool:
    try:
        return folder == f"{DATE}={date.fromisoformat(folder.removeprefix(f'{DATE}=')):%Y-%m-%d}"
    except ValueError:
        return False


def cluster_of(path: str) -> str:
    """The cluster that a recorded file is of, by its folder cluster=C/date=D."""
    folder = path.split("/")[-3]
    return unquote(folder.removeprefix(f"{CLUSTER}=")) if _names_cluster(folder) else UNKNOWN


def date_of(path: str) -> str:
    """The date that a recorded file is of, likewise."""
    return path.split("/")[-2].removeprefix(f"{DATE}=")


def read_bronze(spark: SparkSession, lake: Lake, table: Table, paths: Iterable[str]) -> DataFrame:
    """The rows of recorded files, each with its file; columns that older files lack are null.

    A file that cannot be read is an error, whatever Spark's settings say: of a broken one Spark would give some rows.
    """
    reader = spark.read.schema(bronze_schema(table)).option("basePath", lake.bronze(table.name))
    rows = reader.option("ignoreCorruptFiles", "false").parquet(*paths)
    return rows.select("*", f.col("_metadata.file_path").alias(FILE))


def is_of_a_file(error: Py4JJavaError) -> bool:
    """Whether Spark failed because it could not read a file."""
    return "[FAILED_READ_FILE." in str(error.java_exception)


def faults_of(spark: SparkSession, lake: Lake, table: Table, paths: Iterable[str]) -> dict[str, str]:
    """The reasons for which some of the files cannot be read; each is tried alone."""
    tried = {path: _fault(spark, lake, table, path) for path in paths}
    return {path: fault for path, fault in tried.items() if fault is not None}


def _fault(spark: SparkSession, lake: Lake, table: Table, path: str) -> str | None:
    try:
        _go_through(read_bronze(spark, lake, table, [path]))
    except Py4JJavaError as error:
        if not is_of_a_file(error):
            raise
        _go_through(spark.read.format("binaryFile").load(path))  # an error here is the store's, no fault of the file
        return f"{UNREADABLE}: {_root_cause(error)}"
    return None


def _go_through(frame: DataFrame) -> None:
    """Ask for every value."""
    frame.agg(f.call_function("count", *frame.columns)).collect()


def _root_cause(error: Py4JJavaError) -> str:
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.getMessage()).partition("\n")[0]
