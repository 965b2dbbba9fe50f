"""A StormTopology that is not carried out: as it stands, not yet, or because its owner paused or suspended it."""

from __future__ import annotations

from dataclasses import dataclass

from storm_operator.core.model import name_of_topology


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why, in a sentence, and the name of the topology; empty where nobody can read which one it describes.

    `is_pause` tells one that its owner paused by annotation.
    """

    sentence: str
    topology: str = ""
    is_pause: bool = False

    def concerns(self, topology: str) -> bool:
        """Whether it may be of that topology (a name, or an id of Storm's)."""
        return self.topology in ("", topology, name_of_topology(topology))
