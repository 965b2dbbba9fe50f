"""The preview asks and shows what Grafana would: variables, transformations, words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from dashboards.all_of_them import documents
from dashboards.frame import Uid
from dashboards.preview.__main__ import main
from dashboards.preview.asking import Answer, AnsweredDashboard, AnsweredPanel, ask
from dashboards.preview.choices import Looked, choose, substituted
from dashboards.preview.drawing import drawn, with_gaps
from dashboards.preview.page import page
from dashboards.preview.prometheus import Prometheus, QueryError, Series
from dashboards.preview.tables import table_of
from dashboards.preview.wording import named, worded

HOUR = Looked(1_000_000.0, 1_003_600.0, 15.0)


@dataclass(frozen=True, slots=True)
class Invented(Prometheus):
    """A server that knows the same answer to everything."""

    url: str = ""
    error: str = ""

    def now(self, expression: str, at_seconds: float) -> tuple[Series, ...]:
        return self.over_time(expression, at_seconds, at_seconds, 1.0)

    def over_time(
        self, expression: str, start_seconds: float, end_seconds: float, step_seconds: float
    ) -> tuple[Series, ...]:
        if self.error:
            raise QueryError(self.error)
        labels = {"topology": "<words>", "source": "a", "target": "b", "supervisor": "a", "peer": "b", "le": "0.5"}
        return (Series(labels, ((start_seconds, 1.0), (end_seconds, 2.0))),)

    def label_values(self, selector: str, label: str, start_seconds: float, end_seconds: float) -> tuple[str, ...]:
        return ("words.1", "other") if label == "topology" else ()


def answered(panel: dict[str, Any], *results: list[tuple[Mapping[str, str], float]]) -> AnsweredPanel:
    answers = tuple(
        Answer(chr(65 + place), "", "", tuple(Series(labels, ((0.0, value),)) for labels, value in result), "", 0.0)
        for place, result in enumerate(results)
    )
    return AnsweredPanel(panel, answers)


def test_variables_stand_for_what_grafana_puts_there() -> None:
    chosen = choose(documents()[Uid.OVERVIEW], Invented(), HOUR)
    assert chosen.values["cluster"] == ".*"
    assert chosen.values["topology"] == r"(words\\.1|other)"
    one = choose(documents()[Uid.TOPOLOGY], Invented(), HOUR)
    assert one.values["topology"] == "words.1"


def test_names_without_a_value_stay_to_be_refused_by_prometheus() -> None:
    assert substituted("$a ${b} $c", {"a": "1", "b": "2"}) == "1 2 $c"


@pytest.mark.parametrize(
    ("panel", "step", "window"),
    [
        ({"gridPos": {"w": 24}}, 15.0, "60s"),
        ({"gridPos": {"w": 24}, "maxDataPoints": 10}, 360.0, "375s"),
        ({"gridPos": {"w": 24}, "interval": "1m"}, 60.0, "75s"),
    ],
)
def test_steps_and_windows_follow_width_and_scrapes(panel: dict[str, Any], step: float, window: str) -> None:
    assert HOUR.step_seconds(panel) == step
    assert HOUR.built_in(step)["__rate_interval"] == window


def test_rows_of_several_results_become_one_where_their_shared_labels_agree() -> None:
    panel = {
        "transformations": [
            {"id": "merge", "options": {}},
            {
                "id": "organize",
                "options": {
                    "includeByName": {"topology": True, "plan": True, "Value #B": True},
                    "indexByName": {"topology": 0, "plan": 1, "Value #B": 2},
                    "renameByName": {"topology": "Topology", "plan": "Plan", "Value #B": "Moves"},
                },
            },
        ],
        "options": {"sortBy": [{"displayName": "Moves", "desc": True}]},
    }
    infos: list[tuple[Mapping[str, str], float]] = [
        ({"topology": "a", "plan": "p1"}, 1.0),
        ({"topology": "b", "plan": "p2"}, 1.0),
        ({"topology": "c", "plan": "p3"}, 1.0),
    ]
    moves: list[tuple[Mapping[str, str], float]] = [({"topology": "b"}, 7.0), ({"topology": "a"}, 3.0)]
    table = table_of(answered(panel, infos, moves))
    assert table.columns == ("Topology", "Plan", "Moves")
    assert [tuple(row.values()) for row in table.rows] == [("b", "p2", 7.0), ("a", "p1", 3.0), ("c", "p3", None)]


def test_a_matrix_has_a_row_and_a_column_for_each_value() -> None:
    options = {"rowField": "source", "columnField": "target", "valueField": "Value"}
    panel = {"transformations": [{"id": "groupingToMatrix", "options": options}]}
    flows: list[tuple[Mapping[str, str], float]] = [
        ({"source": "x", "target": "y"}, 5.0),
        ({"source": "y", "target": "x"}, 6.0),
    ]
    table = table_of(answered(panel, flows))
    assert table.columns == ("source\\target", "x", "y")
    assert [dict(row) for row in table.rows] == [{"source\\target": "x", "y": 5.0}, {"source\\target": "y", "x": 6.0}]


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (0.00042, "s", "420 µs"),
        (90.0, "s", "1.5 min"),
        (0.123, "percentunit", "12.3%"),
        (1234.0, "suffix: tuples/s", "1234 tuples/s"),
        (25_000.0, "short", "25 k"),
        (3.2e9, "bytes", "3.2 GB"),
        (None, "s", "–"),
        (float("nan"), "s", "–"),
    ],
)
def test_values_are_worded(value: float | None, unit: str, words: str) -> None:
    assert worded(value, unit) == words


def test_legends_are_filled_in() -> None:
    assert named("{{a}} on {{b}}", {"a": "x"}) == "x on"
    assert named("__auto", {"b": "2", "a": "1"}) == "a=1, b=2"


@pytest.mark.slow
@pytest.mark.parametrize("uid", list(Uid))
def test_every_panel_can_be_drawn_and_nothing_is_taken_for_html(uid: Uid) -> None:
    made = page([ask(documents()[uid], Invented(), HOUR)])
    assert made.count("no data") == 0
    assert "<words>" not in made.replace("\\u003cwords\\u003e", "")


def test_lines_break_where_points_are_missing() -> None:
    points = with_gaps([(0.0, 1.0), (15.0, 2.0), (60.0, 3.0), (75.0, 4.0)], 15.0)
    assert [at for at, _ in points] == [0.0, 15.0, 30.0, 60.0, 75.0]
    assert math.isnan(points[2][1])


def test_a_heat_map_of_one_moment_has_a_width_and_gaps_stay_empty() -> None:
    dashboard = ask(documents()[Uid.TOPOLOGY], Invented(), Looked(1_000_000.0, 1_000_600.0, 15.0))
    (panel,) = [one for one in dashboard.panels if one.panel["type"] == "heatmap"]
    step_seconds = dashboard.looked.step_seconds(panel.panel)
    first = panel.answers[0].series[0].points[0]
    alone = replace(panel, answers=(replace(panel.answers[0], series=(Series({"le": "0.5"}, (first,)),)),))
    heat = heat_of(alone, dashboard)
    assert (heat.x[1] - heat.x[0]).total_seconds() == step_seconds
    heat = heat_of(panel, dashboard)
    assert len(heat.x) == len(heat.z[0]) + 1 == 600 / step_seconds + 2
    assert [value for value in heat.z[0] if value is not None] == [1.0, 2.0]


def heat_of(panel: AnsweredPanel, dashboard: AnsweredDashboard) -> Any:
    picture = drawn(panel, dashboard)
    assert not isinstance(picture, str)
    return picture.data[0]


def test_what_prometheus_refuses_is_shown() -> None:
    assert "bad &lt;query&gt;" in page([ask(documents()[Uid.PIPELINE], Invented(error="bad <query>"), HOUR)])


def test_without_a_prometheus_one_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["preview", "--prometheus", "http://127.0.0.1:1", "--output", str(tmp_path / "index.html")]
    monkeypatch.setattr("sys.argv", words)
    assert main() == 1
    assert capsys.readouterr().err.startswith("--prometheus: http://127.0.0.1:1 does not answer as a Prometheus does: ")
