"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from storm_operator.history.files import TEMPORARY, Files


def test_an_object_that_could_not_be_written_whole_is_not_there() -> None:
    files = Files.at("memory://half/written")

    def fails_midway(sink: Any) -> None:
        sink.write(b"the first half")
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        files.write_whole("a/b.parquet", fails_midway)
    assert not files.exists("a/b.parquet")
    assert files.write_whole("a/b.parquet", lambda sink: sink.write(b"all of it")) == len(b"all of it")
    with files.open("a/b.parquet") as source:
        assert source.read() == b"all of it"


def test_two_writers_of_one_file_do_not_see_each_others_halves(tmp_path: Path) -> None:
    """As two recorders that publish what a third has left."""
    files = Files.at(str(tmp_path))
    seen: list[bytes] = []

    def is_overtaken(sink: Any) -> None:
        sink.write(b"the first half, ")
        sink.flush()
        files.write_whole("a/b.parquet", lambda other: other.write(b"all of another"))
        seen.append((tmp_path / "a" / "b.parquet").read_bytes())
        sink.write(b"the second half")

    files.write_whole("a/b.parquet", is_overtaken)
    assert seen == [b"all of another"]
    assert (tmp_path / "a" / "b.parquet").read_bytes() == b"the first half, the second half"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.parquet"]


def test_a_file_that_could_not_be_written_leaves_nothing(tmp_path: Path) -> None:
    def is_full(sink: Any) -> None:
        sink.write(b"half")
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        Files.at(str(tmp_path)).write_whole("a/b.parquet", is_full)
    assert list((tmp_path / "a").iterdir()) == []


def test_what_a_writer_left_that_died_goes_when_nobody_can_be_at_it(tmp_path: Path) -> None:
    for name, written_at in ((f".old{TEMPORARY}", 10), (f".new{TEMPORARY}", 30), ("whole.parquet", 10)):
        (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (written_at, written_at))
    Files.at(str(tmp_path)).delete_abandoned(20.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f".new{TEMPORARY}", "whole.parquet"]


def test_a_folder_is_the_one_that_its_name_says_also_with_colons(tmp_path: Path) -> None:
    """As that of a cluster whose Nimbus has an IPv6 address: two colons join URLs for fsspec."""
    Files.at(f"{tmp_path}/%5B2001:db8::1%5D:6627").write_whole("report.html", lambda sink: sink.write(b"learned"))
    assert (tmp_path / "%5B2001:db8::1%5D:6627" / "report.html").read_bytes() == b"learned"


@pytest.mark.parametrize("folder", ["a%2Fb", "%2E%2E", "100%"])
def test_an_object_store_s_prefix_is_the_one_that_its_name_says(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(variable, raising=False)
    # With its region Amazon is not asked for it.
    assert Files.at(f"s3://bucket/report/{folder}?region=us-east-1").root == f"bucket/report/{folder}"
