"""What a terminal is told round after round, and shows once."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class SaidOnce:
    """The sentences of the last round in which there were any, and of the present one: these are not new."""

    round_number: int = 0
    before: frozenset[str] = frozenset()
    now: set[str] = field(default_factory=set)

    def is_new(self, sentence: str, round_number: int) -> bool:
        """Whether `sentence` is to be said in that round; it counts as said then."""
        if round_number != self.round_number:
            self.round_number, self.before, self.now = round_number, frozenset(self.now), set()
        is_new = sentence not in self.before and sentence not in self.now
        self.now.add(sentence)
        return is_new
