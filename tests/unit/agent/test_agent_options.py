from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from storm_operator.agent.options import (
    AgentOptions,
    OptionError,
    checked_zookeeper,
    choose_metrics_dir,
    parse_address,
    parse_peer,
)
from storm_operator.cli import app


def test_addresses() -> None:
    assert parse_address("--listen", "0.0.0.0:9464") == ("0.0.0.0", 9464)
    assert parse_address("--listen", "[::1]:80") == ("::1", 80)
    assert parse_peer("sup-2=10.77.0.12:9464") == ("sup-2", ("10.77.0.12", 9464))


@pytest.mark.parametrize("text", ["", "9464", "host:", ":9464", "host:x", "host:65536", "host:-1"])
def test_bad_addresses_are_named(text: str) -> None:
    with pytest.raises(OptionError, match=r"--listen .* must be ADDRESS:PORT"):
        parse_address("--listen", text)


@pytest.mark.parametrize("text", ["10.77.0.12:9464", "=10.77.0.12:9464"])
def test_bad_peers_are_named(text: str) -> None:
    with pytest.raises(OptionError, match="must be HOST=ADDRESS:PORT"):
        parse_peer(text)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("zk:port", "must be HOST:PORT, such as zookeeper.example:2181"),
        ("zk1:2181,zk2", "must be HOST:PORT, such as zookeeper.example:2181"),
        ("[::1", "is no address of one"),
    ],
)
def test_a_zookeeper_that_is_no_address_is_named_before_anything_is_begun(text: str, wrong: str) -> None:
    asked = ["agent", "--host", "sup-1", "--metrics-dir", "/m", "--zookeeper", text]
    done = CliRunner().invoke(app, asked, env={"COLUMNS": "300"})
    assert done.exit_code == 2
    assert f"--zookeeper: {text!r} {wrong}" in done.output


@pytest.mark.parametrize("text", [None, "", "zk:2181", "zk1:2181,zk2:2181", "zk:2181/below", "[::1]:2181"])
def test_what_is_a_zookeeper_is_taken_as_it_is(text: str | None) -> None:
    assert checked_zookeeper(text) == text


def test_metrics_dir_is_below_the_local_dir_by_default() -> None:
    assert choose_metrics_dir(Path("/m"), Path("/s")) == Path("/m")
    assert choose_metrics_dir(None, Path("/s")) == Path("/s/storm-operator-metrics")
    with pytest.raises(OptionError, match="--metrics-dir"):
        choose_metrics_dir(None, None)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "--zookeeper"),
        ({"zookeeper": "z:2181"}, ""),
        ({"zookeeper": "z:2181", "enforce": False}, "--no-enforce"),
        ({"zookeeper": "z:2181", "shared_cgroup": True}, "--shared-cgroup"),
    ],
)
def test_why_limits_are_not_enforced_is_told_by_the_option_that_says_so(given: dict[str, Any], reason: str) -> None:
    declined = AgentOptions("sup-1", Path("/m"), ("127.0.0.1", 0), **given).declined
    assert reason in declined
    assert bool(declined) is bool(reason)
