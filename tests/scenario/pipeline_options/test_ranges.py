"""Numbers that the pipeline's jobs take: what lies outside their ranges, and that --help tells these."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner, Result

from storm_pipeline.cli import app

RANGES = [
    ("forecast", "--theta", "-30", "1.0"),
    ("forecast", "--cycle", "-5", "1.0"),
    ("forecast", "--bin", "0", "1.0"),
    ("evaluate", "--around", "0", "1.0"),
    ("ingest", "--late-after-hours", "-1", "0.0"),
    ("tune", "--hours", "0", "0.05"),
    ("tune", "--under-price", "-1", "0.0"),
    ("tune", "--failed-price", "-0.1", "0.0"),
    ("tune", "--restart-price", "-1", "0.0"),
    ("tune", "--seed", "-1", "0"),
]
FLOATS = [(job, option) for job, option, _, least in RANGES if "." in least]


def told(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})


@pytest.mark.parametrize(("job", "option", "value", "least"), RANGES)
def test_a_number_out_of_range_is_refused_by_the_name_of_its_option(
    job: str, option: str, value: str, least: str
) -> None:
    refused = told(job, "no-lake", option, value)
    assert refused.exit_code == 2
    wanted = least.removesuffix(".0")
    assert f"Invalid value for '{option}': Input should be greater than or equal to {wanted}" in refused.output


@pytest.mark.parametrize("value", ["inf", "nan", "1e400"])
@pytest.mark.parametrize(("job", "option"), FLOATS)
def test_what_is_infinite_or_no_number_is_refused(job: str, option: str, value: str) -> None:
    refused = told(job, "no-lake", option, value)
    assert refused.exit_code == 2
    assert f"Invalid value for '{option}'" in refused.output


@pytest.mark.parametrize(("job", "option", "least"), [(job, option, least) for job, option, _, least in RANGES])
def test_help_tells_the_range(job: str, option: str, least: str) -> None:
    entry = " ".join(told(job, "--help").output.partition(f"\n  {option} ")[2].partition("\n  --")[0].split())
    assert re.search(rf"[\[ ](x>={re.escape(least)}|{re.escape(least)}<=x<=\S+)\]$", entry), entry
