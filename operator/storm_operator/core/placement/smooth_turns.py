"""Weighted round robin without bursts: a participant of twice the weight has twice the turns, spread out evenly."""

from __future__ import annotations

from collections.abc import Mapping


class SmoothTurns:
    """Mutable: what each participant has saved up.

    At each turn everyone earns its weight; the richest takes the turn and pays what all earned together.
    """

    def __init__(self) -> None:
        self._saved: dict[str, float] = {}

    def next_of(self, weights: Mapping[str, float]) -> str:
        """Whose turn it is among `weights` (positive, by participant, not empty); ties go to the lowest name."""
        for name, weight in weights.items():
            self._saved[name] = self._saved.get(name, 0.0) + weight
        richest = min(weights, key=lambda name: (-self._saved[name], name))
        self._saved[richest] -= sum(weights.values())
        return richest
