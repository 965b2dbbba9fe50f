"""Documents come back as they were, plain or packed."""

from __future__ import annotations

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


def test_what_comes_back_shares_nothing() -> None:
    first, second, _ = decode(encode([{"a": 1}, {"a": 1}, LONG]))
    first["a"] = 2
    assert second == {"a": 1}
