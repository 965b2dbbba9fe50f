"""Whether agents hold executors to their CPU limits, from what they say of themselves. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storm_operator.core.metrics_window import MetricsWindow

ENFORCEMENT = "storm_agent_enforcement"
OBSERVE_ONLY = "observe-only"


@dataclass(frozen=True, slots=True)
class AgentEnforcement:
    """How one agent holds executors to their limits; `why_not` is its own word for why it does not, or not all."""

    mode: str
    why_not: str = ""

    @property
    def enforces(self) -> bool:
        return self.mode != OBSERVE_ONLY and not self.why_not


def agent_enforcement(window: MetricsWindow) -> Mapping[str, AgentEnforcement]:
    """By supervisor host, what its agent said last; an agent that said nothing is absent."""
    newest: dict[str, float] = {}
    found: dict[str, AgentEnforcement] = {}
    for key, series in window.named(ENFORCEMENT):
        host, at_seconds = key.label("supervisor"), series.last.timestamp_seconds
        if key.label("mode") and at_seconds >= newest.get(host, at_seconds):
            newest[host] = at_seconds
            found[host] = AgentEnforcement(key.label("mode"), key.label("reason"))
    return found
