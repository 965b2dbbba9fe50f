"""Documents come back as they were, plain or packed."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable

import pytest

from storm_operator.core.packed_json import GZIP_MAGIC, LONGEST_PLAIN_BYTES, decode, encode

LONG = "x" * LONGEST_PLAIN_BYTES


@pytest.mark.parametrize("more", ["", LONG], ids=["plain", "packed"])
def test_any_document_comes_back_as_it_was(more: str) -> None:
    document = {
        "more": more,
        "objects": [{"a": 1}, {"a": 1}, {"a": True}, {"a": 1.0}, {}, {"b": None, "c": "ü"}],
        "inner": {"list": [[], [{"deep": {"deeper": {"a": 1}}}]], "number": 0.1},
    }
    content = encode(document)
    assert content.startswith(GZIP_MAGIC) == bool(more)
    assert repr(decode(content)) == repr(document), "1, 1.0 and True are not the same, nor is the order of keys"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_lists_in_lists_without_end_are_no_document(pack: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ValueError, match="RecursionError"):
        decode(pack(b"[" * 1_000_000))


@pytest.mark.slow
def test_document_of_a_stranger_is_not_unpacked_beyond_what_was_asked_for() -> None:
    megabyte = 1_000_000
    bomb = gzip.compress(b"[" + b" " * 100 * megabyte)
    tracemalloc.start()
    with pytest.raises(ValueError, match=f"more than {megabyte} bytes"):
        decode(bomb, megabyte)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3 * megabyte


def test_document_of_a_stranger_that_calls_one_object_again_and_again_is_not_unpacked() -> None:
    packed = {"document": [{"#": 0}] * 1_000, "objects": [dict.fromkeys(map(str, range(1_000)), 0)]}
    content = gzip.compress(json.dumps(packed).encode())
    with pytest.raises(ValueError, match="more than 12500 values"):
        decode(content, 100_000)
    assert len(decode(content)) == 1_000


@pytest.mark.parametrize("kept", [20, -1])
def test_packed_document_that_is_cut_short_is_none(kept: int) -> None:
    with pytest.raises(ValueError, match="cut short"):
        decode(encode([LONG, {}])[:kept])


def test_what_comes_back_shares_nothing() -> None:
    first, second, _ = decode(encode([{"a": 1}, {"a": 1}, LONG]))
    first["a"] = 2
    assert second == {"a": 1}
