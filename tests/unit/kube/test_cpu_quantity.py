"""Kubernetes' CPU quantities as millicores."""

from __future__ import annotations

import pytest

from storm_operator.core.cpu_quantity import millicores_from_quantity


@pytest.mark.parametrize(
    ("text", "millicores"),
    [
        ("500m", 500.0),
        ("2", 2000.0),
        ("0.5", 500.0),
        (".5", 500.0),
        ("1.", 1000.0),
        ("0", 0.0),
        ("1500000u", 1500.0),
        ("250000000n", 250.0),
        ("2k", 2_000_000.0),
        ("1M", 1e9),
        ("1G", 1e12),
        ("9E", 9e21),
        ("1Ki", 1_024_000.0),
        ("2Mi", 2_097_152_000.0),
        ("1Ei", 1024.0**6 * 1000.0),
        ("2e1", 20_000.0),
        ("0.1m", 0.1),
    ],
)
def test_quantity_in_millicores(text: str, millicores: float) -> None:
    assert millicores_from_quantity(text) == millicores


@pytest.mark.parametrize(
    "text", ["", "m", "nm", "5mm", "5 m", " 5", "5x", "1Gib", "1ki", "1mi", "-1", "1_000", "NaN", "Infinity", "1,5"]
)
def test_what_is_no_quantity_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="is not a CPU quantity such as 500m or 2") as caught:
        millicores_from_quantity(text)
    assert repr(text) in str(caught.value)
