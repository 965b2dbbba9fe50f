"""What a dashboard's figure shows of series that are played: its very expression, asked by Prometheus' own tool."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from dashboards.all_of_them import documents
from dashboards.frame import Uid
from prometheus_server import program


def shown(uid: Uid, title: str, series: Mapping[str, str], expected: float, folder: Path) -> None:
    """Raises CalledProcessError unless the figure is `expected` a minute after the series began."""
    panels = [one for panel in documents()[uid.value]["panels"] for one in (panel, *panel.get("panels", ()))]
    (target,) = next(panel["targets"] for panel in panels if panel["title"] == title)
    asked = {"expr": target["expr"], "eval_time": "1m", "exp_samples": [{"labels": "{}", "value": expected}]}
    played = [{"series": name, "values": values} for name, values in series.items()]
    test = {"interval": "15s", "input_series": played, "promql_expr_test": [asked]}
    case = folder / "case.yml"
    case.write_text(json.dumps({"rule_files": [], "tests": [test]}))
    subprocess.run([program("promtool"), "test", "rules", str(case)], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("leaders", "figure"),
    [
        ({}, 0),
        ({'job="a",pod="1"': "1x8", 'job="a",pod="2"': "0x8"}, 1),
        ({'job="a",pod="1"': "0x8", 'job="a",pod="2"': "0x8"}, 0),
        ({'job="a",pod="1"': "1x8", 'job="a",pod="2"': "1x8"}, 2),
        ({'job="a"': "1x8", 'job="b"': "1x8"}, 1),
        ({'job="a",cluster="blue"': "1x8", 'job="a",cluster="green"': "1x8"}, 1),
        ({'job="a"': "0x8", 'job="b"': "1x8"}, 0),
    ],
    ids=["none", "replicas", "nobody", "two at once", "two operators", "two clusters", "one of two without"],
)
def test_of_each_operators_replicas_one_leads(leaders: Mapping[str, str], figure: int, tmp_path: Path) -> None:
    series = {f"storm_operator_leader{{{labels}}}": values for labels, values in leaders.items()}
    shown(Uid.OPERATOR, "Leading", series, figure, tmp_path)
