"""The tables of the operator's recorded history: what the recorder writes and the data pipeline reads.

One description for both, without any library of theirs: `storm_operator.history` turns it into Arrow's types,
`storm_pipeline.schemas` into Spark's. A change raises `SCHEMA_VERSION` and only ever adds nullable columns, so that
newer readers read older files; a reader sets rows of a version that it does not know aside.

Rows of one period of one table are written together, and each says how many they are (`rows_in_period`): a reader can
tell a whole period from a broken or a doubled one without comparing rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SCHEMA_VERSION = 3
"""1 had neither `raw_demand_millicores` nor `worker_pid`, nor the table `edges`."""


class Kind(StrEnum):
    """What a column holds; times are UTC with microseconds."""

    TEXT = "text"
    TEXTS = "texts"  # a list
    WHOLE = "whole"  # 64 bits
    NUMBER = "number"  # double
    TRUTH = "truth"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Column:
    """`required` columns are never null; a number below `least` cannot be.

    `since` is the schema version that it came with.
    """

    name: str
    kind: Kind
    meaning: str
    required: bool = False
    least: float | None = None
    since: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    """`key` names one row among those of its cluster."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """The column called `name`; KeyError when there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"table {self.name} has no column {name!r}")


def _text(name: str, meaning: str, required: bool = False, since: int = 1) -> Column:
    return Column(name, Kind.TEXT, meaning, required, since=since)


def _whole(name: str, meaning: str, required: bool = False, since: int = 1) -> Column:
    return Column(name, Kind.WHOLE, meaning, required, least=0.0, since=since)


def _number(name: str, meaning: str, required: bool = False, least: float | None = 0.0, since: int = 1) -> Column:
    return Column(name, Kind.NUMBER, meaning, required, least, since)


_WHEN = (
    _whole("schema_version", "version of these tables that the row was written by", required=True),
    _text("run_id", "which life of which recorder wrote the row", required=True),
    Column("period_end", Kind.TIME, "when the period ended", required=True),
)
_HOW_MANY = _whole("rows_in_period", "how many rows of this table the recorder wrote for this period", required=True)
BOOKKEEPING = (*_WHEN, _number("period_seconds", "its length", required=True), _HOW_MANY)
"""The first columns of every table."""
_EVEN_UNSEEN = (*_WHEN, _number("period_seconds", "its length; null where the cluster could not be seen"), _HOW_MANY)

_EXECUTOR_ID = (
    _text("topology_id", "Storm's id of the topology", required=True),
    _whole("task_start", "first task of the executor, which names it within its topology", required=True),
)

PERIODS = Table(
    "periods",
    "One pass of the control loop, and how much of the cluster it could see",
    ("period_end",),
    (
        *BOOKKEEPING,
        _text("source", "what recorded it: operator, simulator or backfill", required=True),
        _whole("sequence", "number of the pass since the recorder started, dropped ones counted", required=True),
        _whole("dropped_before", "periods lost since the one recorded before: the recorder was too slow or failed"),
        _whole("expected_executors", "executors that have a place"),
        _whole("missing_executors", "those of them whose load is unknown"),
        _number("age_seconds", "age of the oldest reading; null where nothing was read of any executor"),
        Column("problems", Kind.TEXTS, "what was not known, for a person"),
        _number("pass_seconds", "how long the pass took, on the operator's own clock"),
        _number(
            "default_round_trip_ms",
            "round trip between supervisors where neither probes nor places tell it; null where nobody measured any",
        ),
        _number("loopback_round_trip_ms", "round trip between two workers of one supervisor"),
    ),
)

SUPERVISORS = Table(
    "supervisors",
    "One supervisor in one period; one that is being emptied, on which nothing may be placed, has no row",
    ("period_end", "supervisor_id"),
    (
        *BOOKKEEPING,
        _text("supervisor_id", "Storm's id of the supervisor", required=True),
        _text("host", "its host name or address"),
        _whole("slots", "ports for workers; null where it was filled in from metrics, which do not tell"),
        _number("cpu_capacity_millicores", "what its workers may use together"),
        _number("cpu_used_millicores", "what they used"),
        _number("availability", "share of recent time in which it answered, 0 to 1; likewise"),
        _number("memory_mb", "memory that it declares for workers"),
    ),
)

