"""A learned profile in a file, read again when it changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from storm_operator.core.learned_profile import NoProfile, ProfileReading
from storm_operator.core.learned_profile_json import read_profile
from storm_operator.core.topology_spec import TopologySpec

IS_NO_PROFILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError, UnicodeDecodeError)
"""Errors that say what is there; others say that nobody knows."""


@dataclass(slots=True)
class ProfileFile:
    """One file for all topologies of a cluster. Implements `loop_ports.ProfileSource`."""

    path: Path
    cluster: str
    _version: tuple[int, int, int] | None = None
    _reading: ProfileReading = NoProfile("the profile was not read yet")

    def read(self, specs: Mapping[str, TopologySpec]) -> Mapping[str, ProfileReading]:
        return dict.fromkeys(specs, self.reading())

    def reading(self) -> ProfileReading:
        """What the file has now."""
        try:
            stat = self.path.stat()
            version = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if version != self._version:
                self._reading = read_profile(self.path.read_text(encoding="utf-8"), self.path.name)
                self._version = version
        except (OSError, UnicodeDecodeError) as error:
            self._version = None
            # A disk that does not answer takes nothing back: what was read is valid for as long as it says itself.
            if isinstance(error, IS_NO_PROFILE) or isinstance(self._reading, NoProfile):
                self._reading = NoProfile(f"{self.path.name} cannot be read: {error}")
        return self._reading
