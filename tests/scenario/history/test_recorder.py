"""The recorder: what the loop saw is kept, at most one period is lost, and the loop never waits."""

from __future__ import annotations

import errno
import itertools
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from history_scene import record, small_scenario, specs_of
from kube_builders import NOW_SECONDS, plan, plan_record
from storm_operator.core.decision import Hold, HoldReason
from storm_operator.core.direct_plan import reverse_plan
from storm_operator.core.distances import Distances
from storm_operator.core.history_rows import Columns
from storm_operator.core.history_tables import FORECASTS, PERIODS, PLANS, SCHEMA_VERSION, TABLES, Table
from storm_operator.core.plan_record import PlanState
from storm_operator.core.snapshot import ClusterSnapshot, Completeness
from storm_operator.history import recorder as recorder_module
from storm_operator.history.files import Files
from storm_operator.history.recorder import DirectRecorder, Recorder
from storm_operator.history.settings import NoHistory, insist_on_plain
from storm_operator.history.store import HistoryStore, Limits
from storm_operator.loop_ports import PassReport, report_of_unseen
from storm_operator.simulated_loop import SimulatedStage

DAY_ONE_SECONDS = 1_767_225_600.0
"""The first of January 2026 begins."""
DAY_SECONDS = 86_400.0


def rows(root: Path, table: str) -> list[dict[str, Any]]:
    if not (root / table).exists():
        return []
    import pyarrow.dataset as ds

    found: list[dict[str, Any]] = ds.dataset(root / table, partitioning="hive").to_table().to_pylist()
    return found


class Keeper:
    """A listener that keeps reports."""

    def __init__(self) -> None:
        self.reports: list[PassReport] = []

    def on_pass(self, report: PassReport) -> None:
        self.reports.append(report)

    def on_record(self, record: object) -> None:
        """Not of interest."""


@pytest.fixture(scope="module")
def reports() -> list[PassReport]:
    keeper = Keeper()
    scenario = small_scenario()
    stage = SimulatedStage(scenario, keeper)
    for _ in range(12):
        stage.run_period(specs_of(scenario))
    return keeper.reports


def snapshot_of(report: PassReport) -> ClusterSnapshot:
    assert report.snapshot is not None
    return report.snapshot


