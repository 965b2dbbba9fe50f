"""The map's colours, as its own files have them, to people of all kinds of sight: computed, not claimed."""

from __future__ import annotations

import re
from itertools import combinations
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt

import numpy as np
import pytest

from storm_operator.console.server import static_pages

Colour = tuple[float, float, float]

# Machado, Oliveira, Fernandes: A Physiologically-based Model for Simulation of Color Vision Deficiency, IEEE TVCG
# 15(6), 2009: severity 1.0, for linear RGB.
SIGHTS = {
    "all cones": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
LEAST_DIFFERENCE = 10.0
"""By CIEDE2000, where 1 is just noticeable side by side; glyphs lie apart, and each also carries letters."""
LEAST_CONTRAST = 3.0
"""WCAG 2.2, 1.4.11."""
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])


def file(path: str) -> str:
    return static_pages()[path].body.decode()


def components_colours() -> list[str]:
    text = file("/js/palette.js")
    (listed,) = re.findall(r"const COLOURS = \[(.+?)\]", text)
    (acker,) = re.findall(r'const ACKER = "(#\w{6})"', text)
    return [*re.findall(r"#\w{6}", listed), acker]


def themes() -> dict[str, dict[str, str]]:
    light, dark = re.findall(r"^:root.*?^}", file("/css/base.css"), re.DOTALL | re.MULTILINE)
    found = {"light": light, "dark": dark}
    return {name: dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for name, block in found.items()}


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[at : at + 2], 16) / 255.0 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    dark, light = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def lab(colour: str, sight: str) -> Colour:
    """CIE L*a*b* under D65, of the colour as that sight has it."""
    xyz = TO_XYZ @ np.clip(SIGHTS[sight] @ linear(colour), 0.0, 1.0) / WHITE
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return float(116 * y - 16), float(500 * (x - y)), float(200 * (y - z))


def difference(one: Colour, other: Colour) -> float:
    """CIEDE2000 (Sharma, Wu, Dalal: The CIEDE2000 Color-Difference Formula, 2005), all weights 1."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (hypot(a1, b1) + hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * sqrt(mean**7 / (mean**7 + 25**7))
    c1, c2 = hypot(a1 * stretch, b1), hypot(a2 * stretch, b2)
    h1, h2 = (degrees(atan2(b, a * stretch)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    lightness, chroma, hue = l2 - l1, c2 - c1, 2 * sqrt(c1 * c2) * sin(radians(turn / 2))
    mean_l, mean_c = (l1 + l2) / 2, (c1 + c2) / 2
    mean_h = h1 + turn / 2 if c1 * c2 else h1 + h2
    t = 1 - 0.17 * cos(radians(mean_h - 30)) + 0.24 * cos(radians(2 * mean_h))
    t += 0.32 * cos(radians(3 * mean_h + 6)) - 0.2 * cos(radians(4 * mean_h - 63))
    s_l = 1 + 0.015 * (mean_l - 50) ** 2 / sqrt(20 + (mean_l - 50) ** 2)
    s_c, s_h = 1 + 0.045 * mean_c, 1 + 0.015 * mean_c * t
    bend = 60 * exp(-(((mean_h % 360 - 275) / 25) ** 2))
    twist = -2 * sqrt(mean_c**7 / (mean_c**7 + 25**7)) * sin(radians(bend))
    parts = lightness / s_l, chroma / s_c, hue / s_h
    return sqrt(sum(part**2 for part in parts) + twist * parts[1] * parts[2])


@pytest.mark.parametrize(
    ("one", "other", "published"),
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((6.7747, -0.2908, -2.4247), (5.8714, -0.0985, -2.2286), 0.6377),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_measure_is_the_published_one(one: Colour, other: Colour, published: float) -> None:
    """From the test data that come with the paper."""
    assert difference(one, other) == pytest.approx(published, abs=1e-4)


@pytest.mark.parametrize("sight", SIGHTS)
def test_any_two_components_colours_are_told_apart(sight: str) -> None:
    colours = components_colours()
    assert len(set(colours)) == 7
    near = {
        (one, other): round(found, 1)
        for one, other in combinations(colours, 2)
        if (found := difference(lab(one, sight), lab(other, sight))) < LEAST_DIFFERENCE
    }
    assert near == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_drawn_around_and_in_colours_stands_out_from_what_is_behind(theme: str) -> None:
    """Rims are `soft`, marks and letters `text` with a halo of `card`; flows are `crossing`."""
    own = themes()[theme]
    for ink in ("soft", "text", "crossing"):
        for behind in ("card", "sunk"):
            assert contrast(own[ink], own[behind]) >= LEAST_CONTRAST, (ink, behind)


def test_a_colour_that_does_not_stand_out_has_a_rim() -> None:
    """The page's own limit is WCAG's, and there are such colours: the rim itself is looked at in a browser."""
    (limit,) = re.findall(r"LEAST_CONTRAST = (\d)", file("/js/palette.js"))
    assert float(limit) == LEAST_CONTRAST
    faint = [colour for colour in components_colours() if contrast(colour, themes()["light"]["card"]) < LEAST_CONTRAST]
    assert faint == ["#e69f00", "#56b4e9", "#f0e442"]
