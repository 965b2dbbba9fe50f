"""Traffic matrices: tuples by window, between executors, components, workers and supervisors.

A period counts whole in the window that it ends in. Sums are of tuples, rate times length of the period, so that
windows add up; `measured_seconds` tells how much of a window was seen of a pair. Levels and longer windows are sums of
the minutes' executor level, which is the one pass over all rows: its keys are numbers alone (names by their 64-bit
hash), since hashing and comparing texts would take most of its time. The names come back from silver `executors`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from storm_pipeline.schemas import CLUSTER, DATE, TRAFFIC_KEYS, WINDOWS

MICROSECONDS = 1_000_000
MINUTE = "1 minute"
ENDS = ("source", "target")
SUMS = ("tuples", "measured_seconds")
SAME_WORKER, SAME_SUPERVISOR, NETWORK, UNPLACED = "worker", "supervisor", "network", "unplaced"
FIELDS_GROUPING = "fields"


def by_minute(pairs: DataFrame) -> DataFrame:
    """Silver `pairs` summed by minute and pair of executors, by where they lived; names are hashes."""
    seconds = f.col("period_seconds")
    return pairs.groupBy(
        f.floor(f.unix_seconds("period_end") / WINDOWS[MINUTE]).alias("minute"),
        topology_hash("topology_id").alias("topology"),
        "source_task",
        "target_task",
        *[worker_hash(f"{end}_supervisor", f"{end}_port").alias(f"{end}_worker") for end in ENDS],
    ).agg(f.sum(f.col("tuples_per_second") * seconds).alias("tuples"), f.sum(seconds).alias("measured_seconds"))


def topology_hash(topology_id: str) -> Column:
    """64 bits: of a million names, two are alike once in 37 million histories."""
    return f.xxhash64(topology_id)


def worker_hash(supervisor: str, port: str) -> Column:
    return f.xxhash64(supervisor, port)


def named(minutes: DataFrame, executors: DataFrame) -> DataFrame:
    """`by_minute` with the names that silver `executors` of the same days has: the executor level.

    An executor that it has not is of an unknown component (null), never left out.
    """
    topologies = executors.select(topology_hash("topology_id").alias("topology"), "topology_id").distinct()
    tasks = executors.select(
        topology_hash("topology_id").alias("topology"), f.col("task_start"), f.col("component")
    ).distinct()
    workers = executors.select(worker_hash("supervisor_id", "port").alias("worker"), "supervisor_id", "port").distinct()
    found = minutes.join(f.broadcast(topologies), "topology", "left")
    for end in ENDS:
        of_end = tasks.select("topology", f.col("task_start").alias(f"{end}_task"), f.col("component").alias(end))
        place = workers.select(
            f.col("worker").alias(f"{end}_worker"),
            f.col("supervisor_id").alias(f"{end}_supervisor"),
            f.col("port").alias(f"{end}_port"),
        )
        found = found.join(f.broadcast(of_end), ["topology", f"{end}_task"], "left")
        found = found.join(f.broadcast(place), f"{end}_worker", "left")
    start = f.timestamp_seconds(f.col("minute") * WINDOWS[MINUTE])
    return found.withColumn("window_start", start).select("window_start", *TRAFFIC_KEYS["executor"], *SUMS)


def in_windows(level: DataFrame, window: str) -> DataFrame:
    """A level's rows with `window_start` that of the longer `window` (a name of `WINDOWS`)."""
    seconds = WINDOWS[window]
    start = f.timestamp_seconds(f.floor(f.unix_seconds("window_start") / seconds) * seconds)
    return level.withColumn("window_start", start)


def at_level(executors: DataFrame, level: str) -> DataFrame:
    """The executor level summed to `level`, a name of `TRAFFIC_KEYS`.

    `measured_seconds` is that of the pair seen longest: sums over pairs are no time.
    """
    keys = ["window_start", *TRAFFIC_KEYS[level]]
    per_pair = f.sum if level == "executor" else f.max
    return executors.groupBy(*keys).agg(f.sum("tuples").alias("tuples"), per_pair("measured_seconds").alias(SUMS[1]))


