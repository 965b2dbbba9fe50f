"""What --every of `storm-pipeline ingest` may say, and that Spark is not started to find out."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from storm_pipeline.cli import app
from storm_pipeline.options import parse_interval, seconds_of


@pytest.mark.parametrize(
    "text", ["30 seconds", "1 second", "1.5 seconds", "500 MILLISECONDS", " 2  minutes ", "1 day 2 hours 30 minutes"]
)
def test_what_spark_takes_is_left_as_it_is(text: str) -> None:
    assert parse_interval("--every", text) == text


@pytest.mark.parametrize(
    ("text", "seconds"), [("1.5 seconds", 1.5), ("500 MILLISECONDS", 0.5), (" 1 day 2 hours  30 minutes ", 95400.0)]
)
def test_how_long_it_is(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


def test_it_may_be_absent() -> None:
    assert parse_interval("--every", None) is None


@pytest.mark.parametrize(
    "text", ["", "often", "30", "30s", "seconds", "-30 seconds", "1.5 hours", "2 months", "1 hour and 2 minutes"]
)
def test_what_is_no_interval_is_named(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="must be an interval like '30 seconds'") as refused:
        parse_interval("--every", text)
    assert str(refused.value).startswith(f"--every: {text!r} ")


def test_a_wrong_interval_is_a_usage_error_of_the_command() -> None:
    refused = CliRunner().invoke(app, ["ingest", "no-lake", "--every", "often"], env={"COLUMNS": "200"})
    assert refused.exit_code == 2
    assert "--every: 'often' must be an interval like '30 seconds'" in refused.output
