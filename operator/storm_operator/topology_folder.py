"""The folder of StormTopology files that standalone mode follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from storm_operator.adapters.resources import SUFFIXES, InvalidResource, UnreadableResource, read_topology_file
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.said_once import SaidOnce

Say = Callable[[str], None]


@dataclass(slots=True)
class TopologyFolder:
    """StormTopology files of one folder, read again when they change. A file that is wrong keeps its last good spec."""

    folder: Path
    say: Say
    nimbus: tuple[str, ...] = ()
    """Addresses of the Nimbus that is managed; files that name another are not for us. Empty: any."""
    specs_by_file: dict[Path, TopologySpec] = field(default_factory=dict)
    versions: dict[Path, tuple[int, int]] = field(default_factory=dict)
    reads: int = 0
    said: SaidOnce = field(default_factory=SaidOnce)

    def read(self) -> dict[str, TopologySpec]:
        """The specs by topology name, as of now. Files of a name that another has are refused."""
        self.reads += 1
        try:
            files = {path for path in self.folder.iterdir() if path.suffix in SUFFIXES}
        except OSError as error:
            self._say_once(f"{self.folder} cannot be read ({error}); what it described stays in use")
            return {spec.name: spec for spec in self.specs_by_file.values()}
        for gone in {*self.versions, *self.specs_by_file} - files:
            spec = self.specs_by_file.pop(gone, None)
            self.versions.pop(gone, None)
            if spec is not None:
                self.say(f"{spec.name}: {gone.name} is gone; no longer managed, and left running if it runs")
        for path in sorted(files):
            self._read_if_changed(path)
        return {spec.name: spec for spec in self.specs_by_file.values()}

    def _read_if_changed(self, path: Path) -> None:
        try:
            stat = path.stat()
            version = (stat.st_mtime_ns, stat.st_size)
            if self.versions.get(path) == version:
                return
            self.versions[path] = version
            spec = read_topology_file(path)
        except FileNotFoundError:
            return
        except UnreadableResource as error:
            self._keep_unread(path, str(error))
            return
        except OSError as error:
            self._keep_unread(path, f"{path.name}: cannot be read: {error.strerror}")
            return
        except InvalidResource as error:
            self.say(f"{error}{self._what_stays(path)}")
            return
        if spec.nimbus is not None and self.nimbus and spec.nimbus not in self.nimbus:
            self.say(
                f"{path.name}: spec.nimbus is {spec.nimbus}, not the {', '.join(self.nimbus)} managed here; ignored"
            )
            self.specs_by_file.pop(path, None)
            return
        owner = next((p for p, s in self.specs_by_file.items() if s.name == spec.name and p != path), None)
        if owner is not None:
            del self.versions[path]  # looked at again in each pass: the other file may go
            self.specs_by_file.pop(path, None)  # what it described before it took that name
            self._say_once(f"{path.name}: topology {spec.name!r} is already described by {owner.name}; it is ignored")
            return
        if path in self.specs_by_file:
            self.say(f"{spec.name}: {path.name} has changed and is followed")
        self.specs_by_file[path] = spec

    def _keep_unread(self, path: Path, why: str) -> None:
        """It is read again in each pass: rights, or a disk, may change and leave the file as it is."""
        self.versions.pop(path, None)
        self._say_once(f"{why}{self._what_stays(path)}")

    def _what_stays(self, path: Path) -> str:
        return "; its last good version stays in use" if path in self.specs_by_file else ""

    def _say_once(self, sentence: str) -> None:
        if self.said.is_new(sentence, self.reads):
            self.say(sentence)