TOPOLOGIES = Table(
    "topologies",
    "One topology in one period",
    ("period_end", "topology_id"),
    (
        *BOOKKEEPING,
        _text("topology_id", "Storm's id of the topology", required=True),
        _text("topology_name", "its name, which outlives a resubmission", required=True),
        _whole("num_workers", "workers that its submitter asked for"),
        _number("acked_per_second", "tuple trees completed"),
        _number("failed_per_second", "tuple trees failed or timed out"),
        _number("latency_mean_ms", "complete latency"),
        _number("latency_p50_ms", "its median"),
        _number("latency_p99_ms", "its 99th percentile"),
        _number("latency_count", "tuple trees that were timed"),
    ),
)

EDGES = Table(
    "edges",
    "Who subscribes to whom in a topology, in one period",
    ("period_end", "topology_id", "source", "stream", "target"),
    (
        *BOOKKEEPING,
        _text("topology_id", "Storm's id of the topology", required=True),
        _text("source", "component that emits", required=True, since=2),
        _text("stream", "stream that it emits on", required=True, since=2),
        _text("target", "component that receives", required=True, since=2),
        _text("grouping", "Storm's name: shuffle, fields, all, ...", since=2),
    ),
)

EXECUTORS = Table(
    "executors",
    "One executor in one period: where it lived, what it did, what it was given",
    ("period_end", "topology_id", "task_start"),
    (
        *BOOKKEEPING,
        *_EXECUTOR_ID,
        _whole("task_end", "its last task", required=True),
        _text("topology_name", "name of the topology", required=True),
        _text("component", "spout, bolt or acker that it runs", required=True),
        _text("component_kind", "spout, bolt or acker", required=True),
        Column("stateful", Kind.TRUTH, "whether it has state that a restart must restore; null where it was filled in"),
        _text("supervisor_id", "where it lives; null while it has no place"),
        _whole("port", "of its worker, likewise"),
        _whole("worker_pid", "process of its worker: another number is another life", since=2),
        _number("cpu_millicores", "CPU used"),
        _number("executed_per_second", "tuples processed"),
        _number("emitted_per_second", "tuples emitted"),
        _number("arrived_per_second", "tuples that came in"),
        _number("queue_length", "tuples waiting at the end of the period"),
        _number("queue_growth_per_second", "change of that", least=None),
        _number("demand_millicores", "CPU that it is given for the next period"),
        _number("raw_demand_millicores", "the same before rounding", since=2),
        _number("declared_cpu_millicores", "what its submitter says that it needs"),
        _number("declared_memory_mb", "likewise"),
    ),
)

PAIRS = Table(
    "pairs",
    "Tuples from one executor to another in one period; pairs without any have no row",
    ("period_end", "topology_id", "source_task", "target_task"),
    (
        *BOOKKEEPING,
        _text("topology_id", "Storm's id of the topology of both", required=True),
        _whole("source_task", "first task of the executor that sends", required=True),
        _whole("target_task", "first task of the one that receives", required=True),
        _text("source_supervisor", "where the sender lives; null while it has no place"),
        _whole("source_port", "of its worker, likewise"),
        _text("target_supervisor", "where the receiver lives, likewise"),
        _whole("target_port", "of its worker, likewise"),
        _number("tuples_per_second", "from the one to the other", required=True),
    ),
)

FORECASTS = Table(
    "forecasts",
    "What a component was expected to have to process in the period that began at period_end",
    ("period_end", "topology_id", "component"),
    (
        *BOOKKEEPING,
        _text("topology_id", "Storm's id of the topology", required=True),
        _text("component", "name of the component", required=True),
        _number("arrivals_per_second", "expected arrivals", required=True),
        _number("queue_growth_per_second", "expected growth of its queues", least=None),
    ),
)

