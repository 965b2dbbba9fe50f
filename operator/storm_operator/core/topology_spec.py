"""A StormTopology resource as a value: what to run, and the settings under which it is managed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from storm_operator.core.model import read_only
from storm_operator.core.settings import ResourceSettings, SchedulingSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class JarOrigin:
    """How a jar comes to where it is submitted. With nothing given its path is in the Storm image (standalone: here).

    At most one of `url` (with `sha256`, in lower case), `claim` (the PersistentVolumeClaim that the path is in,
    relative to its root) and `image` (that the path is in) is given.
    """

    url: str | None = None
    sha256: str | None = None
    claim: str | None = None
    image: str | None = None


@dataclass(frozen=True, slots=True)
class JarSource(JarOrigin):
    """Run `main_class` of the jar at `path` (empty where `url` is given) with `args`, as `storm jar` does."""

    path: str
    main_class: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigMapKey:
    """A text in a ConfigMap of the StormTopology's namespace."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class FluxSource(JarOrigin):
    """Submit a Flux definition: inlined (`definition`, YAML text), in a file (`path`) or in a ConfigMap.

    `jar` is the path of the jar with Flux and the definition's classes; empty where `url` is given.
    """

    jar: str
    definition: str | None = None
    path: str | None = None
    config_map: ConfigMapKey | None = None


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
class ScaleLimits:
    """How many supervisor pods there may be; `stateful_set` is theirs, None: found by their labels."""

    minimum: int
    maximum: int
    stateful_set: str | None = None


class ParallelismMode(StrEnum):
    """Who chooses how many executors a component has."""

    FIXED = "Fixed"  # the submission, or the spec
    AUTO = "Auto"  # the operator, by load


@dataclass(frozen=True, slots=True)
class ComponentParallelism:
    """Either exactly `executors`, or bounds of which None is open."""

    executors: int | None = None
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class ParallelismSpec:
    """How many executors each component has; one that is not named keeps (Fixed) or may have (Auto) any number.

    `workers` is the number of workers that Storm is asked for; None leaves it as submitted.
    """

    mode: ParallelismMode = ParallelismMode.FIXED
    components: Mapping[str, ComponentParallelism] = field(default_factory=dict)
    workers: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", read_only(self.components))


PAUSED_ANNOTATION = "storm-operator.dev/paused"
"""Of a StormTopology's metadata: with `true` its topology is left as it is."""
PAUSED = "paused by annotation: left as it is"


class DeletionPolicy(StrEnum):
    """What becomes of a topology when its StormTopology is deleted."""

    KILL = "Kill"
    LEAVE = "Leave"


@dataclass(frozen=True, slots=True)
class TopologySpec:
    """One StormTopology. `name` is the topology's name in Storm.

    `supervisors` is None where their number must not be touched. Of two topologies on a supervisor that is too small
    for both, the one with the higher `priority` gets its CPU first (`served_first`). `deletion_policy` is None where
    the source decides (see `dies_with_resource`). One that `is_paused` is not managed for the time being.
    """

    name: str
    source: TopologySource
    config: Mapping[str, object] = field(default_factory=dict)
    stateful: StatefulSpec = field(default_factory=StatefulSpec)
    scheduling: SchedulingSettings = field(default_factory=SchedulingSettings)
    resources: ResourceSettings = field(default_factory=ResourceSettings)
    suspend: bool = False
    nimbus: str | None = None
    supervisors: ScaleLimits | None = None
    parallelism: ParallelismSpec = field(default_factory=ParallelismSpec)
    priority: int = 0
    kill_wait_seconds: int = 5
    deletion_policy: DeletionPolicy | None = None
    rebalance_history_limit: int = 10
    learned_profile: ConfigMapKey | None = None
    is_paused: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", read_only(self.config))

    @property
    def dies_with_resource(self) -> bool:
        """Whether the topology is killed when its StormTopology is deleted."""
        if self.deletion_policy is None:
            return not isinstance(self.source, AdoptSource)
        return self.deletion_policy is DeletionPolicy.KILL