def test_what_is_recorded_is_what_the_loop_saw(reports: list[PassReport], tmp_path: Path) -> None:
    recorder = Recorder(HistoryStore.at(str(tmp_path), "blue:6627", "r1"), print, queued=100)
    for report in reports:
        recorder.on_pass(report)
    recorder.close()
    pairs, executors = rows(tmp_path, "pairs"), rows(tmp_path, "executors")
    assert {row["cluster"] for row in pairs} == {"blue:6627"}
    total = sum(snapshot_of(report).traffic.total() for report in reports)
    assert sum(row["tuples_per_second"] for row in pairs) == pytest.approx(total)
    assert len(executors) == sum(len(topology.executors) for r in reports for topology in snapshot_of(r).topologies)
    last = max(row["period_end"] for row in executors)
    given = {row["task_start"]: row["demand_millicores"] for row in executors if row["period_end"] == last}
    assert reports[-1].demand is not None
    assert given == {e.task_start: value for e, value in reports[-1].demand.millicores.items()}
    assert all(row["rows_in_period"] == len(executors) // len(reports) for row in executors)
    assert recorder.lost == 0


def test_files_say_their_version_and_columns(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    record(tmp_path, periods=4)
    for table in TABLES:
        for path in (tmp_path / table.name).rglob("*.parquet"):
            schema = pq.read_schema(path)
            assert schema.names == list(table.names)
            assert schema.metadata[b"storm.history.version"] == str(SCHEMA_VERSION).encode()


def test_a_pass_that_saw_nothing_is_recorded_as_such(tmp_path: Path) -> None:
    recorder = Recorder(HistoryStore.at(str(tmp_path), "blue", "r1"), print)
    hold = Hold(HoldReason.CLUSTER_UNREACHABLE, "Nimbus is away")
    recorder.on_pass(PassReport(1_800_000_000.0, None, None, (((), hold),)))
    recorder.close()
    assert [(row["reason"], row["period_seconds"]) for row in rows(tmp_path, "decisions")] == [
        ("ClusterUnreachable", None)
    ]
    assert not rows(tmp_path, "periods")


def test_the_age_of_figures_that_nobody_read_is_unknown(reports: list[PassReport], tmp_path: Path) -> None:
    seen = snapshot_of(reports[-1])
    executors = seen.topologies[0].executors
    none_read = replace(seen, completeness=Completeness(len(executors), executors, problems=("no agent answers",)))
    recorder = Recorder(HistoryStore.at(str(tmp_path), "blue", "r1"), print)
    recorder.on_pass(replace(reports[-1], snapshot=none_read))
    recorder.close()
    (period,) = rows(tmp_path, "periods")
    assert (period["missing_executors"], period["age_seconds"]) == (len(executors), None)


@pytest.mark.parametrize(("are_assumed", "told"), [(False, 1.0), (True, None)])
def test_a_round_trip_that_nobody_measured_is_unknown(
    are_assumed: bool, told: float | None, reports: list[PassReport], tmp_path: Path
) -> None:
    seen = replace(snapshot_of(reports[-1]), distances=Distances({}, are_assumed=are_assumed))
    recorder = Recorder(HistoryStore.at(str(tmp_path), "blue", "r1"), print)
    recorder.on_pass(replace(reports[-1], snapshot=seen))
    recorder.close()
    (period,) = rows(tmp_path, "periods")
    assert period["default_round_trip_ms"] == told


class SlowStore(HistoryStore):
    """A disk that hangs until it is told to go on."""

    gate: threading.Event

    def write(self, end: float, seconds: float | None, tables: Mapping[Table, Columns]) -> None:
        self.gate.wait()
        super().write(end, seconds, tables)


def test_a_slow_disk_costs_periods_and_never_time(reports: list[PassReport], tmp_path: Path) -> None:
    said: list[str] = []
    store = SlowStore.at(str(tmp_path), "blue", "r1")
    assert isinstance(store, SlowStore)
    store.gate = threading.Event()
    recorder = Recorder(store, said.append, queued=2)
    for report in reports[:-1]:
        recorder.on_pass(report)  # returns at once, or this test would hang
    store.gate.set()
    while recorder.written + recorder.lost < len(reports) - 1:
        threading.Event().wait(0.01)
    recorder.on_pass(reports[-1])
    recorder.close()
    kept = sorted(rows(tmp_path, "periods"), key=lambda row: row["sequence"])
    assert recorder.lost >= len(reports) - 1 - 4
    assert len(kept) + recorder.lost == len(reports)
    assert kept[-1]["dropped_before"] == recorder.lost
    assert kept[-1]["sequence"] == len(reports) - 1
    assert len([words for words in said if "dropped" in words]) == 1


def test_what_a_disk_that_hangs_keeps_in_memory_is_bounded(
    reports: list[PassReport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "MOST_RECORDS_KEPT", 3)
    store = SlowStore.at(str(tmp_path), "blue", "r1")
    assert isinstance(store, SlowStore)
    store.gate = threading.Event()
    recorder = Recorder(store, lambda _: None, queued=1)
    for number in range(20):
        recorder.on_record(replace(plan_record(PlanState.SETTLING), message=f"{number}"))
        recorder.on_pass(reports[0])
    assert [record.message for record in recorder._collector._records] == ["17", "18", "19"]
    store.gate.set()
    recorder.close()


@pytest.mark.parametrize("queued", [1, 100])
def test_what_a_disk_that_hangs_to_the_end_may_cost_is_said(
    reports: list[PassReport], tmp_path: Path, queued: int
) -> None:
    store = SlowStore.at(str(tmp_path), "blue", "r1")
    assert isinstance(store, SlowStore)
    store.gate = threading.Event()
    said: list[str] = []
    recorder = Recorder(store, said.append, queued=queued)
    for report in reports[:4]:
        recorder.on_pass(report)
    recorder.on_record(plan_record(PlanState.SETTLING))
    recorder.close(patience_seconds=0.2)
    store.gate.set()
    assert said[-1] == "history: not all of it could be written before the end"


def test_a_full_disk_is_said_once_and_the_loop_goes_on(reports: list[PassReport], tmp_path: Path) -> None:
    (tmp_path / "_open").write_text("in the way")
    said = said_of_lost(reports[:5], tmp_path)
    assert len([words for words in said if "not written" in words]) == 1


def said_of_lost(reports: list[PassReport], folder: Path) -> list[str]:
    """What a recorder says that can write none of these."""
    said: list[str] = []
    recorder = Recorder(HistoryStore.at(str(folder), "blue", "r1"), said.append, queued=100)
    for report in reports:
        recorder.on_pass(report)
    recorder.close()
    assert recorder.lost == len(reports)
    return said


@pytest.mark.parametrize(
    "obstacle",
    [
        lambda path, _: OSError(errno.EROFS, "Read-only file system", f"/history/{path}"),
        lambda path, milliseconds: OSError(
            f"When initiating multiple part upload for key 'recorded/{path}' in bucket 'history': AWS Error "
            f"NETWORK_CONNECTION: Failed to connect to 10.0.0.1:443 after {milliseconds} ms: Could not connect"
        ),
    ],
    ids=["read-only", "object store"],
)
def test_an_obstacle_is_said_once_though_each_period_has_a_file_of_its_own(
    obstacle: Callable[[str, int], OSError],
    reports: list[PassReport],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    milliseconds = itertools.count()

    def refuse(_: Files, path: str, __: Callable[[Any], None]) -> int:
        raise obstacle(path, next(milliseconds))

    monkeypatch.setattr(Files, "write_whole", refuse)
    assert len(said_of_lost(reports[:5], tmp_path)) == 1


class FailingStore(HistoryStore):
    """A disk that is full for a moment: the first write of each of these periods fails."""

    failing: set[float]

    def write(self, end: float, seconds: float | None, tables: Mapping[Table, Columns]) -> None:
        if end in self.failing:
            self.failing.remove(end)
            raise OSError("no space left on device")
        super().write(end, seconds, tables)


def recorded_with_failures(
    root: Path, reports: list[PassReport], states: Mapping[int, PlanState], *failing: int
) -> Recorder:
    """Record `reports`, before some of them (by number) a plan's state; these numbers' writes fail."""
    store = FailingStore.at(str(root), "blue", "r1")
    assert isinstance(store, FailingStore)
    store.failing = {reports[number].at_seconds for number in failing}
    recorder = Recorder(store, lambda _: None, queued=100)
    for number, report in enumerate(reports):
        if number in states:
            recorder.on_record(plan_record(states[number]))
        recorder.on_pass(report)
    recorder.close()
    return recorder


def test_nothing_is_said_to_be_written_again_where_nothing_was(reports: list[PassReport], tmp_path: Path) -> None:
    store = FailingStore.at(str(tmp_path), "blue", "r1")
    assert isinstance(store, FailingStore)
    store.failing = {report.at_seconds for report in reports[:2]}
    said: list[str] = []
    recorder = Recorder(store, said.append, queued=100)
    for report in reports[:2]:
        recorder.on_pass(report)
    recorder.close()
    assert [words.split(":")[1] for words in said] == [f" not written to {store.files.place}"]


class UnpublishableStore(HistoryStore):
    """Small files can be written, and what is made of them has no room until `has_room`."""

    has_room = False

    def _publish_run(self, run_id: str) -> list[str]:
        if not self.has_room:
            raise OSError("no space left on device")
        return super()._publish_run(run_id)


def test_what_is_kept_and_only_not_published_yet_is_not_lost(reports: list[PassReport], tmp_path: Path) -> None:
    store = UnpublishableStore.at(str(tmp_path), "blue", "r1", Limits(publish_after_seconds=20.0))
    assert isinstance(store, UnpublishableStore)
    said: list[str] = []
    recorder = Recorder(store, said.append, queued=100)
    recorder.on_record(plan_record(PlanState.SETTLING))
    for report in reports[:-1]:
        recorder.on_pass(report)
    while recorder.written + recorder.lost < len(reports) - 1:
        threading.Event().wait(0.01)
    store.has_room = True
    recorder.on_pass(reports[-1])
    recorder.close()
    assert (recorder.written, recorder.lost) == (len(reports), 0)
    assert [row["dropped_before"] for row in rows(tmp_path, "periods")] == [0] * len(reports)
    assert len(rows(tmp_path, "plans")) == 1
    why = f"history: kept below _open in {store.files.place}, not published yet: OSError: no space left on device"
    assert said == [why, "history: written again"]


def test_what_a_failed_write_would_have_told_the_next_one_tells(reports: list[PassReport], tmp_path: Path) -> None:
    states = {2: PlanState.SETTLING, 5: PlanState.VERIFIED}
    recorder = recorded_with_failures(tmp_path, reports, states, 5, 6)
    kept = {row["sequence"]: row for row in rows(tmp_path, "periods")}
    assert {sequence: row["dropped_before"] for sequence, row in kept.items()} == {
        **dict.fromkeys((0, 1, 2, 3, 4, 8, 9, 10, 11), 0),
        7: 2,
    }
    told = {(row["state"], row["period_end"]) for row in rows(tmp_path, "plans")}
    assert told == {("Settling", kept[2]["period_end"]), ("Verified", kept[7]["period_end"])}
    assert (recorder.written, recorder.lost) == (10, 2)


def test_how_many_periods_were_lost_is_told_by_the_next_that_saw_the_cluster(
    reports: list[PassReport], tmp_path: Path
) -> None:
    """Of one that did not see it nothing is kept that could tell."""
    seen = [replace(report, at_seconds=DAY_ONE_SECONDS + 10.0 * n) for n, report in enumerate(reports[:9])]
    unseen = {n: report_of_unseen(seen[n].at_seconds, "nobody answers") for n in (3, 4, 6)}
    recorded_with_failures(tmp_path, [unseen.get(n, report) for n, report in enumerate(seen)], {}, 1, 2, 4)
    kept = {row["sequence"]: row["dropped_before"] for row in rows(tmp_path, "periods")}
    assert kept == {0: 0, 5: 3, 7: 0, 8: 0}


def test_what_became_of_a_plan_is_told_at_the_end_where_the_last_period_could_not_be_written(
    reports: list[PassReport], tmp_path: Path
) -> None:
    recorder = recorded_with_failures(tmp_path, reports[:4], {3: PlanState.VERIFIED}, 3)
    assert [row["sequence"] for row in rows(tmp_path, "periods")] == [0, 1, 2]
    assert [row["state"] for row in rows(tmp_path, "plans")] == ["Verified"]
    assert recorder.lost == 1


def test_what_became_of_a_plan_before_the_first_pass_ended_is_not_told_of_1970(tmp_path: Path) -> None:
    record = plan_record(PlanState.VERIFIED)
    recorder = Recorder(HistoryStore.at(str(tmp_path), "blue", "r1"), lambda _: None)
    recorder.on_record(record)
    recorder.close()
    (row,) = rows(tmp_path, "plans")
    assert row["period_end"] >= row["created_at"]


@pytest.mark.parametrize("at_seconds", [1_800_000_000.0, 1_800_000_000.7563555, 1_800_000_000.1588595])
def test_what_is_heard_of_a_plan_after_the_last_pass_is_no_second_row_of_the_same_key(
    at_seconds: float, reports: list[PassReport], tmp_path: Path
) -> None:
    """As that it was approved: it is still proposed, and ingest would keep either row."""
    recorder = Recorder(HistoryStore.at(str(tmp_path), "blue", "r1"), lambda _: None)
    recorder.on_record(plan_record(PlanState.PROPOSED))
    recorder.on_pass(replace(reports[0], at_seconds=at_seconds))
    recorder.on_record(replace(plan_record(PlanState.PROPOSED), approved_by="alice"))
    recorder.close()
    told = sorted(rows(tmp_path, "plans"), key=lambda row: row["period_end"])
    assert [row["approved_by"] for row in told] == ["", "alice"]
    assert len({tuple(row[name] for name in PLANS.key) for row in told}) == 2


def test_nobody_predicts_what_a_rollback_does(tmp_path: Path) -> None:
    recorder = Recorder(HistoryStore.at(str(tmp_path), "blue", "r1"), lambda _: None)
    recorder.on_record(plan_record(PlanState.VERIFIED, of=reverse_plan(plan(), "p-2", NOW_SECONDS), rollback_of="p-1"))
    recorder.close()
    (row,) = rows(tmp_path, "plans")
    assert {value for name, value in row.items() if name.startswith("predicted_")} == {None}


def dies_after(monkeypatch: pytest.MonkeyPatch, store: HistoryStore, writes: int) -> None:
    """The process ends at the `writes`-th file operation from now on."""
    left = [writes]

    def guarded(act: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return act(*arguments)

        return wrapper

    files = type(store.files)
    monkeypatch.setattr(files, "write_whole", guarded(files.write_whole))
    monkeypatch.setattr(files, "delete", guarded(files.delete))


@pytest.mark.parametrize("operations", range(0, 60, 3))
def test_a_death_anywhere_loses_at_most_the_period_being_written(
    operations: int, reports: list[PassReport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = HistoryStore.at(str(tmp_path), "blue", "r1", Limits(publish_after_seconds=30.0))
    recorder = DirectRecorder(store)
    done = 0
    with monkeypatch.context() as patch:
        dies_after(patch, store, operations)
        try:
            for report in reports:
                recorder.on_pass(report)
                done += 1
        except KeyboardInterrupt:
            pass
    HistoryStore.at(str(tmp_path), "blue", "r2").recover()
    kept = {(row["period_end"], row["source_task"], row["target_task"]) for row in rows(tmp_path, "pairs")}
    wanted = sum(len(list(snapshot_of(report).traffic.pairs())) for report in reports[:done])
    assert len(kept) >= wanted
    assert not list((tmp_path / "_open").rglob("*.parquet"))


def test_the_oldest_days_make_room(tmp_path: Path) -> None:
    sizes = {}
    for day in (1, 2, 3):
        store = HistoryStore.at(str(tmp_path), "blue", f"r{day}", Limits(keep_days=None, keep_bytes=None))
        _write_day(store, day)
        sizes[day] = sum(path.stat().st_size for path in tmp_path.rglob("*.parquet"))
    assert HistoryStore.at(str(tmp_path), "blue", "x", Limits(keep_days=1.0)).pruning.prune("2026-01-03") == 1
    assert sorted(path.parent.name for path in tmp_path.rglob("*.parquet")) == ["date=2026-01-02", "date=2026-01-03"]
    limit = Limits(keep_days=None, keep_bytes=sizes[1])
    assert HistoryStore.at(str(tmp_path), "blue", "x", limit).pruning.prune("2026-01-03") == 1
    assert [path.parent.name for path in tmp_path.rglob("*.parquet")] == ["date=2026-01-03"]


@pytest.mark.parametrize("days", [1e6, math.inf])
def test_what_is_kept_longer_than_there_are_dates_is_kept_for_ever(days: float, tmp_path: Path) -> None:
    store = HistoryStore.at(str(tmp_path), "blue", "r1", Limits(keep_days=days, publish_after_seconds=1.0))
    for day in (1, 2, 3):
        _write_day(store, day)
    assert len(rows(tmp_path, FORECASTS.name)) == 3


def _write_day(store: HistoryStore, day: int) -> None:
    _write_at(store, DAY_ONE_SECONDS + DAY_SECONDS * (day - 1) + 60.0)
    store.publish()


def _write_at(store: HistoryStore, ended_at: float) -> None:
    columns = {"topology_id": ["t"], "component": ["c"], "arrivals_per_second": [1.0]}
    store.write(ended_at, 10.0, {FORECASTS: columns})


def test_a_clock_that_jumped_ahead_makes_no_day_old(tmp_path: Path) -> None:
    now, years = DAY_ONE_SECONDS, 1000.0 * DAY_SECONDS
    store = HistoryStore.at(str(tmp_path), "blue", "r1", clock=lambda: now)
    columns = {"topology_id": ["t"], "component": ["c"], "arrivals_per_second": [1.0]}
    for ended_at in (now - DAY_SECONDS, now + years, now):
        store.write(ended_at, 10.0, {FORECASTS: columns})
    store.publish()
    assert len(rows(tmp_path, FORECASTS.name)) == 3


@pytest.mark.parametrize("wrong_at", [2.5 * DAY_SECONDS, 3.0 * DAY_SECONDS - 700.0], ids=["noon", "midnight"])
def test_a_clock_that_is_wrong_for_a_while_makes_no_day_old(wrong_at: float, tmp_path: Path) -> None:
    now, ahead = DAY_ONE_SECONDS + wrong_at, 0.0
    store = HistoryStore.at(str(tmp_path), "blue", "r1", Limits(keep_days=2.0), clock=lambda: now + ahead)
    for day in (1, 2, 3):
        _write_day(store, day)
    for ahead in (500.0 * DAY_SECONDS, 0.0):
        for _ in range(140):
            now += 10.0
            _write_at(store, now + ahead)
    store.publish()
    assert {"date=2026-01-02", "date=2026-01-03"} <= {path.parent.name for path in tmp_path.rglob("*.parquet")}


def test_after_a_long_time_away_days_are_old_as_soon_as_the_date_is_sure(tmp_path: Path) -> None:
    now = DAY_ONE_SECONDS + 500.0 * DAY_SECONDS
    store = HistoryStore.at(str(tmp_path), "blue", "r1", Limits(keep_days=100.0), clock=lambda: now)
    found = []
    for day in (1, 2, 401, 402, 403):
        _write_day(store, day)
        found.append(len(rows(tmp_path, FORECASTS.name)))
    assert found == [1, 2, 3, 4, 3]


def test_what_is_old_is_so_by_the_time_that_the_store_is_told(tmp_path: Path) -> None:
    now_seconds = DAY_ONE_SECONDS
    store = HistoryStore.at(str(tmp_path), "blue", "r1", Limits(keep_days=1.0), clock=lambda: now_seconds)
    for day in (1, 2, 3):
        _write_day(store, day)
    assert len(rows(tmp_path, FORECASTS.name)) == 3
    now_seconds += 2 * DAY_SECONDS
    _write_day(store, 3)
    assert {path.parent.name for path in tmp_path.rglob("*.parquet")} == {"date=2026-01-02", "date=2026-01-03"}


@pytest.mark.parametrize(
    "table", [one for one in TABLES if one not in (PERIODS, PLANS)], ids=lambda table: str(table.name)
)
def test_a_period_of_which_something_is_missing_is_not_among_the_periods(
    table: Table, reports: list[PassReport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_whole = Files.write_whole

    def without(files: Files, path: str, write: Callable[[Any], None]) -> int:
        if f"/{table.name}/" in path:
            raise OSError("no space left on device")
        return write_whole(files, path, write)

    store = HistoryStore.at(str(tmp_path), "blue", "r1")
    monkeypatch.setattr(Files, "write_whole", without)
    with pytest.raises(OSError, match="no space"):
        DirectRecorder(store).on_pass(reports[-1])
    monkeypatch.undo()
    HistoryStore.at(str(tmp_path), "blue", "r2").recover()
    assert rows(tmp_path, PERIODS.name) == []


def test_a_clock_that_was_set_back_while_a_plan_came_into_force_makes_its_times_unknown(tmp_path: Path) -> None:
    recorder = Recorder(HistoryStore.at(str(tmp_path), "blue", "r1"), lambda _: None)
    recorder.on_record(replace(plan_record(PlanState.VERIFIED), seconds_to_in_force=-3.0, seconds_to_running=-0.5))
    recorder.close()
    (row,) = rows(tmp_path, "plans")
    assert (row["seconds_to_in_force"], row["seconds_to_running"]) == (None, None)


@pytest.mark.parametrize("name", [".", "..", "Köln"])
def test_no_cluster_has_a_name_that_would_lead_out_of_its_folder_or_be_read_as_another(name: str) -> None:
    with pytest.raises(NoHistory, match="the name of a cluster in the history is "):
        insist_on_plain(name)
