"""What is made of traffic by span: how far tuples go, the heaviest pairs, how evenly keys are spread."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from storm_operator.core.learned_profile import SYSTEM_PREFIX
from storm_operator.core.view_from_metrics import UNKNOWN_GROUPING
from storm_pipeline.schemas import CLUSTER, DATE
from storm_pipeline.transforms.spans import (
    IN_TIME,
    MINUTE,
    SPAN_START,
    TUPLES,
    at_level,
    in_each_window,
    presence,
    unfolded,
)

SAME_WORKER, SAME_SUPERVISOR, NETWORK, UNPLACED = "worker", "supervisor", "network", "unplaced"
FIELDS_GROUPING = "fields"
OF_TOPOLOGY = (*IN_TIME, "topology_id")
PAIR = ("source", "source_task", "target", "target_task")


def shares(workers: DataFrame, windows: Sequence[str]) -> DataFrame:
    """How far a topology's tuples go, from spans of workers: inside a worker, a supervisor, over the network."""
    placed = f.col("source_supervisor").isNotNull() & f.col("target_supervisor").isNotNull()
    same_supervisor = f.col("source_supervisor") == f.col("target_supervisor")
    reach = (
        f.when(~placed, UNPLACED)
        .when(same_supervisor & (f.col("source_port") == f.col("target_port")), SAME_WORKER)
        .when(same_supervisor, SAME_SUPERVISOR)
        .otherwise(NETWORK)
    )
    keys = ("topology_id", "reach")
    sums = in_each_window(at_level(workers.withColumn("reach", reach), *keys), keys, windows)
    return sums.withColumn("share", _share(f.col("tuples"), f.sum("tuples").over(Window.partitionBy(*OF_TOPOLOGY))))


def heaviest(executors: DataFrame, count: int, windows: Sequence[str]) -> DataFrame:
    """The `count` pairs of executors with most tuples of each window and topology, from spans; ties by task numbers.

    They are kept in a heap for each: nothing is sorted, and of minutes no row is made of a pair that is none of them.
    """
    keys = ("topology_id", *PAIR)
    pairs = at_level(executors, *keys)
    found = []
    if MINUTE in windows:
        each_minute = [column for name in TUPLES for column in _best(name, count)]
        spans = pairs.groupBy(SPAN_START, "topology_id").agg(*each_minute)
        columns = {f"{of}_tuples": [f"{of}_{name}" for name in TUPLES] for of in ("best", "total")}
        found.append(unfolded(spans, ["topology_id"], **columns).where(f.col("total_tuples").isNotNull()))
    if longer := [window for window in windows if window != MINUTE]:
        found.append(in_each_window(pairs, keys, longer).groupBy(*OF_TOPOLOGY).agg(*_best("tuples", count)))
    ranked = reduce(DataFrame.unionByName, found).select(
        *OF_TOPOLOGY, "total_tuples", f.posexplode("best_tuples").alias("place", "pair")
    )
    rows = ranked.select(*OF_TOPOLOGY, "total_tuples", (f.col("place") + 1).alias("rank"), "pair.*")
    return rows.withColumn("share", _share(f.col("tuples"), f.col("total_tuples"))).drop("total_tuples")


def _best(tuples: str, count: int) -> list[Column]:
    """The `count` pairs with most of the column `tuples`, and the sum of all."""
    order = f.struct(tuples, -f.col("source_task"), -f.col("target_task"))
    pair = f.struct(*PAIR, f.col(tuples).alias("tuples"))
    best = f.call_function("max_by", pair, f.when(f.col(tuples).isNotNull(), order), f.lit(count))
    return [best.alias(f"best_{tuples}"), f.sum(tuples).alias(f"total_{tuples}")]


def key_skew(executors: DataFrame, edges: DataFrame, lived: DataFrame, windows: Sequence[str]) -> DataFrame:
    """How evenly fields groupings spread tuples over the executors of the receiving component, in each of `windows`.

    `executors` are spans. `imbalance` is the heaviest executor's tuples over the mean of all; `gini` is 0 for even and
    nears 1 where one gets all. Executors that got nothing count too, of those that `lived` (`spans.lives`) has in the
    window. Edges that another grouping serves as well are left out: their tuples cannot be told apart. So are edges
    to ackers.
    """
    by_fields = _by_fields(edges)
    edge = [*OF_TOPOLOGY, "source", "target"]
    of_fields = executors.join(f.broadcast(by_fields), ["topology_id", "source", "target"])
    keys = ("topology_id", "source", "target", "target_task")
    received = in_each_window(at_level(of_fields, *keys), keys, windows)
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
    figures = sums.join(f.broadcast(receivers), [*OF_TOPOLOGY, "target"], "left")
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
    """How many executors of each target were there in each window."""
    targets = by_fields.select("topology_id", "target").distinct()
    executors = lived.withColumnRenamed("component", "target").join(f.broadcast(targets), ["topology_id", "target"])
    keys = ("topology_id", "target", "task_start")
    in_windows = in_each_window(presence(executors, *keys), keys, windows)
    return in_windows.groupBy(*OF_TOPOLOGY, "target").agg(f.count(f.lit(1)).alias("there"))


def for_table(rows: DataFrame, cluster: str) -> DataFrame:
    """With the columns that gold tables are partitioned by."""
    return rows.withColumns({CLUSTER: f.lit(cluster), DATE: f.to_date("window_start")})


def _share(part: Column, whole: Column) -> Column:
    return f.when(whole > 0.0, part / whole)
