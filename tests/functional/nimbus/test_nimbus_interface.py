"""Our copy of Storm's interface against Storm's own generated classes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from storm_operator.adapters.nimbus.connection import storm_thrift
from storm_operator.local.cluster import LocalCluster

pytestmark = pytest.mark.functional
HERE = Path(__file__).parent
# What thriftpy2 calls binary is a string on the wire, and in Storm's classes.
BINARY, STRING = 18, 11


def our_structs() -> dict[str, dict[int, Any]]:
    structs = {
        name: value.thrift_spec
        for name, value in vars(storm_thrift).items()
        if isinstance(value, type) and hasattr(value, "thrift_spec")
    }
    for method in storm_thrift.Nimbus.thrift_services:
        for part in ("args", "result"):
            structs[f"Nimbus${method}_{part}"] = getattr(storm_thrift.Nimbus, f"{method}_{part}").thrift_spec
    return structs


def test_every_field_has_storms_id_name_and_type(storm_cluster: LocalCluster) -> None:
    structs = our_structs()
    answer = subprocess.run(
        ["java", "-cp", f"{storm_cluster.storm_home}/lib-worker/*", HERE / "ThriftFields.java", *sorted(structs)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    rows = [line.split(" ") for line in answer.stdout.splitlines()]
    storms = {(struct, int(number), name, int(kind)) for struct, number, name, kind in rows}
    ours = {
        (struct, number, field[1], STRING if field[0] == BINARY else field[0])
        for struct, spec in structs.items()
        for number, field in spec.items()
    }
    assert len(ours) > 100
    assert ours <= storms