def shares(workers: DataFrame) -> DataFrame:
    """How far a topology's tuples go, from the worker level: inside a worker, a supervisor, over the network."""
    placed = f.col("source_supervisor").isNotNull() & f.col("target_supervisor").isNotNull()
    same_supervisor = f.col("source_supervisor") == f.col("target_supervisor")
    reach = (
        f.when(~placed, UNPLACED)
        .when(same_supervisor & (f.col("source_port") == f.col("target_port")), SAME_WORKER)
        .when(same_supervisor, SAME_SUPERVISOR)
        .otherwise(NETWORK)
    )
    of_topology = Window.partitionBy("window_start", "topology_id")
    sums = workers.groupBy("window_start", "topology_id", reach.alias("reach")).agg(f.sum("tuples").alias("tuples"))
    return sums.withColumn("share", _share(f.col("tuples"), f.sum("tuples").over(of_topology)))


def heaviest(executors: DataFrame, count: int) -> DataFrame:
    """The `count` pairs of executors with most tuples of each window and topology; ties by task numbers."""
    pair = ["window_start", "topology_id", "source", "source_task", "target", "target_task"]
    sums = executors.groupBy(*pair).agg(f.sum("tuples").alias("tuples"))
    of_topology = Window.partitionBy("window_start", "topology_id")
    ranked = sums.withColumn("share", _share(f.col("tuples"), f.sum("tuples").over(of_topology))).withColumn(
        "rank", f.row_number().over(of_topology.orderBy(f.desc("tuples"), "source_task", "target_task"))
    )
    return ranked.where(f.col("rank") <= count)


def key_skew(executors: DataFrame, edges: DataFrame, silver_executors: DataFrame) -> DataFrame:
    """How evenly fields groupings spread tuples over the executors of the receiving component.

    `imbalance` is the heaviest executor's tuples over the mean of all; `gini` is 0 for even and nears 1 where one gets
    all. Executors that got nothing count too. Edges that another grouping serves as well are left out: their tuples
    cannot be told apart.
    """
    groupings = edges.groupBy("topology_id", "source", "target").agg(f.collect_set("grouping").alias("groupings"))
    by_fields = groupings.where((f.size("groupings") == 1) & (f.element_at("groupings", 1) == FIELDS_GROUPING)).drop(
        "groupings"
    )
    there = silver_executors.groupBy("topology_id", f.col("component").alias("target")).agg(
        f.count_distinct("task_start").alias("receivers")
    )
    edge = ["window_start", "topology_id", "source", "target"]
    received = executors.groupBy(*edge, "target_task").agg(f.sum("tuples").alias("tuples"))
    received = received.join(f.broadcast(by_fields), ["topology_id", "source", "target"])
    # Gini of n values x_1 <= ... <= x_n: (2 sum of i x_i) / (n sum of x_i) - (n + 1) / n. Zeros come first.
    ordered = received.withColumn(
        "from_top", f.row_number().over(Window.partitionBy(*edge).orderBy(f.desc("tuples"), "target_task"))
    )
    figures = ordered.join(f.broadcast(there), ["topology_id", "target"])
    position = f.col("receivers") - f.col("from_top") + 1
    sums = figures.groupBy(*edge).agg(
        f.max("receivers").alias("receivers"),
        f.sum("tuples").alias("tuples"),
        f.max("tuples").alias("heaviest"),
        f.sum(position * f.col("tuples")).alias("weighted"),
    )
    n, total = f.col("receivers"), f.col("tuples")
    return sums.where(total > 0).select(
        *edge,
        "receivers",
        "tuples",
        (f.col("heaviest") / total).alias("heaviest_share"),
        (f.col("heaviest") * n / total).alias("imbalance"),
        (2.0 * f.col("weighted") / (n * total) - (n + 1) / n).alias("gini"),
    )


def for_table(rows: DataFrame, cluster: str, window: str) -> DataFrame:
    """With the columns that gold tables are partitioned by."""
    return rows.select(
        "*", f.lit(cluster).alias(CLUSTER), f.to_date("window_start").alias(DATE), f.lit(window).alias("window")
    )


def _share(part: Column, whole: Column) -> Column:
    return f.when(whole > 0.0, part / whole)
