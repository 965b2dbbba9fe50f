"""How a demo that was played to its end has ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ended:
    """`page` is report.html; `compared` whether a plan held when the managed phase began."""

    page: Path
    compared: bool
