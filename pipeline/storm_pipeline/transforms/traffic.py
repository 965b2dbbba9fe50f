"""Traffic matrices: tuples by window, between executors, components, workers and supervisors.

A period counts whole in the window that it ends in. Sums are of tuples, rate times length of the period, so that
windows add up; `measured_seconds` tells how much of a window was seen of a pair: above the executor level, in each
minute, of the pair seen longest. Levels and longer windows are sums of the minutes' executor level, which is the one
pass over all rows: its keys are numbers alone (names by their 64-bit hash), since hashing and comparing texts would
take most of its time. The names come back from silver `executors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from storm_operator.core.learned_profile import SYSTEM_PREFIX
from storm_operator.core.view_from_metrics import UNKNOWN_GROUPING
from storm_pipeline.schemas import CLUSTER, DATE, TRAFFIC_KEYS, WINDOWS

MICROSECONDS = 1_000_000
MINUTE = "1 minute"
ENDS = ("source", "target")
IN_TIME = ("window", "window_start")
SUMS = ("tuples", "measured_seconds")
SAME_WORKER, SAME_SUPERVISOR, NETWORK, UNPLACED = "worker", "supervisor", "network", "unplaced"
FIELDS_GROUPING = "fields"


def by_minute(pairs: DataFrame) -> DataFrame:
    """Silver `pairs` summed by minute and pair of executors, by where they lived; names are hashes."""
    seconds = f.col("period_seconds")
    return pairs.groupBy(
        f.expr(f"unix_seconds(period_end) div {WINDOWS[MINUTE]}").alias("minute"),
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


def residents(executors: DataFrame) -> DataFrame:
    """Which executors silver `executors` of a day has, and where they lived."""
    return executors.select("topology_id", "task_start", "component", "supervisor_id", "port").distinct()


def named(minutes: DataFrame, there: DataFrame) -> DataFrame:
    """`by_minute` with the names that `residents` of the same days has: the executor level.

    An executor that it has not is of an unknown component (null), never left out.
    """
    topology = topology_hash("topology_id").alias("topology")
    topologies = there.select(topology, "topology_id").distinct()
    tasks = there.select(topology, "task_start", "component").distinct()
    workers = there.select(worker_hash("supervisor_id", "port").alias("worker"), "supervisor_id", "port").distinct()
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
    return found.select(f.lit(MINUTE).alias("window"), start.alias("window_start"), *TRAFFIC_KEYS["executor"], *SUMS)


def in_windows(level: DataFrame, window: str) -> DataFrame:
    """A level's rows put into the longer `window` (a name of `WINDOWS`) that each lies in."""
    return level.withColumn("window", f.lit(window)).withColumn("window_start", _start(window))


def _start(window: str) -> Column:
    seconds = WINDOWS[window]
    return f.timestamp_seconds(f.expr(f"unix_seconds(window_start) div {seconds} * {seconds}"))


def in_longer_windows(minutes: DataFrame, windows: Sequence[str]) -> DataFrame:
    """The executor level in each of `windows`, shortest first: each is made from the one before."""
    made: list[DataFrame] = []
    for window in windows:
        made.append(at_level(in_windows(made[-1] if made else minutes, window), "executor"))
    return reduce(DataFrame.unionByName, made, minutes.where(f.lit(False)))


def at_level(finer: DataFrame, level: str) -> DataFrame:
    """The executor level (or for supervisors the worker level) summed to `level`, a name of `TRAFFIC_KEYS`.

    `measured_seconds` is that of the pair seen longest: sums over pairs are no time. Only of minutes is that right: in
    a longer window a pair that moved stands once for each place.
    """
    per_pair = f.sum if level == "executor" else f.max
    return finer.groupBy(*IN_TIME, *TRAFFIC_KEYS[level]).agg(
        f.sum("tuples").alias("tuples"), per_pair("measured_seconds").alias(SUMS[1])
    )


def in_each_window(minutes: DataFrame, level: str, windows: Sequence[str]) -> DataFrame:
    """A level's minutes in each of `windows`, which may have the minute itself; minutes seen add up, whoever moved.

    All of them in one go: a level above executors has few rows, and its minutes are the costly part.
    """
    each = [f.struct(f.lit(window).alias("window"), _start(window).alias("window_start")) for window in windows]
    keys = TRAFFIC_KEYS[level]
    rows = minutes.select(f.explode(f.array(*each)).alias("of"), *keys, *SUMS).select("of.*", *keys, *SUMS)
    return rows.groupBy(*IN_TIME, *keys).agg(*(f.sum(name).alias(name) for name in SUMS))


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
    of_topology = Window.partitionBy(*IN_TIME, "topology_id")
    sums = workers.groupBy(*IN_TIME, "topology_id", reach.alias("reach")).agg(f.sum("tuples").alias("tuples"))
    return sums.withColumn("share", _share(f.col("tuples"), f.sum("tuples").over(of_topology)))


