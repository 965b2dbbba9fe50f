"""A `Recording` out of the cleaned tables: sums and medians by Spark, the rest of a cluster fits in one's hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from storm_operator.core.model import ACKER_COMPONENT
from storm_pipeline.jobs.learning import silver
from storm_pipeline.lake import Lake, days_of
from storm_pipeline.transforms.components import COST_PER_TUPLE, component_periods
from storm_pipeline.transforms.traffic import stream_groupings
from storm_pipeline.tuning.lives import Loads, absences, loads_by_name, newest_lives, with_absences
from storm_pipeline.tuning.recording import (
    COSTS,
    USUAL_ROUND_TRIP_MS,
    InvalidRecording,
    RecordedComponent,
    RecordedEdge,
    RecordedTopology,
    Recording,
)
from storm_pipeline.tuning.unrecorded import States, assumptions, gap_seconds, loads_assumed, machines, states

SYSTEM_PREFIX = "__"
TupleCosts = Mapping[tuple[str, str], float | None]
"""Millicores for a tuple per second by topology id and component, of those that were ever measured whole; None of one
that executed nothing then."""
Edges = Mapping[tuple[str, str], tuple[RecordedEdge, ...]]
"""By topology id and source."""

SOURCES = ("executors", "edges", "pairs", "periods", "supervisors", "topologies")
Within = Callable[[str], DataFrame]
"""The rows of a silver table within the time that is replayed."""


def recorded(spark: SparkSession, lake: Lake, cluster: str, hours: float) -> tuple[float, Within]:
    """When the time that `read_recording` takes begins, in seconds since 1970, and what there is of it.

    Of a long history it opens no other files than those of these dates and times.
    """
    last = _newest_period(spark, lake, cluster)
    first = datetime.fromtimestamp(last.timestamp() - hours * 3600.0, UTC)
    is_within = (f.col("period_end") > f.lit(first)) & (f.col("period_end") <= f.lit(last))

    def within(table: str) -> DataFrame:
        return silver(spark, lake, table, cluster, first.date(), last.date()).where(is_within)

    return first.timestamp(), within


def _newest_period(spark: SparkSession, lake: Lake, cluster: str) -> datetime:
    days = days_of(spark, lake.silver("executors"), cluster)
    if not days:
        raise InvalidRecording(f"there is no cleaned history of cluster {cluster!r}")
    newest = silver(spark, lake, "executors", cluster, days[-1].date, days[-1].date)
    microseconds = newest.agg(f.max(f.unix_micros("period_end"))).first()[0]  # type: ignore[index]
    return datetime.fromtimestamp(microseconds / 1e6, UTC)


def read_recording(spark: SparkSession, lake: Lake, cluster: str, hours: float) -> Recording:
    """The last `hours` before the newest period, or what was recorded of them.

    Raises `InvalidRecording` where there is nothing.
    """
    first, within = recorded(spark, lake, cluster, hours)
    return recording_of(within, cluster, first, first + hours * 3600.0)


def recording_of(within: Within, cluster: str, first: float, last: float) -> Recording:
    """What `within` has of a cluster, from `first` to `last`, in seconds since 1970.

    Raises `InvalidRecording` where that is nothing.
    """
    began = max(first, _began(within("periods"), first))  # of what was before nobody knows the load
    executors = within("executors")
    components = component_periods(executors).cache()
    try:
        period = components.agg(f.expr("percentile(period_seconds, 0.5)")).first()[0]  # type: ignore[index]
        if period is None:
            raise InvalidRecording(f"cluster {cluster!r} was not measured completely in that time")
        lives = newest_lives(executors, components)
        loads = _loads(loads_by_name(components), absences(within("periods"), within("topologies"), executors), began)
        costs = _costs(components)
        edges = _edges(within("edges"), within("pairs"), executors, components)
    finally:
        components.unpersist()
    there, without_ports = machines(within("supervisors"), executors)
    known_states = states(executors)
    topologies = _topologies(within("topologies"), executors, lives, loads, costs, edges, known_states)
    seconds = max(at for points in loads.values() for at, _ in points) if loads else 0.0
    assumed = loads_assumed(seconds, gap_seconds(within("periods")))
    return Recording(
        cluster,
        seconds,
        float(period),
        _round_trip(within("periods")),
        there,
        topologies,
        last,
        (*assumed, *assumptions(without_ports, topologies, known_states)),
    )


def _began(periods: DataFrame, otherwise: float) -> float:
    found = periods.agg(f.min(f.unix_micros("period_end") / 1e6 - f.col("period_seconds"))).first()[0]  # type: ignore[index]
    return otherwise if found is None else float(found)


def _loads(loads: Loads, absent: Mapping[str, Sequence[float]], began: float) -> Loads:
    """What spouts offered, in seconds since `began`: nothing while their topology did not run."""
    return {
        (name, component): tuple((at - began, rate) for at, rate in with_absences(points, absent.get(name, ())))
        for (name, component), points in loads.items()
    }


def _costs(components: DataFrame) -> TupleCosts:
    """Without idling, which the simulator adds to each executor."""
    beside_idling = f.col("cpu_millicores") - COSTS.idle_executor_millicores * f.col("busy_executors")
    busy = components.withColumn("cpu_millicores", f.greatest(f.lit(0.0), beside_idling))
    rows = busy.groupBy("topology_id", "component").agg(f.expr(COST_PER_TUPLE).alias("cpu_ms")).collect()
    return {(row["topology_id"], row["component"]): row["cpu_ms"] for row in rows}


def _edges(edges: DataFrame, pairs: DataFrame, executors: DataFrame, components: DataFrame) -> Edges:
    """Tuples of an edge for each tuple that its source executed; several streams of one pair share them evenly.

    Both are of the periods alone in which all of the source was measured: what it sent while nobody knows how much it
    executed would make more of each tuple than there was.
    """
    whole = components.select("topology_id", f.col("component").alias("source"), "period_end")
    known = executors.select("topology_id", "component", "task_start").distinct()
    sent = (
        pairs.join(known.toDF("topology_id", "source", "source_task"), ["topology_id", "source_task"])
        .join(known.toDF("topology_id", "target", "target_task"), ["topology_id", "target_task"])
        .join(whole, ["topology_id", "source", "period_end"], "left_semi")
        .groupBy("topology_id", "source", "target")
        .agg(f.sum(f.col("tuples_per_second") * f.col("period_seconds")).alias("sent"))
    )
    executed = components.groupBy("topology_id", f.col("component").alias("source")).agg(
        f.sum(f.col("executed_per_second") * f.col("period_seconds")).alias("executed")
    )
    rows = (
        stream_groupings(edges.where(~f.col("stream").startswith(SYSTEM_PREFIX)))
        .join(sent, ["topology_id", "source", "target"])
        .join(executed, ["topology_id", "source"])
        .where("executed > 0")
        .orderBy("topology_id", "source", "stream", "target")
        .collect()
    )
    streams: dict[tuple[str, str, str], int] = {}
    for row in rows:
        streams[_pair(row)] = streams.get(_pair(row), 0) + 1
    found: dict[tuple[str, str], list[RecordedEdge]] = {}
    for row in rows:
        ratio = row["sent"] / row["executed"] / streams[_pair(row)]
        edge = RecordedEdge(row["source"], row["stream"], row["target"], row["grouping"] or "shuffle", ratio)
        found.setdefault((row["topology_id"], row["source"]), []).append(edge)
    return {source: tuple(own) for source, own in found.items()}


def _pair(row: Row) -> tuple[str, str, str]:
    return row["topology_id"], row["source"], row["target"]


def _round_trip(periods: DataFrame) -> float:
    found = periods.agg(f.expr("percentile(default_round_trip_ms, 0.5)")).first()[0]  # type: ignore[index]
    return USUAL_ROUND_TRIP_MS if found is None else float(found)


def _topologies(
    topologies: DataFrame,
    executors: DataFrame,
    lives: Mapping[str, Sequence[str]],
    loads: Loads,
    costs: TupleCosts,
    edges: Edges,
    known_states: States,
) -> tuple[RecordedTopology, ...]:
    """One for each name, as its first id in `lives` was last seen: a cluster never runs two of one name.

    What a component does with a tuple is of the first of its lives in which it was measured at work.
    """
    newest = executors.groupBy("topology_id").agg(f.max("period_end").alias("period_end"))
    members = (
        executors.join(newest, ["topology_id", "period_end"])
        .groupBy("topology_id", "component", "component_kind")
        .agg(f.count(f.lit(1)).alias("executors"))
        .orderBy("topology_id", "component")
        .collect()
    )
    workers = topologies.groupBy("topology_id").agg(f.max("num_workers").alias("workers")).collect()
    asked = {row["topology_id"]: int(row["workers"] or 1) for row in workers}
    found = []
    for name, ids in sorted(lives.items()):
        topology_id = ids[0]
        there = [row for row in members if row["topology_id"] == topology_id]
        ackers = sum(row["executors"] for row in there if row["component"] == ACKER_COMPONENT)
        own = [row for row in there if not row["component"].startswith(SYSTEM_PREFIX)]
        known_by = {row["component"]: _life_at_work(name, ids, row["component"], costs) for row in own}
        components = tuple(
            RecordedComponent(
                row["component"],
                row["component_kind"],
                int(row["executors"]),
                known_states.get((name, row["component"]), False),
                costs[known_by[row["component"]], row["component"]] or 0.0,  # None: it is known to have rested
                loads.get((name, row["component"]), ()),
            )
            for row in own
        )
        found.append(
            RecordedTopology(
                topology_id,
                name,
                asked.get(topology_id, 1),
                int(ackers),
                components,
                tuple(edge for component, life in known_by.items() for edge in edges.get((life, component), ())),
            )
        )
    return tuple(found)


def _life_at_work(name: str, ids: Sequence[str], component: str, costs: TupleCosts) -> str:
    """The first of `ids` in which the component was measured at work, or was measured at all.

    Raises `InvalidRecording` where there is none: nobody knows what its tuples cost and bring about, and to replay it
    as if that were nothing would tell how settings do with another topology.
    """
    measured = [topology_id for topology_id in ids if (topology_id, component) in costs]
    if not measured:
        raise InvalidRecording(
            f"topology {name}: in no period of that time were all executors of {component} measured, so that nobody "
            "knows what its tuples cost: replay more of the history (--hours), or see that its agents are read"
        )
    return next((life for life in measured if costs[life, component] is not None), measured[0])
