"""Bars: in proportion, and where figures lie far apart still all to be seen, and in their order."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from bars import OURS, ROOM, Bar, Panel, bars_of


def lengths(*medians: float) -> list[float]:
    """In pixels, of bars of one panel."""
    panel = Panel("case", tuple(Bar("adaptive", median, median, median) for median in medians))
    drawn = ET.fromstring(bars_of([panel]))
    return [float(element.attrib["width"]) for element in drawn.iter() if element.attrib.get("fill") == OURS]


def test_near_figures_are_in_proportion() -> None:
    assert lengths(10.0, 5.0, 0.0) == pytest.approx([ROOM, ROOM / 2.0, 0.0], abs=0.1)


def test_far_figures_are_logarithmic_and_said_to_be() -> None:
    small, middle, large = lengths(1.0, 100.0, 10_000.0)
    assert large == pytest.approx(ROOM, abs=0.1)
    assert large - middle == pytest.approx(middle - small, abs=0.2)
    assert small > 20.0
    assert "(logarithmic)" in bars_of([Panel("case", (Bar("a", 1.0, 1.0, 1.0), Bar("b", 1.0, 1.0, 900.0)))])
