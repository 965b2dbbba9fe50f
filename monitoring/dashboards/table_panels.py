"""Tables: a row for each thing, or a square of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import common, prometheus, table
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.look import DATASOURCE, GREEN, Look, Thresholds, dressed, steps


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: a label, or (`Value #A` and on, one for each query) a value. `link` opens on a click."""

    field: str
    title: str
    unit: str = ""
    thresholds: Thresholds = ()
    base: str = GREEN
    link: str = ""
    decimals: int | None = None


def rows(
    title: str,
    description: str,
    columns: Sequence[Column],
    *expressions: str,
    width: int = 24,
    height: int = 8,
    sort_by: str = "",
) -> table.Panel:
    """A table of now: a row for each set of labels that the expressions share; only `columns` are shown."""
    panel = table.Panel().show_header(True).min_width(70)
    for place, expression in enumerate(expressions):
        panel = panel.with_target(_instant_table(expression, chr(ord("A") + place)))
    panel = panel.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    panel = panel.with_transformation(_only(columns))
    for column in columns:
        panel = panel.override_by_name(column.title, _column_settings(column))
    if sort_by:
        panel = panel.sort_by([common.TableSortByFieldState().display_name(sort_by).desc(True)])
    return dressed(panel, title, description, Look("", width, height))


def matrix(
    title: str,
    description: str,
    unit: str,
    expression: str,
    *,
    row: str,
    column: str,
    width: int = 12,
    height: int = 9,
    decimals: int | None = None,
) -> table.Panel:
    """A square of now: a row for each value of the label `row`, a column for each of `column`, the darker the more."""
    options = {"rowField": row, "columnField": column, "valueField": "Value", "emptyValue": "null"}
    cell = {"type": "color-background", "mode": "basic"}
    panel = (
        table.Panel()
        .show_header(True)
        .with_target(_instant_table(expression, "A"))
        .with_transformation(model.DataTransformerConfig(id_val="groupingToMatrix", options=options))
        .color_scheme(build.FieldColor().mode(model.FieldColorModeId.CONTINUOUS_YL_RD))
        .min(0)
        .override_by_field_type("number", [model.DynamicConfigValue(id_val="custom.cellOptions", value=cell)])
    )
    return dressed(panel, title, description, Look(unit, width, height, decimals=decimals))


def _instant_table(expression: str, ref_id: str) -> prometheus.Dataquery:
    query = prometheus.Dataquery().expr(expression).format(PromQueryFormat.TABLE).ref_id(ref_id)
    return query.instant().datasource(DATASOURCE)


def _only(columns: Sequence[Column]) -> model.DataTransformerConfig:
    """Grafana's `organize`: these columns, in this order, under their titles."""
    options = {
        "includeByName": {column.field: True for column in columns},
        "indexByName": {column.field: place for place, column in enumerate(columns)},
        "renameByName": {column.field: column.title for column in columns},
    }
    return model.DataTransformerConfig(id_val="organize", options=options)


def _column_settings(column: Column) -> list[model.DynamicConfigValue]:
    settings: dict[str, object] = {}
    if column.unit:
        settings["unit"] = column.unit
    if column.decimals is not None:
        settings["decimals"] = column.decimals
    if column.thresholds:
        settings["thresholds"] = steps(column.thresholds, column.base).build().to_json()
        settings["custom.cellOptions"] = {"type": "color-text"}
    if column.link:
        settings["links"] = [{"title": f"Open {column.title}", "url": column.link}]
    return [model.DynamicConfigValue(id_val=name, value=value) for name, value in settings.items()]
