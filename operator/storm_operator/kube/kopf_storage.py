"""What kopf would keep in annotations of the resources, where anybody may write anything: here it keeps nothing there.

kopf reads its annotations before it calls any handler, and calls none where one cannot be read: of such a resource the
operator would never hear, and no loop begins before it has heard of all. Nor does it need any: no handler asks what has
changed, and how long a deletion has waited the resource itself tells.
"""

from __future__ import annotations

from typing import Any

import kopf


class NothingCompared(kopf.DiffBaseStorage):
    """No resource has a state from before."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None


class ProgressInMemory(kopf.AnnotationsProgressStorage):
    """How handlers stand; after a restart they begin anew. What wakes kopf up is an annotation still: none reads it."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix=prefix)
        self._records: dict[tuple[str, str], Any] = {}

    def fetch(self, *, key: Any, body: kopf.Body) -> Any:
        return self._records.get((_uid(body), key))

    def store(self, *, key: Any, record: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        self._records[_uid(body), key] = record

    def purge(self, *, key: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        self._records.pop((_uid(body), key), None)


def _uid(body: kopf.Body) -> str:
    return str(body.metadata.uid)
