"""What bench-optimum prints for programs."""

from __future__ import annotations

import json
import sys

import optimum
import pytest


def test_the_last_line_has_the_gaps_of_all_instances(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["optimum", "--instances", "2"])
    monkeypatch.setattr(
        optimum,
        "measure",
        lambda number, effort, solver: optimum.Measurement(number, "chain", "", 3.0 * number, 0.0, True, 0.1),
    )
    optimum.main()
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {name: told[name] for name in ("instances", "mean_gap_percent", "worst_gap_percent")} == {
        "instances": 2,
        "mean_gap_percent": 1.5,
        "worst_gap_percent": 3.0,
    }
