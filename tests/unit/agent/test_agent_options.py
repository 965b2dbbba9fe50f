from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storm_operator.agent.options import AgentOptions, OptionError, choose_metrics_dir, parse_address, parse_peer


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
