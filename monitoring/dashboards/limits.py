"""From where on a value is no longer well: one place for what several panels judge, and why it is that number."""

from __future__ import annotations

from dashboards.look import GREEN, ORANGE, RED, YELLOW, Thresholds

LATENCY_SECONDS: Thresholds = ((1, YELLOW), (10, RED))
"""Storm fails a tuple after 30 s (topology.message.timeout.secs): from a third of that on, little is left."""
FAILED_PER_SECOND: Thresholds = ((0.1, ORANGE), (10, RED))
CROSSING_SHARE: Thresholds = ((0.3, YELLOW), (0.7, ORANGE))
"""Of all tuples, those between supervisors. Spread by chance over four of them it is 0.75."""
WAITING_TUPLES: Thresholds = ((1_000, YELLOW), (10_000, RED))
QUEUE_GROWTH_PER_SECOND: Thresholds = ((10, YELLOW), (100, RED))
THROTTLED_SHARE: Thresholds = ((0.1, YELLOW), (0.5, RED))
USED_OF_LIMIT: Thresholds = ((0.8, YELLOW), (0.95, ORANGE))
ABOVE_BEST_KNOWN: Thresholds = ((0.1, YELLOW), (0.5, ORANGE))
FORECAST_ERROR: Thresholds = ((-0.5, YELLOW), (-0.2, GREEN), (0.2, YELLOW), (0.5, ORANGE))
"""Signed; below the first it is as bad as above the last."""
COMPLETE_SHARE: Thresholds = ((0.8, YELLOW), (1, GREEN))
"""By default no plan is made while any executor is missing (minimumCompleteness 1); below the first it is red."""
