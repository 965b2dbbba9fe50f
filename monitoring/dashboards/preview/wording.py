"""Values in words, as Grafana's units write them: near enough for a picture."""

from __future__ import annotations

import time
from collections.abc import Mapping

SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
TIMES = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def worded(value: float | None, unit: str, decimals: int | None = None) -> str:
    """`value` with its unit; a dash where it is not known."""
    if value is None or value != value:
        return "–"
    if unit == "s":
        return _time(value, decimals)
    if unit == "percentunit":
        return f"{value * 100:.{1 if decimals is None else decimals}f}%"
    if unit == "dateTimeFromNow":
        return _ago(time.time() - value / 1000)
    if unit == "reqps":
        return f"{_scaled(value, decimals)} req/s"
    if unit == "bytes":
        return f"{_scaled(value, decimals)}B"
    return f"{_scaled(value, decimals)}{unit_suffix(unit)}"


def unit_suffix(unit: str) -> str:
    """What stands behind a number: ` tuples/s` of `suffix: tuples/s`, nothing of `short`."""
    return unit.removeprefix("suffix:") if unit.startswith("suffix:") else ""


def _time(seconds: float, decimals: int | None) -> str:
    for size, name in TIMES:
        if abs(seconds) >= size:
            return f"{_rounded(seconds / size, decimals)} {name}"
    return "0 s"


def _ago(seconds: float) -> str:
    return f"{_time(seconds, 0)} ago"


def _scaled(value: float, decimals: int | None) -> str:
    for size, name in SCALES:
        if abs(value) >= 10 * size or (abs(value) >= size and name != "k"):
            return f"{_rounded(value / size, decimals)} {name}"
    return _rounded(value, decimals)


def _rounded(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:.{decimals}f}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def named(legend: str, labels: Mapping[str, str]) -> str:
    """A series' name: the legend with `{{label}}` filled in; without a legend, its labels."""
    if legend in ("", "__auto"):
        return ", ".join(f"{name}={value}" for name, value in sorted(labels.items())) or "value"
    for name, value in labels.items():
        legend = legend.replace("{{" + name + "}}", value)
    while "{{" in legend:  # a label that the series does not have
        before, _, rest = legend.partition("{{")
        legend = before + rest.partition("}}")[2]
    return legend.strip()
