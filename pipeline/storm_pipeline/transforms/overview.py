"""Of tables that grow with the history, the few rows that a page shows: aggregated and bounded before they leave Spark.

Sums are of tuples. Those over all of the history are made of the longest windows that the table has, its fewest rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from storm_pipeline.schemas import CLUSTER, WINDOWS
from storm_pipeline.transforms.spans import ENDS
from storm_pipeline.transforms.traffic import NETWORK, SAME_SUPERVISOR, SAME_WORKER, UNPLACED

MOST_WINDOWS = 400
"""Of a plot over time: a bar each is then still to be seen."""
MOST_TOPOLOGIES = 20
MOST_COMPONENTS = 20
MOST_PAIRS = 30
MOST_EDGES = 30
MOST_LINES = 6
MOST_REASONS = 30
MOST_GAPS = 200
MOST_OF_PLANS = 1000
"""Rows of a table that has some for each plan."""
OTHER = "(other)"
"""All components together that the matrix has no row for."""
UNRECORDED = "(not recorded)"
"""Components of executors that nobody recorded."""
REACHES: Mapping[str, str] = {
    SAME_WORKER: "within_worker",
    SAME_SUPERVISOR: "between_workers",
    NETWORK: "between_supervisors",
    UNPLACED: "place_unknown",
}
"""The columns that say how far tuples go, by the table's word; `between_workers` are those of one supervisor."""
EDGE = ("topology_id", "source", "target")


@dataclass(frozen=True, slots=True)
class Overview:
    """`rows` of the `count` (a frame of one row, `total`) things that there are to tell of."""

    rows: DataFrame
    count: DataFrame


def first(rows: DataFrame, most: int, *order: Column) -> Overview:
    """The first `most` rows in an order that leaves no tie."""
    return Overview(rows.orderBy(*order).limit(most), rows.agg(f.count(f.lit(1)).alias("total")))


def finest(rows: DataFrame, most: int = MOST_WINDOWS) -> DataFrame:
    """The rows of the shortest windows of which the table has at most `most`; of the longest where all have more."""
    counts = _windows(rows)
    few = [name for name, count in counts.items() if count <= most]
    return _of_window(rows, min(few, key=WINDOWS.__getitem__)) if few else coarsest(rows)


def coarsest(rows: DataFrame) -> DataFrame:
    """The rows of the longest windows that the table has."""
    return _of_window(rows, max(_windows(rows), key=WINDOWS.__getitem__, default=None))


def _windows(rows: DataFrame) -> dict[str, int]:
    """How many windows of each length there are."""
    counts = rows.groupBy("window").agg(f.count_distinct("window_start").alias("count")).collect()
    return {row["window"]: row["count"] for row in counts}


def _of_window(rows: DataFrame, window: str | None) -> DataFrame:
    return rows.where(f.col("window") == f.lit(window))


def reach_over_time(shares: DataFrame) -> Overview:
    """Gold `traffic_share` of a cluster, all topologies together: a row for each window, the newest ones."""
    return first(_reach_by(finest(shares), "window", "window_start"), MOST_WINDOWS, f.desc("window_start"))


def reach_of_topologies(shares: DataFrame) -> Overview:
    """The same over all of the history, a row for each topology: those with most tuples."""
    return first(_reach_by(coarsest(shares), "topology_id"), MOST_TOPOLOGIES, f.desc("tuples"), f.col("topology_id"))


def _reach_by(shares: DataFrame, *keys: str) -> DataFrame:
    """Tuples, and the part of them (0 to 1) that goes so far; null where there are none at all."""
    parts = {
        name: f.sum(f.when(f.col("reach") == reach, f.col("tuples")).otherwise(0.0)) for reach, name in REACHES.items()
    }
    sums = shares.groupBy(*keys).agg(
        f.sum("tuples").alias("tuples"), *[part.alias(name) for name, part in parts.items()]
    )
    return sums.withColumns({name: _part(f.col(name), f.col("tuples")) for name in parts})


def component_traffic(components: DataFrame) -> Overview:
    """Gold `traffic_component` over all of the history: tuples, and their share of all of the cluster.

    The components that send and receive most have rows of their own, all others are one: `OTHER`. Counted are
    components, of all topologies.
    """
    known = {end: f.coalesce(end, f.lit(UNRECORDED)) for end in ENDS}
    sums = coarsest(components).withColumns(known).groupBy(*EDGE).agg(f.sum("tuples").alias("tuples"))
    ends = [sums.select("topology_id", f.col(end).alias("component"), "tuples") for end in ENDS]
    busy = ends[0].unionAll(ends[1]).groupBy("topology_id", "component").agg(f.sum("tuples").alias("tuples"))
    chosen = first(busy, MOST_COMPONENTS, f.desc("tuples"), f.col("topology_id"), f.col("component"))
    merged = _merged(sums, chosen.rows).crossJoin(sums.agg(f.sum("tuples").alias("all")))
    rows = merged.select(*EDGE, "tuples", _part(f.col("tuples"), f.col("all")).alias("share"))
    return Overview(rows.orderBy(f.desc("tuples"), *EDGE), chosen.count)


