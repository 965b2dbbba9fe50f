"""Files that appear whole or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from storm_operator.history.files import Files


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
