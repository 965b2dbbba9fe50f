"""A job that is interrupted ends in a sentence of ours, and Spark's complaints about that are not heard."""

from __future__ import annotations

import io
import logging
import signal
from unittest.mock import Mock, call

import pytest
import typer
from rich.console import Console

from storm_pipeline.lake import Lake
from storm_pipeline.options import ENDING, ended_by_signals, session_for
from storm_pipeline.spark import SparkSettings


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_the_job_in_a_sentence(number: signal.Signals) -> None:
    spark, said = Mock(), io.StringIO()
    spark.streams.active = [Mock()]
    before = [signal.getsignal(each) for each in ENDING]
    with (
        pytest.raises(typer.Exit) as ended,
        ended_by_signals("tune", spark, Console(file=said, width=200)),
    ):
        signal.raise_signal(number)
    assert ended.value.exit_code == 128 + number
    assert said.getvalue() == "tune: interrupted; what was committed stays, run it again to go on\n"
    spark.streams.active[0].stop.assert_called_once_with()
    assert spark.mock_calls == [call.sparkContext.setLogLevel("OFF"), call.stop()]
    assert logging.getLogger("py4j").isEnabledFor(logging.ERROR)
    assert [signal.getsignal(each) for each in ENDING] == before


def test_what_ends_otherwise_is_left_alone() -> None:
    spark = Mock()
    with pytest.raises(KeyError), ended_by_signals("tune", spark, Console()):
        raise KeyError
    with ended_by_signals("tune", spark, Console()):
        pass
    assert spark.mock_calls == []


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_while_java_starts_leaves_none_behind(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark deletes the file in which Java is to say where it listens: Java would wait for a Python that is gone."""
    spark, said = Mock(), io.StringIO()

    def start(*_: object) -> Mock:
        signal.raise_signal(number)
        return spark

    monkeypatch.setattr("storm_pipeline.options.open_session", start)
    before = [signal.getsignal(each) for each in ENDING]
    with (
        pytest.raises(typer.Exit) as ended,
        session_for("tune", SparkSettings(), Lake("lake"), Console(file=said, width=200)),
    ):
        raise AssertionError("it begins all the same")
    assert ended.value.exit_code == 128 + number
    assert said.getvalue() == "tune: interrupted before it began\n"
    spark.stop.assert_called_once_with()
    assert [signal.getsignal(each) for each in ENDING] == before


def test_java_that_ends_by_the_same_signal_leaves_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()

    def start(*_: object) -> Mock:
        signal.raise_signal(signal.SIGTERM)
        raise ConnectionRefusedError("Java has gone")

    monkeypatch.setattr("storm_pipeline.options.open_session", start)
    with (
        pytest.raises(typer.Exit) as ended,
        session_for("tune", SparkSettings(), Lake("lake"), Console(file=said, width=200)),
    ):
        raise AssertionError("it begins all the same")
    assert ended.value.exit_code == 128 + signal.SIGTERM
    assert said.getvalue() == "tune: interrupted before it began\n"
