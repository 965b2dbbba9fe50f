"""What the control loop asks of any source of metrics."""

from __future__ import annotations

from typing import Protocol

from storm_operator.core.metrics_window import MetricsWindow


class MetricsSource(Protocol):
    """Reads all `storm_*` series of docs/reference/metrics.md, "Agent".

    Never raises because a peer failed: what could not be read is absent from the window and named in its `problems`.
    A window of 1.5 control periods always holds the reading of this period and the one before; `since_seconds` is when
    that one was, where earlier readings are not to count.
    """

    def read_window(
        self, now_seconds: float, window_seconds: float, since_seconds: float | None = None
    ) -> MetricsWindow: ...
