"""Spark's master: what Spark could not take is refused before it starts."""

from __future__ import annotations

import pytest
import typer

from storm_pipeline.options import settings_of

KNOWN = (
    "local",
    "local[1]",
    "local[*]",
    "local[*,4]",
    "local[4, 2]",
    "local-cluster[2, 1, 1024]",
    "spark://storm-1:7077",
    "spark://a:7077,b:7077",
    "spark://[::1]:7077",
    "k8s://https://10.0.0.1:6443",
    "yarn",
)


@pytest.mark.parametrize("master", KNOWN)
def test_masters_of_spark_are_taken(master: str) -> None:
    assert settings_of(master, "1g", "1g", None).master == master


@pytest.mark.parametrize(
    "master", ["", "foo", "local[0]", "local[]", "local[2", "local[a]", "spark://storm-1", "mesos://a:1"]
)
def test_what_is_no_master_of_spark_is_refused(master: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"--master: '.*' is none of Spark's, which are like local\[\*\]"):
        settings_of(master, "1g", "1g", None)
