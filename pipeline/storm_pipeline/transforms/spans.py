"""Traffic summed by minute, ten minutes to a row: what all traffic tables are sums of.

A period counts whole in the window that it ends in. Sums are of tuples, rate times length of the period, so that
windows add up; `measured_seconds` tells how much of a window was seen of a pair: above the executor level, in each
minute, of the pair seen longest.

A span is ten minutes of one pair. Its minutes are columns, `tuples_0` to `tuples_9` and `seconds_0` to `seconds_9`,
null where nothing was measured: a tenth of the rows that minutes would be to hash, shuffle and name, and a row of most
windows without another shuffle. The one pass over all rows (`by_span`) groups by numbers alone (names by their 64-bit
hash), since hashing and comparing texts would take most of its time. The names come back from silver `executors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from storm_pipeline.schemas import TRAFFIC_KEYS, WINDOWS

MINUTE = "1 minute"
SPAN = "10 minutes"
ENDS = ("source", "target")
IN_TIME = ("window", "window_start")
SUMS = ("tuples", "measured_seconds")
SPAN_START = "span_start"
"""In seconds of Unix time."""
MINUTES = range(WINDOWS[SPAN] // WINDOWS[MINUTE])
LIVED = ("topology_id", "task_start", "component", "supervisor_id", "port")
TUPLES = tuple(f"tuples_{minute}" for minute in MINUTES)
SECONDS = tuple(f"seconds_{minute}" for minute in MINUTES)


def by_span(pairs: DataFrame) -> DataFrame:
    """Silver `pairs` summed by minute and pair of executors, by where they lived; names are hashes."""
    seconds = f.col("period_seconds")
    rows = pairs.select(
        *_in_time(),
        topology_hash("topology_id").alias("topology"),
        "source_task",
        "target_task",
        *[worker_hash(f"{end}_supervisor", f"{end}_port").alias(f"{end}_worker") for end in ENDS],
        (f.col("tuples_per_second") * seconds).alias("tuples"),
        seconds.alias("seconds"),
    )
    keys = (SPAN_START, "topology", "source_task", "target_task", *[f"{end}_worker" for end in ENDS])
    return rows.groupBy(*keys).agg(*_each_minute("tuples", TUPLES), *_each_minute("seconds", SECONDS))


def _in_time() -> tuple[Column, Column]:
    """The span that a period ends in, and the number of the minute there."""
    moment = f.unix_seconds("period_end")
    minute = f.call_function("div", f.pmod(moment, f.lit(WINDOWS[SPAN])), f.lit(WINDOWS[MINUTE]))
    return _start_of(moment, SPAN).alias(SPAN_START), minute.alias("minute")


def _each_minute(value: str, names: Sequence[str]) -> list[Column]:
    return [f.sum(f.when(f.col("minute") == minute, f.col(value))).alias(names[minute]) for minute in MINUTES]


def topology_hash(topology_id: str) -> Column:
    """64 bits: of a million names, two are alike once in 37 million histories."""
    return f.xxhash64(topology_id)


def worker_hash(supervisor: str, port: str) -> Column:
    return f.xxhash64(supervisor, port)


def lives(executors: DataFrame) -> DataFrame:
    """Silver `executors` by span: who lived where, and in which minutes, a bit each in `minutes`."""
    rows = executors.select(*_in_time(), *LIVED)
    bit = f.call_function("shiftleft", f.lit(1), f.col("minute").cast("int"))
    return rows.groupBy(SPAN_START, *LIVED).agg(f.bit_or(bit).alias("minutes"))


def presence(lived: DataFrame, *keys: str) -> DataFrame:
    """Spans of `keys` from `lives`, without tuples or time: null in the minutes in which nobody was there."""
    found = lived.groupBy(SPAN_START, *keys).agg(f.bit_or("minutes").alias("minutes"))
    nothing = {name: f.when(f.col("minutes").bitwiseAND(1 << at) != 0, 0.0) for at, name in enumerate(SECONDS)}
    return found.withColumns(nothing | {name: f.lit(0.0) for name in TUPLES})


def residents(lived: DataFrame) -> DataFrame:
    """Which executors `lives` has, and where."""
    return lived.select(*LIVED).distinct()


def named(spans: DataFrame, known: DataFrame) -> DataFrame:
    """`by_span` with the names that `residents` of the same days has: the executor level.

    An executor that it has not is of an unknown component (null), never left out.
    """
    topology = topology_hash("topology_id").alias("topology")
    topologies = known.select(topology, "topology_id").distinct()
    tasks = known.select(topology, "task_start", "component").distinct()
    workers = known.select(worker_hash("supervisor_id", "port").alias("worker"), "supervisor_id", "port").distinct()
    found = spans.join(f.broadcast(topologies), "topology", "left")
    for end in ENDS:
        of_end = tasks.select("topology", f.col("task_start").alias(f"{end}_task"), f.col("component").alias(end))
        place = workers.select(
            f.col("worker").alias(f"{end}_worker"),
            f.col("supervisor_id").alias(f"{end}_supervisor"),
            f.col("port").alias(f"{end}_port"),
        )
        found = found.join(f.broadcast(of_end), ["topology", f"{end}_task"], "left")
        found = found.join(f.broadcast(place), f"{end}_worker", "left")
    return found.select(SPAN_START, *TRAFFIC_KEYS["executor"], *TUPLES, *SECONDS)


def at_level(spans: DataFrame, *keys: str) -> DataFrame:
    """Spans of executors, or of another level that has these keys, summed to the level that `keys` name.

    `measured_seconds` is that of the pair seen longest: sums over pairs are no time.
    """
    return spans.groupBy(SPAN_START, *keys).agg(
        *[f.sum(name).alias(name) for name in TUPLES], *[f.max(name).alias(name) for name in SECONDS]
    )


def in_each_window(spans: DataFrame, keys: Sequence[str], windows: Sequence[str]) -> DataFrame:
    """The spans of a level, one for each value of `keys`, in each of `windows` (names of `WINDOWS`).

    Minutes seen add up, whoever moved. Only windows longer than a span need a shuffle.
    """
    whole = _whole(spans, keys)
    at_hand = {MINUTE: _minutes(spans, keys), SPAN: whole}
    frames = [frame for window, frame in at_hand.items() if window in windows]
    if longer := [window for window in windows if window not in at_hand]:
        frames.append(_put_into(whole, keys, longer))
    return reduce(DataFrame.unionByName, frames)


def unfolded(spans: DataFrame, keys: Sequence[str], **columns: Sequence[str]) -> DataFrame:
    """A row for each minute of each span; `columns` has by name those of its ten minutes, null where nothing was."""
    start = f.col(SPAN_START)
    each = [
        f.struct(
            f.timestamp_seconds(start + minute * WINDOWS[MINUTE]).alias("window_start"),
            *[f.col(of_minutes[minute]).alias(name) for name, of_minutes in columns.items()],
        )
        for minute in MINUTES
    ]
    rows = spans.select(*keys, f.inline(f.array(*each)))
    return rows.select(f.lit(MINUTE).alias("window"), "window_start", *keys, *columns)


def _minutes(spans: DataFrame, keys: Sequence[str]) -> DataFrame:
    rows = unfolded(spans, keys, tuples=TUPLES, measured_seconds=SECONDS)
    return rows.where(f.col("measured_seconds").isNotNull())


def _whole(spans: DataFrame, keys: Sequence[str]) -> DataFrame:
    start = f.timestamp_seconds(SPAN_START).alias("window_start")
    sums = (_sum_of(columns).alias(name) for columns, name in zip((TUPLES, SECONDS), SUMS, strict=True))
    return spans.select(f.lit(SPAN).alias("window"), start, *keys, *sums)


def _sum_of(columns: Sequence[str]) -> Column:
    return reduce(lambda one, other: one + other, (f.coalesce(column, f.lit(0.0)) for column in columns))


def _put_into(shorter: DataFrame, keys: Sequence[str], windows: Sequence[str]) -> DataFrame:
    moment = f.unix_seconds("window_start")
    each = [
        f.struct(f.lit(window).alias("window"), f.timestamp_seconds(_start_of(moment, window)).alias("window_start"))
        for window in windows
    ]
    rows = shorter.select(f.inline(f.array(*each)), *keys, *SUMS)
    return rows.groupBy(*IN_TIME, *keys).agg(*[f.sum(name).alias(name) for name in SUMS])


def _start_of(unix_seconds: Column, window: str) -> Column:
    """The start of the window that a moment lies in, both in seconds of Unix time."""
    return unix_seconds - f.pmod(unix_seconds, f.lit(WINDOWS[window]))