IN_ONE_TEXT = "sorted, with commas between; a name's own comma has a backslash before it"

DECISIONS = Table(
    "decisions",
    "What was decided for a group of topologies at the end of a period",
    ("period_end", "topology_ids"),
    (
        *_EVEN_UNSEEN,
        _text("topology_ids", f"the group, {IN_ONE_TEXT}", required=True),
        _text("decision", "Plan, or Hold", required=True),
        _text("reason", "of a Hold its one word, of a plan its sentence"),
        _text("message", "of a Hold its sentence"),
        _text("plan_id", "of a plan its id"),
        _text("policy", "of a plan the policy that proposed it"),
        _number("gain_percent", "fall of the objective that it was decided by", least=None),
    ),
)

_OUTCOME = (
    ("inter_supervisor_tuples_per_second", "tuples between supervisors"),
    ("acked_per_second", "tuple trees completed"),
    ("latency_mean_ms", "complete latency of the slowest topology"),
    ("latency_p50_ms", "its median"),
    ("latency_p99_ms", "its 99th percentile"),
)
_PREDICTION = (
    ("inter_supervisor_tuples_per_second", "tuples between supervisors"),
    ("inter_worker_tuples_per_second", "tuples between workers"),
    ("network_usage", "tuples per second times round trip, tuple-ms/s"),
    ("supervisors_used", "supervisors of the cluster in use, by whichever topology"),
    ("overloaded_millicores", "demand beyond supervisors' headroom and executors' threads"),
    ("latency_ms", "complete latency, where it could be told"),
)

PLANS = Table(
    "plans",
    "A state that a plan came into during a pass; the newest row of a plan says all that is known of it",
    ("period_end", "plan_id", "state"),
    (
        *_EVEN_UNSEEN,
        _text("plan_id", "the plan", required=True),
        _text("state", "Proposed, Applying, Settling, Verified, RolledBack, Failed, Expired, Rejected", required=True),
        _text("policy", "policy that proposed it", required=True),
        _text("method", "how it is put in force"),
        _text("topology_ids", f"topologies that it covers, {IN_ONE_TEXT}", required=True),
        _text("reason", "why it was made"),
        _text("message", "what became of it"),
        Column("created_at", Kind.TIME, "when it was decided", required=True),
        Column("in_force_at", Kind.TIME, "when the scheduler had put it in force"),
        _number(
            "seconds_to_in_force",
            "from the decision until then; of a plan that waited for approval, from its execution on",
        ),
        _number(
            "seconds_to_running",
            "from then until every moved executor ran again; unknown where nobody saw that, or it was interrupted",
        ),
        Column("running_at", Kind.TIME, "from when on what is measured is of executors that ran", since=3),
        _whole("moves", "executors that move"),
        _whole("restarted_workers", "workers started by it"),
        _number("failed_tuples", "failed while it was put in force"),
        _number("gain_percent", "predicted fall of the objective", least=None),
        _number("payback_seconds", "after which it was to have repaid its restarts"),
        _text("rollback_of", "the plan that it undoes; empty: none"),
        _text("approved_by", "auto, or who said yes"),
        *(_number(f"predicted_before_{name}", f"as modelled before it: {meaning}") for name, meaning in _PREDICTION),
        *(_number(f"predicted_after_{name}", f"as predicted after it: {meaning}") for name, meaning in _PREDICTION),
        *(_number(f"measured_before_{name}", f"measured before it: {meaning}") for name, meaning in _OUTCOME),
        *(_number(f"measured_after_{name}", f"measured after it: {meaning}") for name, meaning in _OUTCOME),
    ),
)

TABLES: tuple[Table, ...] = (
    PERIODS,
    SUPERVISORS,
    TOPOLOGIES,
    EDGES,
    EXECUTORS,
    PAIRS,
    FORECASTS,
    DECISIONS,
    PLANS,
)
