"""What a backfill cannot know of a cluster: taken from other times of the same history, else assumed, and told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from storm_operator.core.wording import first_of
from storm_pipeline.transforms.clean import gaps_of
from storm_pipeline.tuning.recording import RecordedMachine, RecordedTopology

USUAL_SLOTS = 4
"""Ports of a supervisor whose configuration names none."""
States = Mapping[tuple[str, str], bool]
"""Whether a component has state, by topology name and component, of those of which that was recorded."""


def machines(supervisors: DataFrame, executors: DataFrame) -> tuple[tuple[RecordedMachine, ...], tuple[str, ...]]:
    """The supervisors of the newest period, and those of them of which nobody recorded how many ports they have.

    One that came back under another id is one machine, and one that went is none. What is not known of an id is as with
    any other id of its host.
    """
    at = supervisors.withColumn("host", f.coalesce("host", "supervisor_id")).withColumn(
        "slots", f.expr("nullif(slots, 0)")
    )
    of_host = at.groupBy("host").agg(f.max("slots").alias("slots_of_host"))
    in_use = executors.groupBy("supervisor_id").agg(f.count_distinct("port").alias("in_use"))
    newest = supervisors.agg(f.max("period_end").alias("newest"))
    rows = (
        at.groupBy("supervisor_id")
        .agg(
            f.max("slots").alias("slots"),
            f.max_by("host", "period_end").alias("host"),
            f.max_by("cpu_capacity_millicores", "period_end").alias("capacity"),
            f.max("period_end").alias("last"),
        )
        .crossJoin(f.broadcast(newest))
        .where("last = newest")
        .join(of_host, "host", "left")
        .join(in_use, "supervisor_id", "left")
        .withColumn("known", f.coalesce("slots", "slots_of_host"))
        .orderBy("supervisor_id")
        .collect()
    )
    found = tuple(
        RecordedMachine(
            row["supervisor_id"], int(row["known"] or max(USUAL_SLOTS, row["in_use"] or 0)), row["capacity"]
        )
        for row in rows
    )
    return found, tuple(row["supervisor_id"] for row in rows if row["known"] is None)


def states(executors: DataFrame) -> States:
    """As last recorded, whatever the id of the topology was."""
    rows = (
        executors.where(f.col("stateful").isNotNull())
        .groupBy("topology_name", "component")
        .agg(f.max_by("stateful", "period_end").alias("stateful"))
        .collect()
    )
    return {(row["topology_name"], row["component"]): row["stateful"] for row in rows}


def gap_seconds(periods: DataFrame) -> float:
    """For how long nothing was recorded between the first and the last of silver `periods`."""
    micros = f.unix_micros("gap_end") - f.unix_micros("gap_start")
    found = gaps_of(periods).agg(f.sum(micros)).first()[0]  # type: ignore[index]
    return 0.0 if found is None else float(found) / 1e6


def loads_assumed(seconds: float, unrecorded_seconds: float) -> tuple[str, ...]:
    """What is assumed of loads in a replay of so many seconds, for a person: a sentence, or none."""
    if unrecorded_seconds <= 0.0:
        return ()
    return (
        f"of the {seconds:,.0f} s that are replayed {unrecorded_seconds:,.0f} s were not recorded: loads are taken to "
        "have gone straight from what they were before to what they were after",
    )


def assumptions(without_ports: Sequence[str], topologies: Sequence[RecordedTopology], known: States) -> tuple[str, ...]:
    """What else is assumed in a replay, for a person: a sentence each."""
    stateless = [
        f"{topology.name}/{component.name}"
        for topology in topologies
        for component in topology.components
        if (topology.name, component.name) not in known
    ]
    found = []
    if without_ports:
        found.append(
            f"how many worker ports supervisors have was not recorded of {first_of(without_ports, most=1)}: "
            f"{USUAL_SLOTS} are assumed, as Storm has by default, or as many as were in use"
        )
    if stateless:
        found.append(
            f"whether components have state was not recorded of {first_of(stateless, most=1)}: "
            "none is assumed to have any"
        )
    return tuple(found)