def _merged(sums: DataFrame, chosen: DataFrame) -> DataFrame:
    """The edges with `OTHER` for ends that are not `chosen`; an edge between two such is of no topology."""
    for end in ENDS:
        there = chosen.select("topology_id", f.col("component").alias(end), f.lit(True).alias(f"{end}_is_chosen"))
        sums = sums.join(f.broadcast(there), ["topology_id", end], "left")
    is_chosen = [f.col(f"{end}_is_chosen").isNotNull() for end in ENDS]
    topology = f.when(is_chosen[0] | is_chosen[1], f.col("topology_id")).otherwise(OTHER).alias("topology_id")
    ends = [f.when(one, f.col(end)).otherwise(OTHER).alias(end) for one, end in zip(is_chosen, ENDS, strict=True)]
    return sums.groupBy(topology, *ends).agg(f.sum("tuples").alias("tuples"))


def heaviest_of_all(pairs: DataFrame) -> Overview:
    """Of gold `heaviest_pairs`, the pairs with most tuples in any one of the longest windows.

    `tuples`, their `share` of the topology's and `window_start` are of that window; `windows` tells in how many the
    pair was among the heaviest. A sum over windows would lack those in which it was not.
    """
    keys = ("window", "topology_id", "source", "source_task", "target", "target_task")
    best = f.max(f.struct("tuples", "share", "window_start")).alias("best")
    of_pair = coarsest(pairs).groupBy(*keys).agg(best, f.count(f.lit(1)).alias("windows"))
    rows = of_pair.select(*keys[1:], "best.*", "window", "windows")
    return first(rows, MOST_PAIRS, f.desc("tuples"), *[f.col(key) for key in keys[1:]])


def skewed_edges(skew: DataFrame) -> Overview:
    """Gold `key_skew` over all of the history, by edge: means over windows, weighted by their tuples.

    First the edges whose heaviest receivers got most `tuples_beyond_even`: more than an even part. Few tuples are
    spread unevenly by chance, and the imbalance alone would put them first.
    """
    tuples = f.col("tuples")
    beyond = f.sum(tuples * f.col("heaviest_share") - tuples / f.col("receivers")).alias("tuples_beyond_even")
    means = [
        (f.sum(f.col(name) * tuples) / f.sum(tuples)).alias(name) for name in ("heaviest_share", "imbalance", "gini")
    ]
    edges = (
        coarsest(skew)
        .groupBy(*EDGE)
        .agg(f.max("receivers").alias("receivers"), f.sum(tuples).alias("tuples"), beyond, *means)
    )
    return first(edges, MOST_EDGES, f.desc("tuples_beyond_even"), *[f.col(key) for key in EDGE])


def skew_over_time(skew: DataFrame) -> Overview:
    """The first few of `skewed_edges`, each window by itself, the newest ones."""
    chosen = skewed_edges(skew).rows.limit(MOST_LINES).select(*EDGE)
    rows = finest(skew).join(f.broadcast(chosen), list(EDGE))
    kept = ("window", "window_start", *EDGE, "receivers", "tuples", "heaviest_share", "imbalance", "gini")
    return first(rows.select(*kept), MOST_LINES * MOST_WINDOWS, f.desc("window_start"), *[f.col(key) for key in EDGE])


def rows_by_table(quality: DataFrame) -> Overview:
    """Table `quality` over all batches: what became of the rows of each recorded table. There are few of these."""
    counts = ("rows_read", "rows_kept", "duplicates", "quarantined")
    sums = quality.groupBy("table").agg(
        f.count(f.lit(1)).alias("batches"),
        *[f.sum(name).alias(name) for name in counts],
        f.min("first_period").alias("first_period"),
        f.max("last_period").alias("last_period"),
    )
    return first(sums, MOST_REASONS, f.col("table"))


def rows_by_reason(quarantine: DataFrame) -> Overview:
    """Table `quarantine`: how many rows were set aside for which reason; a file that cannot be read counts as one."""
    sums = quarantine.groupBy("table", "reason").agg(
        f.count(f.lit(1)).alias("rows"),
        f.min(_shown("period_end")).alias("first_period"),
        f.max(_shown("period_end")).alias("last_period"),
    )
    return first(sums, MOST_REASONS, f.desc("rows"), f.col("table"), f.col("reason"))


def longest_gaps(gaps: DataFrame) -> Overview:
    """Gold `gaps`: when nothing was recorded, for how many seconds, and why."""
    micros = f.unix_micros("gap_end") - f.unix_micros("gap_start")
    rows = gaps.select("gap_start", "gap_end", (micros / 1e6).alias("seconds"), "missing_periods", "dropped", "reason")
    return first(rows, MOST_GAPS, f.desc("seconds"), f.col("gap_start"))


def newest_effects(effects: DataFrame) -> Overview:
    """Gold `plan_effects`, as it is."""
    rows = effects.drop(CLUSTER)
    return first(rows, MOST_OF_PLANS, f.desc("created_at"), f.col("plan_id"), f.col("topology_id"), f.col("figure"))


def dearest_restarts(costs: DataFrame) -> Overview:
    """Gold `restart_costs`, as it is; those that nobody could measure come last."""
    order = (f.desc_nulls_last("missing_trees"), f.desc("unknown_seconds"), f.col("plan_id"), f.col("topology_id"))
    return first(costs.drop(CLUSTER), MOST_OF_PLANS, *order)


def _shown(time: str) -> Column:
    """Null where pandas has no such time: what is set aside may be of any."""
    return f.expr(f"CASE WHEN {time} BETWEEN TIMESTAMP'1678-01-01' AND TIMESTAMP'2262-01-01' THEN {time} END")


def _part(part: Column, whole: Column) -> Column:
    return f.when(whole > 0.0, part / whole)
