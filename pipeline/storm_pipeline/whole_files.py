"""Recorded files in which nothing has to be cleaned: into a Delta table as they are, byte for byte.

Spark writes row by row, which for a large cluster is most of what ingest costs. A file of the recorder that is valid,
whole and new has the very rows that would be written, and columns that a Delta table does not name are not seen in it.
Small files are left to Spark, which makes one of many.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from pyspark.sql import SparkSession

from storm_pipeline.lake import delta_log, prepare
from storm_pipeline.schemas import CLUSTER, DATE, DerivedTable

COPIES_AT_ONCE = 8
"""Of an object store each waits for its answers."""


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A recorded file, its partition, and what its rows' `period_end` range over."""

    path: str
    cluster: str
    date: str
    rows: int
    first_period: datetime
    last_period: datetime


def large_ones(spark: SparkSession, files: Iterable[WholeFile], least_bytes: int) -> tuple[WholeFile, ...]:
    """Those of at least so many bytes."""
    return tuple(file for file in files if _status(spark, file.path).getLen() >= least_bytes)


def take_over(
    spark: SparkSession, files: Sequence[WholeFile], path: str, table: DerivedTable, writer: str, batch: int
) -> None:
    """Copy `files` into the Delta table at `path` and commit them in one step.

    Nothing is done when `writer` has already committed this `batch`. Cut short before the commit it leaves copies that
    no version of the table names; the next try replaces them.
    """
    if not files:
        return
    prepare(spark, path, table)
    transaction = delta_log(spark, path).startTransaction()
    if transaction.txnVersion(writer) >= batch:
        return
    names = [f"{_folder(file)}/whole-{writer}-{batch}-{number}.parquet" for number, file in enumerate(files)]
    with ThreadPoolExecutor(COPIES_AT_ONCE) as pool:
        list(pool.map(lambda file, name: _copy(spark, file.path, f"{path}/{name}"), files, names))
    actions = [{"add": _added(spark, file, f"{path}/{name}", name)} for file, name in zip(files, names, strict=True)]
    done = {"txn": {"appId": writer, "version": batch, "lastUpdated": actions[-1]["add"]["modificationTime"]}}
    _commit(spark, transaction, [*actions, done])


def _folder(file: WholeFile) -> str:
    return f"{CLUSTER}={quote(file.cluster, safe='')}/{DATE}={file.date}"


def _added(spark: SparkSession, file: WholeFile, copy: str, name: str) -> dict[str, Any]:
    """As Delta's protocol describes a file of a table; its path is a URL's."""
    status = _status(spark, copy)
    statistics = {
        "numRecords": file.rows,
        "minValues": {"period_end": _iso(file.first_period, math.floor)},
        "maxValues": {"period_end": _iso(file.last_period, math.ceil)},
        "nullCount": {"period_end": 0},
    }
    return {
        "path": quote(name, safe="/="),
        "partitionValues": {CLUSTER: file.cluster, DATE: file.date},
        "size": status.getLen(),
        "modificationTime": status.getModificationTime(),
        "dataChange": True,
        "stats": json.dumps(statistics),
    }


def _iso(moment: datetime, to_whole: Any) -> str:
    """To the millisecond, which is as exact as Delta's statistics are."""
    milliseconds = to_whole(moment.replace(tzinfo=UTC).timestamp() * 1e3)
    return datetime.fromtimestamp(milliseconds / 1e3, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _commit(spark: SparkSession, transaction: Any, actions: Sequence[dict[str, Any]]) -> None:
    """By Delta's own transaction: its public interface takes frames alone."""
    delta = _delta(spark)
    listed = spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
    for action in actions:
        listed.add(delta.actions.Action.fromJson(json.dumps(action)))
    sequence = spark._jvm.scala.jdk.javaapi.CollectionConverters.asScala(listed).toSeq()  # type: ignore[union-attr]
    by_hand = getattr(getattr(delta, "DeltaOperations$ManualUpdate$"), "MODULE$")
    transaction.commit(sequence, by_hand)


def _copy(spark: SparkSession, source: str, target: str) -> None:
    conf = spark._jsc.hadoopConfiguration()
    of, to = _hadoop(spark).Path(source), _hadoop(spark).Path(target)
    _hadoop(spark).FileUtil.copy(of.getFileSystem(conf), of, to.getFileSystem(conf), to, False, True, conf)


def _status(spark: SparkSession, path: str) -> Any:
    of = _hadoop(spark).Path(path)
    return of.getFileSystem(spark._jsc.hadoopConfiguration()).getFileStatus(of)


def _hadoop(spark: SparkSession) -> Any:
    return spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]


def _delta(spark: SparkSession) -> Any:
    return spark._jvm.org.apache.spark.sql.delta  # type: ignore[union-attr]
