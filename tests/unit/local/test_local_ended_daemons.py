"""A daemon that ends again and again while its cluster is waited for: who it is, and what it said last."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from storm_operator.local import cluster as cluster_module
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.ended_daemons import given_up, last_error, last_words
from storm_operator.local.spec import LocalClusterError, LocalClusterSpec, lay_out

STARTED = "2026-11-27 00:35:35,559 o.a.s.d.n.Nimbus main [INFO] Starting Nimbus\n"
FAILED = (
    STARTED
    + """2026-11-27 00:35:36,559 o.a.s.u.Utils main [ERROR] Received error in thread main.. terminating server...
java.lang.Error: java.lang.IllegalArgumentException: storm_operator.fallback.scheduler: 'nope' is no scheduler
\tat org.apache.storm.utils.Utils.handle(Utils.java:666)
Caused by: java.lang.IllegalArgumentException: storm_operator.fallback.scheduler: 'nope' is no scheduler
\tat dev.stormoperator.scheduler.PlanScheduler.prepare(PlanScheduler.java:49)
Caused by: java.lang.ClassNotFoundException: nope
\t... 11 more
2026-11-27 00:35:36,700 o.a.s.u.Utils Thread-1 [INFO] Halting process
"""
)
CAUSE = (
    "java.lang.IllegalArgumentException: storm_operator.fallback.scheduler: 'nope' is no scheduler; "
    "caused by java.lang.ClassNotFoundException: nope"
)


def daemon(pid: int | None, starts: int, wanted: bool = True, log: str = "", name: str = "nimbus") -> dict[str, Any]:
    return {"name": name, "pid": pid, "starts": starts, "wanted": wanted, "log": log}


@pytest.mark.parametrize(
    ("before", "now", "is_given_up"),
    [
        (daemon(7, 1), daemon(7, 1), False),
        (daemon(7, 1), daemon(None, 1), False),
        (daemon(7, 1), daemon(8, 2), False),
        (daemon(7, 1), daemon(None, 2), True),
        (daemon(7, 1), daemon(9, 3), True),
        (daemon(None, 0), daemon(8, 2), False),
        (daemon(7, 5), daemon(8, 6), False),
        (daemon(7, 1), daemon(None, 2, wanted=False), False),
    ],
)
def test_one_end_is_borne_and_a_second_one_is_not(
    before: dict[str, Any], now: dict[str, Any], is_given_up: bool
) -> None:
    assert (given_up([before], [now]) is not None) is is_given_up


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (FAILED, CAUSE),
        ("2026-11-27 00:35:36,559 a.B main [ERROR] no leader\n" + STARTED, "no leader"),
        ("Error: Could not find or load main class x.Y\n", "Error: Could not find or load main class x.Y"),
        ("Traceback:\n  at\nOSError: no device\n", "OSError: no device"),
        (STARTED, ""),
        ("", ""),
    ],
)
def test_the_last_error_is_told_by_its_cause(text: str, error: str) -> None:
    assert last_error(text) == error


def test_the_last_words_name_the_file_in_which_they_stand(tmp_path: Path) -> None:
    printed, log = tmp_path / "nimbus.out", tmp_path / "nimbus.log"
    ended = daemon(None, 2, log=str(printed))
    assert last_words(ended) == f"nimbus ended (see {printed})"
    printed.write_text("java: cannot allocate memory\n")
    assert last_words(ended) == f"nimbus ended: java: cannot allocate memory (see {printed})"
    log.write_text(FAILED)
    assert last_words(ended) == f"nimbus ended: {CAUSE} (see {log})"


def test_readiness_is_not_waited_for_when_nimbus_ends_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nimbus.log").write_text(FAILED)
    log = str(tmp_path / "nimbus.out")
    told = iter([[daemon(7, 1, log=log)], [daemon(8, 2, log=log)], [daemon(None, 2, log=log)]])
    spec = LocalClusterSpec(name="unit-ended")
    cluster = LocalCluster(spec)
    cluster._layout = lay_out(spec, tmp_path, False, 6627, 2181)
    monkeypatch.setattr(cluster_module, "registered_supervisors", lambda *_: None)
    monkeypatch.setattr(LocalCluster, "daemons", lambda _: next(told))
    began = time.monotonic()
    with pytest.raises(LocalClusterError, match="'nope' is no scheduler"):
        cluster.wait_ready(30.0)
    assert time.monotonic() - began < 10.0
