"""A topology's lives: the ids that its name had in a stretch of history, and when it did not run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

Points = tuple[tuple[float, float], ...]
"""(seconds since 1970, tuples per second)."""
Loads = Mapping[tuple[str, str], Points]
"""By topology name and component."""


def newest_lives(executors: DataFrame, components: DataFrame) -> Mapping[str, tuple[str, ...]]:
    """By name its ids. The first stands for all: the newest one of which a spout was measured, or the newest of all."""
    measured = (
        components.where("component_kind = 'spout'").select("topology_id").distinct().withColumn("measured", f.lit(1))
    )
    rows = (
        executors.groupBy("topology_name", "topology_id")
        .agg(f.max("period_end").alias("last"), f.min("period_end").alias("first"))
        .join(measured, "topology_id", "left")
        .orderBy(f.coalesce("measured", f.lit(0)).desc(), f.desc("last"), f.desc("first"), f.desc("topology_id"))
        .collect()
    )
    found: dict[str, tuple[str, ...]] = {}
    for row in rows:
        found[row["topology_name"]] = (*found.get(row["topology_name"], ()), row["topology_id"])
    return found


def loads_by_name(components: DataFrame) -> Loads:
    """What spouts emitted, whatever the id of their topology was; of two at a time, what both did."""
    rows = (
        components.where("component_kind = 'spout'")
        .groupBy("topology_name", "component", _at().alias("at"))
        .agg(f.sum("emitted_per_second").alias("emitted"))
        .orderBy("topology_name", "component", "at")
        .collect()
    )
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows:
        found.setdefault((row["topology_name"], row["component"]), []).append((row["at"], row["emitted"]))
    return {key: tuple(points) for key, points in found.items()}


def absences(periods: DataFrame, topologies: DataFrame, executors: DataFrame) -> Mapping[str, tuple[float, ...]]:
    """When, by name, the cluster was seen without the topology: not yet submitted, between two lives, or killed.

    Periods in which it ran and nobody measured it are none of these: what it did then is unknown.
    """
    there = ["topology_name", "period_end"]
    seen = topologies.select(*there).unionByName(executors.select(*there)).distinct()
    rows = (
        executors.select("topology_name")
        .distinct()
        .crossJoin(periods.select("period_end").distinct())
        .join(seen, there, "left_anti")
        .select("topology_name", _at().alias("at"))
        .orderBy("topology_name", "at")
        .collect()
    )
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row["topology_name"], []).append(row["at"])
    return {name: tuple(moments) for name, moments in found.items()}


def with_absences(points: Points, absent: Iterable[float]) -> Points:
    """`points` in time, with nothing emitted while the topology did not run."""
    return tuple(sorted({**dict.fromkeys(absent, 0.0), **dict(points)}.items()))


def _at() -> Column:
    return f.unix_micros("period_end") / 1e6
