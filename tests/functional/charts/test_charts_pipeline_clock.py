"""Chart `storm-operator`, value `pipeline`: when a run begins, and when it is ended."""

from __future__ import annotations

import pytest

from functional.charts.chart_objects import Helm, HelmRefused
from functional.charts.test_charts_pipeline import NAME, ON


def test_its_clock_is_utc_whatever_the_control_planes_is(helm: Helm) -> None:
    assert helm.template("storm-operator", *ON).one("CronJob", NAME)["spec"]["timeZone"] == "Etc/UTC"


def test_a_run_that_hangs_is_ended_before_the_next_night(helm: Helm) -> None:
    """No other begins while it runs."""
    spec = helm.template("storm-operator", *ON).one("CronJob", NAME)["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    assert 12 * 3600 <= spec["jobTemplate"]["spec"]["activeDeadlineSeconds"] < 24 * 3600


def test_a_run_may_take_weeks(helm: Helm) -> None:
    cron_job = helm.template("storm-operator", *ON, "pipeline.deadlineSeconds=2000000").one("CronJob", NAME)
    assert cron_job["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] == 2_000_000


@pytest.mark.parametrize(
    "schedule",
    ["17 2 * * *", "*/15 0-6,22 1,15 JAN-mar mon-Fri", "0 0 30 1-12/2 ?", "0 0 31 2 1", "@daily", "5/10 * * * *"],
)
def test_a_schedule_of_crons_is_taken(helm: Helm, schedule: str) -> None:
    rendered = helm.template("storm-operator", *ON, f"pipeline.schedule={escaped(schedule)}")
    assert rendered.one("CronJob", NAME)["spec"]["schedule"] == schedule


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("61 2 * * *", r'has "61" for its minute; 0 to 59 is right'),
        ("0 24 * * *", r'has "24" for its hour'),
        ("0 0 0 * *", r'has "0" for its day of the month'),
        ("0 0 * 13 *", r'has "13" for its month; 1 to 12 or jan to dec'),
        ("0 0 * * 7", r'has "7" for its weekday; 0 to 6'),
        ("0 0 * * mo", r'has "mo" for its weekday'),
        ("*/0 * * * *", r'has "\*/0" for its minute'),
        ("1,,2 * * * *", r'has "1,,2" for its minute'),
        ("0 0 31 2 *", r"0 0 31 2 \* is of a day that its month never has"),
        ("0 0 30 feb *", "never has"),
        ("0 0 31 11 ?", "never has"),
        ("@nightly", r"@nightly is none of @hourly, @daily"),
    ],
)
def test_a_schedule_that_never_comes_is_refused_with_what_is_wrong_about_it(
    helm: Helm, schedule: str, said: str
) -> None:
    with pytest.raises(HelmRefused, match=rf"pipeline\.schedule: .*{said}"):
        helm.template("storm-operator", *ON, f"pipeline.schedule={escaped(schedule)}")


def escaped(value: str) -> str:
    return value.replace(",", r"\,")


@pytest.mark.parametrize(
    "wrong", ["pipeline.schedule=never", "pipeline.deadlineSeconds=0", "pipeline.deadlineSeconds=null"]
)
def test_what_is_no_time_is_refused(helm: Helm, wrong: str) -> None:
    with pytest.raises(HelmRefused, match=wrong.partition("=")[0].rpartition(".")[2]):
        helm.template("storm-operator", *ON, wrong)
