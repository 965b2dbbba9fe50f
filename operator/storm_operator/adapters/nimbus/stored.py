"""What Storm's daemons write to ZooKeeper: Thrift in binary protocol, gzipped (`storm.meta.serialization.delegate`)."""

from __future__ import annotations

import gzip
from typing import Any

from thriftpy2.utils import deserialize

from storm_operator.adapters.errors import MalformedDocument

GZIP_MAGIC = b"\x1f\x8b"


def read_stored(struct: Any, content: bytes, path: str) -> Any:
    """`struct`, an empty value, filled with what is at `path` below Storm's root; MalformedDocument otherwise."""
    try:
        plain = gzip.decompress(content) if content.startswith(GZIP_MAGIC) else content
        return deserialize(struct, plain)
    except Exception as error:  # fed with foreign bytes, gzip and thriftpy2 raise almost anything
        raise malformed(struct, path, str(error)) from error


def malformed(struct: Any, path: str, reason: str) -> MalformedDocument:
    return MalformedDocument(
        f"{path} in ZooKeeper is not a Thrift {type(struct).__name__} ({reason}); "
        "storm.meta.serialization.delegate must be Storm's (gzipped) Thrift delegate"
    )
