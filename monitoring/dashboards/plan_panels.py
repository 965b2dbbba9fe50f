"""What more than one dashboard shows of plans."""

from __future__ import annotations

from dashboards.frame import TOPOLOGIES
from dashboards.look import AnyPanel
from dashboards.panels import Query, counted, counts

OVER = "Verified|RolledBack|Failed|Expired|Rejected"
"""States of plans that are over, as a pattern."""


def plans_by_end() -> AnyPanel:
    """How many plans ended how, over time."""
    ended = f'storm_operator_topology_plans_total{{{TOPOLOGIES},state=~"{OVER}"}}'
    return counts(
        "Plans by what became of them",
        "Verified: it helped, or nothing was measured before it to compare with. "
        "RolledBack: it did not, and was undone. Failed: it did not come into force.",
        Query(counted("state", ended), "{{state}}"),
    )
