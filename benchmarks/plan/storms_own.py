"""Storm's own ResourceAwareScheduler, called in a JVM of its own on the same instance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plan.instance import Instance
from storm_operator.core.model import Assignment


@dataclass(frozen=True, slots=True)
class Placed:
    """What the scheduler decided, and how long its call took."""

    assignment: Assignment
    seconds: float


def place_resource_aware(instance: Instance, folder: Path, limit_seconds: float) -> Placed | None:
    """None when it took longer than the limit."""
    raise NotImplementedError
