"""A StormTopology resource as a value: what to run, and the settings under which it is managed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from storm_operator.core.model import read_only
from storm_operator.core.settings import ResourceSettings, SchedulingSettings


@dataclass(frozen=True, slots=True)
class JarSource:
    """Run `main_class` of the jar at `path` with `args`, as `storm jar` does."""

    path: str
    main_class: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FluxSource:
    """Submit a Flux definition, either inlined (`definition`, YAML text) or in a file (`path`)."""

    jar: str
    definition: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class AdoptSource:
    """Manage a topology that someone else submitted."""


TopologySource = JarSource | FluxSource | AdoptSource


@dataclass(frozen=True, slots=True)
class StatefulSpec:
    """The user's word on which components hold state; what neither list names is found from the topology."""

    stateful: tuple[str, ...] = ()
    stateless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopologySpec:
    """One StormTopology. `name` is the topology's name in Storm."""

    name: str
    source: TopologySource
    config: Mapping[str, object] = field(default_factory=dict)
    stateful: StatefulSpec = field(default_factory=StatefulSpec)
    scheduling: SchedulingSettings = field(default_factory=SchedulingSettings)
    resources: ResourceSettings = field(default_factory=ResourceSettings)
    suspend: bool = False
    nimbus: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", read_only(self.config))
