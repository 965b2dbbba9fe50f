"""The folder of StormTopology files that standalone mode follows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

from storm_operator.adapters.resources import InvalidResource, UnreadableResource, files_of, read_topology_file
from storm_operator.core.nimbus_name import nimbus_name
from storm_operator.core.refusal import Refusal
from storm_operator.core.topology_spec import PAUSED, PAUSED_ANNOTATION, TopologySpec
from storm_operator.said_once import SaidOnce

Say = Callable[[str], None]
SETTLED_SECONDS = 1.0
"""A file that was written less long ago may be half of one, though a valid one: an editor or `cp` is still at it."""
NANOSECONDS = 1e-9


@dataclass(frozen=True, slots=True)
class Version:
    """What tells two states of a file apart. `written_ns` is when it was last written, since 1970."""

    written_ns: int
    size: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Version:
        """As the file is now. OSError where it cannot be looked at."""
        stat = path.stat()
        return cls(stat.st_mtime_ns, stat.st_size, stat.st_ino)


class Reading(Enum):
    """What has come of reading a file again."""

    NOTHING_NEW = auto()
    CHANGED = auto()
    MENDED = auto()
    """It could not be followed, and says what it said before that."""


@dataclass(slots=True)
class TopologyFolder:
    """StormTopology files of one folder, read again when they change. A file that is wrong keeps its last good spec."""

    folder: Path
    say: Say
    nimbus: tuple[str, ...] = ()
    """Addresses of the Nimbus that is managed; files that name another are not for us. Empty: any."""
    specs_by_file: dict[Path, TopologySpec] = field(default_factory=dict)
    """The last good spec of each file that is for us."""
    file_of: dict[str, Path] = field(default_factory=dict)
    """By topology name: the file that is followed."""
    refused: dict[Path, Refusal] = field(default_factory=dict)
    """The files that are not followed as they stand, and why."""
    trouble: str = ""
    """Why the folder itself could not be read when it was read last, if so."""
    versions: dict[Path, Version] = field(default_factory=dict)
    clock: Callable[[], float] = time.time
    """Seconds since 1970."""
    pause: Callable[[float], None] = time.sleep
    """Waits so many seconds."""
    reads: int = 0
    said: SaidOnce = field(default_factory=SaidOnce)

    def read(self) -> dict[str, TopologySpec]:
        """The specs by topology name, as of now (see `files_followed`); paused ones are left out.

        Where a file was written a moment ago, it waits for that moment; one that is then another is left for later.
        """
        self.reads += 1
        try:
            files = set(files_of(self.folder))
        except OSError as error:
            self.trouble = f"{self.folder} cannot be read ({error}); what it described stays in use"
            self._say_once(self.trouble)
            return self._followed()
        self.trouble = ""
        for gone in {*self.versions, *self.specs_by_file, *self.refused} - files:
            self.specs_by_file.pop(gone, None)
            self.versions.pop(gone, None)
            self.refused.pop(gone, None)
        whole = files - self._still_written(files)
        readings = {path: self._read_if_changed(path) for path in sorted(whole)}
        before, self.file_of = self.file_of, files_followed(self.specs_by_file, self.file_of)
        self._say_what_became_of(before, files)
        for path in sorted(self.file_of.values()):
            self._say_how_it_is_followed(path, readings.get(path, Reading.NOTHING_NEW), path in before.values())
        return self._followed()

    def refusals(self) -> tuple[Refusal, ...]:
        """Why files were not followed as they stand, or are paused, when they were read last."""
        folder = [Refusal(self.trouble)] if self.trouble else []
        wrong = [
            Refusal(f"{why.sentence}{self._what_stays(path)}", why.topology or self._described_before(path))
            for path, why in sorted(self.refused.items())
        ]
        return (*folder, *wrong, *self._ignored(), *self._paused())

    def is_empty(self) -> bool:
        """Whether there is no file in it that could have a topology; False where it cannot be read."""
        try:
            return not files_of(self.folder)
        except OSError:
            return False

    def _followed(self) -> dict[str, TopologySpec]:
        specs = {name: self.specs_by_file[path] for name, path in self.file_of.items()}
        return {name: spec for name, spec in specs.items() if not spec.is_paused}

    def _say_how_it_is_followed(self, path: Path, reading: Reading, is_known: bool) -> None:
        spec = self.specs_by_file[path]
        if reading is Reading.NOTHING_NEW:
            return
        if spec.is_paused:
            self.say(f"{spec.name}: paused by the annotation {PAUSED_ANNOTATION} in {path.name}: left as it is")
        elif reading is Reading.MENDED:
            self.say(f"{spec.name}: {path.name} can be followed again, and says what it said before")
        elif is_known:
            self.say(f"{spec.name}: {path.name} has changed and is followed")

    def _say_what_became_of(self, before: Mapping[str, Path], files: AbstractSet[Path]) -> None:
        for name, path in sorted(before.items()):
            present = self.file_of.get(name)
            why = f"{name}: {path.name} {'no longer describes it' if path in files else 'is gone'}"
            if present is None:
                self.say(f"{why}; no longer managed, and left running where it runs")
            elif present != path:
                self.say(f"{why}; {present.name} describes it, and is followed")
        for ignored in self._ignored():
            self._say_once(ignored.sentence)

    def _ignored(self) -> list[Refusal]:
        """One for each file beside one that is followed, and for each topology of which none is."""
        found = []
        for name, files in files_by_name(self.specs_by_file).items():
            owner = self.file_of.get(name)
            if owner is None:
                several = ", ".join(path.name for path in files)
                words = f"{several}: all describe topology {name!r}; none is followed until one is left"
                found.append(Refusal(words, name))
                continue
            beside = f"topology {name!r} is already described by {owner.name}"
            ignored = [path.name for path in files if path != owner]
            found += [Refusal(f"{one}: {beside}; {one} is ignored", name) for one in ignored]
        return found

    def _paused(self) -> list[Refusal]:
        files = ((path, self.specs_by_file[path]) for path in sorted(self.file_of.values()))
        return [Refusal(f"{path.name}: {PAUSED}", spec.name, is_pause=True) for path, spec in files if spec.is_paused]

    def _still_written(self, files: Iterable[Path]) -> set[Path]:
        """Those that change while they are looked at."""
        latest = self.clock() - SETTLED_SECONDS
        young = {
            path: version
            for path in files
            if (version := version_of(path)) is not None
            and version != self.versions.get(path)
            and version.written_ns * NANOSECONDS > latest
        }
        if not young:
            return set()
        self.pause(SETTLED_SECONDS)
        changing = {path for path, version in young.items() if version_of(path) != version}
        for path in sorted(changing):
            self._say_once(f"{path.name}: it is still being written, and is read later{self._what_stays(path)}")
        return changing

    def _read_if_changed(self, path: Path) -> Reading:
        try:
            version = Version.of(path)
            if self.versions.get(path) == version:
                return Reading.NOTHING_NEW
            self.versions[path] = version
            spec = read_topology_file(path)
            if Version.of(path) != version:  # somebody has begun to write it: the next look is at what comes of that
                return Reading.NOTHING_NEW
        except FileNotFoundError:
            if path.is_symlink():  # else it was there a moment ago
                self._keep_unread(path, f"{path.name}: the file that it links to is not there")
            return Reading.NOTHING_NEW
        except UnreadableResource as error:
            self._keep_unread(path, str(error))
            return Reading.NOTHING_NEW
        except OSError as error:
            self._keep_unread(path, f"{path.name}: cannot be read: {error.strerror}")
            return Reading.NOTHING_NEW
        except InvalidResource as error:
            self.refused[path] = Refusal(str(error), error.topology)
            self.say(f"{error}{self._what_stays(path)}")
            return Reading.NOTHING_NEW
        was_refused = self.refused.pop(path, None) is not None
        if spec.nimbus is not None and self.nimbus and not self._is_managed_here(spec.nimbus):
            self.say(
                f"{path.name}: spec.nimbus is {spec.nimbus}, not the {', '.join(self.nimbus)} managed here; ignored"
            )
            self.specs_by_file.pop(path, None)
            return Reading.NOTHING_NEW
        before, self.specs_by_file[path] = self.specs_by_file.get(path), spec
        if repr(spec) != repr(before):  # which tells 1 from true and from 1.0, as Storm does
            return Reading.CHANGED
        return Reading.MENDED if was_refused else Reading.NOTHING_NEW

    def _is_managed_here(self, nimbus: str) -> bool:
        return nimbus_name(nimbus, "") in {nimbus_name(one, "") for one in self.nimbus}

    def _keep_unread(self, path: Path, why: str) -> None:
        """It is read again in each pass: rights, or a disk, may change and leave the file as it is."""
        self.versions.pop(path, None)
        self.refused[path] = Refusal(why)
        self._say_once(f"{why}{self._what_stays(path)}")

    def _described_before(self, path: Path) -> str:
        """The topology that the last good version describes; empty where there is none."""
        return self.specs_by_file[path].name if path in self.specs_by_file else ""

    def _what_stays(self, path: Path) -> str:
        return "; its last good version stays in use" if path in self.file_of.values() else ""

    def _say_once(self, sentence: str) -> None:
        if self.said.is_new(sentence, self.reads):
            self.say(sentence)


def version_of(path: Path) -> Version | None:
    """None where the file is gone or cannot be looked at."""
    try:
        return Version.of(path)
    except OSError:
        return None


def files_followed(specs: Mapping[Path, TopologySpec], before: Mapping[str, Path]) -> dict[str, Path]:
    """By topology name: the file that was followed `before` while it still describes it, else the only one. Pure.

    Of several none: which of them what runs was submitted from nobody knows, and the wrong one would replace it.
    `specs` are those of all files.
    """
    followed = {}
    for name, files in files_by_name(specs).items():
        if before.get(name) in files:
            followed[name] = before[name]
        elif len(files) == 1:
            followed[name] = files[0]
    return followed


def files_by_name(specs: Mapping[Path, TopologySpec]) -> dict[str, list[Path]]:
    """By topology name, the files that describe it, sorted."""
    found: dict[str, list[Path]] = {}
    for path, spec in sorted(specs.items()):
        found.setdefault(spec.name, []).append(path)
    return found
