"""What becomes of standalone mode, and of what it says, when its terminal goes or its log cannot be written."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_operator.standalone import stop_on_signals
from storm_operator.terminal import say_on_stdout

LONG = "managing topologies on Nimbus one.example.com:6627, two.example.com:6627; Ctrl-C leaves topologies running"


@pytest.fixture
def handlers() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where these tests run under nohup
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_way_to_end_it_lets_the_pass_end(number: signal.Signals) -> None:
    stop = stop_on_signals()
    signal.raise_signal(number)
    assert stop.is_set()


@pytest.mark.usefixtures("handlers")
def test_under_nohup_it_outlives_its_terminal() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop = stop_on_signals()
    signal.raise_signal(signal.SIGHUP)
    assert not stop.is_set()


def test_a_log_has_each_sentence_on_one_line_with_its_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr(sys, "stdout", log)
        say = say_on_stdout(lambda: None)
        say(LONG)
        say("[bold]as it stands :x:")
    first, second = (tmp_path / "log").read_text().splitlines()
    assert re.fullmatch(rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\S+ {re.escape(LONG)}", first)
    assert second.endswith(" [bold]as it stands :x:")


def test_a_full_disk_takes_sentences_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    with Path("/dev/full").open("w") as log:
        monkeypatch.setattr(sys, "stdout", log)
        say_on_stdout(ended.set)(LONG)
        with Path(os.devnull).open("w") as nowhere:  # for what waits to be written when it is closed
            os.dup2(nowhere.fileno(), log.fileno())
    assert not ended.is_set()


def test_whoever_read_and_is_gone_ends_it_after_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as log:
        monkeypatch.setattr(sys, "stdout", log)
        say = say_on_stdout(ended.set)
        say(LONG)
        assert ended.is_set()
        say(LONG)


def test_what_has_no_form_in_the_logs_encoding_is_said_by_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "log").open("w", encoding="latin-1") as log:
        monkeypatch.setattr(sys, "stdout", log)
        say_on_stdout(lambda: None)("größe → \ud800: submitted")
    assert (tmp_path / "log").read_text(encoding="latin-1").endswith(" größe \\u2192 \\ud800: submitted\n")
