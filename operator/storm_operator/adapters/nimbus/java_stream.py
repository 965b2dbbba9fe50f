"""The class names inside a serialized Java object, without Java.

Java Object Serialization Stream Protocol, section 6.4: a class descriptor is TC_CLASSDESC (0x72), the name (two
bytes of length, then modified UTF-8), eight bytes of serialVersionUID, one byte of SC_* flags, two bytes with the
number of fields. Descriptors are found by that shape; objects' data is not interpreted.
"""

from __future__ import annotations

import re

MAGIC = b"\xac\xed\x00\x05"
TC_CLASSDESC = 0x72
UID_LENGTH = 8
SC_WRITE_METHOD, SC_SERIALIZABLE, SC_EXTERNALIZABLE, SC_BLOCK_DATA, SC_ENUM = 1, 2, 4, 8, 16
FLAGS = frozenset(
    {
        0,  # a class that is only named
        SC_SERIALIZABLE,
        SC_SERIALIZABLE | SC_WRITE_METHOD,
        SC_SERIALIZABLE | SC_ENUM,
        SC_EXTERNALIZABLE,
        SC_EXTERNALIZABLE | SC_BLOCK_DATA,
    }
)
JAVA_NAME = re.compile(r"\[*(?:[^\W\d][\w$]*)(?:[./][\w$]+)*;?", re.UNICODE)


def class_names(serialized: bytes) -> tuple[str, ...]:
    """Names of all classes described in `serialized`, superclasses included, in order, each once.

    Empty when it is no Java serialization stream.
    """
    if not serialized.startswith(MAGIC):
        return ()
    names: dict[str, None] = {}
    at = serialized.find(TC_CLASSDESC, len(MAGIC))
    while at >= 0:
        name = _descriptor_at(serialized, at)
        if name is not None:
            names[name] = None
        at = serialized.find(TC_CLASSDESC, at + 1)
    return tuple(names)


def _descriptor_at(serialized: bytes, at: int) -> str | None:
    length = int.from_bytes(serialized[at + 1 : at + 3], "big")
    end = at + 3 + length
    flags_at = end + UID_LENGTH
    if length == 0 or flags_at + 2 >= len(serialized) or serialized[flags_at] not in FLAGS:
        return None
    try:
        name = serialized[at + 3 : end].decode("utf-8")
    except UnicodeDecodeError:
        return None
    return name if JAVA_NAME.fullmatch(name) else None
