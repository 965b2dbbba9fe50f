"""Starting a recorder from what a command line or a chart says."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from storm_operator.history.recorder import Recorder, Say
from storm_operator.history.settings import HistorySettings
from storm_operator.history.store import HistoryStore, Limits

BYTES_PER_GIGABYTE = 1_000_000_000


def start(settings: HistorySettings, nimbus: str, say: Say, insist: bool = False) -> Recorder:
    """A recorder at work. OSError or ValueError when the place can never be used.

    With `insist` also where a folder cannot be written to now, or an object store not be reached: else that is tried
    again with each period.
    """
    limits = Limits(keep_bytes=round(settings.keep_gigabytes * BYTES_PER_GIGABYTE), keep_days=settings.keep_days)
    store = HistoryStore.at(settings.root, settings.cluster or nimbus, new_run_id(), limits)
    if insist:
        store.files.insist_on_use()
    return Recorder(store, say)


def new_run_id() -> str:
    """Sortable by time, unique by its tail."""
    return f"{datetime.now(UTC):%Y%m%d%H%M%S}-{uuid.uuid4().hex[:6]}"
