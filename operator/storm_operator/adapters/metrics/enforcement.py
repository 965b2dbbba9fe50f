"""Keeps what agents say of their enforcement, whatever the window is read for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from storm_operator.adapters.metrics.source import MetricsSource
from storm_operator.core.agent_enforcement import AgentEnforcement, agent_enforcement
from storm_operator.core.metrics_window import MetricsWindow


@dataclass(slots=True)
class EnforcementNoted:
    """A `MetricsSource` in front of another one. `by_host` is from the last window; empty before the first."""

    source: MetricsSource
    by_host: Mapping[str, AgentEnforcement] = field(default_factory=dict)

    def read_window(
        self, now_seconds: float, window_seconds: float, since_seconds: float | None = None
    ) -> MetricsWindow:
        window = self.source.read_window(now_seconds, window_seconds, since_seconds)
        self.by_host = agent_enforcement(window)
        return window
