"""History in an object store: the same files as in a folder, through a real S3 protocol (moto's server)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from s3_server import BUCKET, s3_server
from storm_operator.core.history_tables import FORECASTS
from storm_operator.history.files import Files
from storm_operator.history.store import HistoryStore, Limits

START_SECONDS = 1_767_225_600.0


@pytest.fixture
def bucket(request: pytest.FixtureRequest) -> Iterator[str]:
    """A prefix of its own for each test: the server's buckets outlive it."""
    with s3_server():
        yield f"s3://{BUCKET}/{request.node.name}"


def write(store: HistoryStore, periods: int) -> None:
    columns = {"topology_id": ["t"], "component": ["c"], "arrivals_per_second": [1.0]}
    for number in range(periods):
        store.write(START_SECONDS + 10.0 * (number + 1), 10.0, {FORECASTS: columns})


def published(root: str) -> list[tuple[str, int]]:
    return [(path, size) for path, size in Files.at(root).below(FORECASTS.name)]


def test_an_object_store_holds_what_a_folder_holds(bucket: str, tmp_path: Path) -> None:
    for root in (bucket, str(tmp_path)):
        store = HistoryStore.at(root, "blue:6627", "r1", Limits())
        write(store, 3)
        assert published(root) == []
        store.publish()
    assert published(bucket) == published(str(tmp_path)) != []


def test_hadoop_s_name_of_an_object_store_is_understood(bucket: str) -> None:
    of_hadoop = bucket.replace("s3://", "s3a://")
    Files.at(of_hadoop).write_whole("report.html", lambda sink: sink.write(b"learned"))
    assert Files.at(bucket).open("report.html").read() == b"learned"
    assert Files.at(of_hadoop).names("") == ["report.html"]


def test_what_a_dead_recorder_left_in_an_object_store_is_published(bucket: str) -> None:
    write(HistoryStore.at(bucket, "blue", "r1", Limits()), 2)
    assert HistoryStore.at(bucket, "blue", "r2", Limits()).recover() == 1
    assert len(published(bucket)) == 1
    assert HistoryStore.at(bucket, "blue", "r3", Limits()).recover() == 0
