"""How people are shown supervisors' host names."""

from __future__ import annotations

import pytest

from host_name_cases import HOST_NAME_CASES
from storm_operator.core.host_names import short_names


@pytest.mark.parametrize(("hosts", "names"), HOST_NAME_CASES)
def test_hosts_are_told_apart_by_as_little_as_that_takes(hosts: tuple[str, ...], names: tuple[str, ...]) -> None:
    found = short_names(hosts)
    assert tuple(found[host] for host in hosts) == names