def heaviest(executors: DataFrame, count: int) -> DataFrame:
    """The `count` pairs of executors with most tuples of each window and topology; ties by task numbers.

    The share comes last, so that Spark drops all but `count` pairs before it shuffles them by topology.
    """
    of_topology = [*IN_TIME, "topology_id"]
    pairs = executors.groupBy(*of_topology, "source", "source_task", "target", "target_task")
    best_first = Window.partitionBy(*of_topology).orderBy(f.desc("tuples"), "source_task", "target_task")
    ranked = pairs.agg(f.sum("tuples").alias("tuples")).withColumn("rank", f.row_number().over(best_first))
    totals = executors.groupBy(*of_topology).agg(f.sum("tuples").alias("total"))
    best = ranked.where(f.col("rank") <= count).join(f.broadcast(totals), of_topology)
    return best.withColumn("share", _share(f.col("tuples"), f.col("total")))


def key_skew(executors: DataFrame, edges: DataFrame, lived: DataFrame, windows: Sequence[str]) -> DataFrame:
    """How evenly fields groupings spread tuples over the executors of the receiving component, in each of `windows`.

    `imbalance` is the heaviest executor's tuples over the mean of all; `gini` is 0 for even and nears 1 where one gets
    all. Executors that got nothing count too, of those that silver executors (`lived`) has in the window. Edges that
    another grouping serves as well are left out: their tuples cannot be told apart. So are edges to ackers.
    """
    by_fields = _by_fields(edges)
    edge = [*IN_TIME, "topology_id", "source", "target"]
    of_fields = executors.join(f.broadcast(by_fields), ["topology_id", "source", "target"])
    received = of_fields.groupBy(*edge, "target_task").agg(f.sum("tuples").alias("tuples"))
    ordered = received.withColumn(
        "from_top", f.row_number().over(Window.partitionBy(*edge).orderBy(f.desc("tuples"), "target_task"))
    )
    sums = ordered.groupBy(*edge).agg(
        f.count(f.lit(1)).alias("reached"),
        f.sum("tuples").alias("tuples"),
        f.max("tuples").alias("heaviest"),
        f.sum(f.col("from_top") * f.col("tuples")).alias("weighted"),
    )
    receivers = _receivers(lived, by_fields, windows)
    figures = sums.join(f.broadcast(receivers), [*IN_TIME, "topology_id", "target"], "left")
    # Where nobody recorded them, those that something reached are all that are known of.
    n, total = f.greatest("there", "reached"), f.col("tuples")
    # Gini of n values x_1 >= ... >= x_n: (n + 1) / n - 2 (sum of i x_i) / (n sum of x_i). Zeros come last.
    return figures.where(total > 0).select(
        *edge,
        n.alias("receivers"),
        "tuples",
        (f.col("heaviest") / total).alias("heaviest_share"),
        (f.col("heaviest") * n / total).alias("imbalance"),
        ((n + 1) / n - 2.0 * f.col("weighted") / (n * total)).alias("gini"),
    )


def _by_fields(edges: DataFrame) -> DataFrame:
    """The edges between users' components that fields groupings alone serve."""
    users = edges.where(~f.col("target").startswith(SYSTEM_PREFIX))
    is_fields = f.bool_and(f.col("grouping").eqNullSafe(FIELDS_GROUPING)).alias("is_fields")
    pairs = stream_groupings(users).groupBy("topology_id", "source", "target").agg(is_fields)
    return pairs.where("is_fields").drop("is_fields")


def stream_groupings(edges: DataFrame) -> DataFrame:
    """Silver `edges` once each, with the grouping; null where no period knows it, as those filled in from metrics."""
    is_known = f.col("grouping") != UNKNOWN_GROUPING
    grouping = f.max(f.when(is_known, f.col("grouping"))).alias("grouping")
    return edges.groupBy("topology_id", "source", "stream", "target").agg(grouping)


def _receivers(lived: DataFrame, by_fields: DataFrame, windows: Sequence[str]) -> DataFrame:
    """How many executors of each target were there in each window.

    By minute they become a set, a row for a component: windows are made of these alone.
    """
    minute = f.expr(f"unix_seconds(period_end) div {WINDOWS[MINUTE]} * {WINDOWS[MINUTE]}").alias("minute")
    sets = (
        lived.select("topology_id", f.col("component").alias("target"), "task_start", minute)
        .join(f.broadcast(by_fields.select("topology_id", "target").distinct()), ["topology_id", "target"])
        .groupBy("topology_id", "target", "minute")
        .agg(f.array_sort(f.collect_set("task_start")).alias("tasks"))
    )
    each = sets.select("topology_id", "target", "tasks", f.inline(f.array(*map(_window_of_minute, windows))))
    tasks = each.groupBy(*IN_TIME, "topology_id", "target").agg(f.flatten(f.collect_set("tasks")).alias("tasks"))
    return tasks.withColumn("there", f.size(f.array_distinct("tasks"))).drop("tasks")


def _window_of_minute(window: str) -> Column:
    seconds = WINDOWS[window]
    start = f.timestamp_seconds(f.expr(f"minute div {seconds} * {seconds}"))
    return f.struct(f.lit(window).alias("window"), start.alias("window_start"))


def for_table(rows: DataFrame, cluster: str) -> DataFrame:
    """With the columns that gold tables are partitioned by."""
    return rows.withColumns({CLUSTER: f.lit(cluster), DATE: f.to_date("window_start")})


def _share(part: Column, whole: Column) -> Column:
    return f.when(whole > 0.0, part / whole)
