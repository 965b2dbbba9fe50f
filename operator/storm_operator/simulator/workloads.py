"""The papers' own workloads, parametrised; where a real topology exists (examples/workloads) components, groupings and
the skew of keys are the same. Tasks are as many as executors where they are not given.

Paper numbers are those of the project's docs: 000 Aniello et al., 001 Cardellini et al., 004 Liu et al.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from storm_operator.core.model import ComponentKind, read_only
from storm_operator.simulator.load import Constant, LoadShape, RandomLevels, Triangle
from storm_operator.simulator.model import Grouping, SimulatedComponent, SimulatedEdge, SimulatedTopology

SPOUT, BOLT = ComponentKind.SPOUT, ComponentKind.BOLT
WORDS_PER_SENTENCE = 5
WORDS = 1000
HTTP_PARTS = ("country", "isp", "prefix")
Numbers = Mapping[str, int]
Millis = Mapping[str, float]
NONE_GIVEN: Numbers = read_only({})
NO_CPU: Millis = read_only({})

LIU_REGULAR = Triangle(low=2_000.0, high=26_000.0)
"""Figure 6 of 004: the mean of its acked tuples is 14,100 per second."""
LIU_RANDOM = RandomLevels(tuples_per_second_each=1_000.0)
"""Figure 9 of 004: 1 to 25 Kafka producers."""


def word_count(
    load: LoadShape | float = 100.0,
    parallelism: Numbers = NONE_GIVEN,
    cpu_ms: Millis = NO_CPU,
    topology_id: str = "wordcount-1",
    name: str = "wordcount",
    tasks: Numbers = NONE_GIVEN,
    **settings: object,
) -> SimulatedTopology:
    """sentences -> split (shuffle) -> count (fields, stateful); five words a sentence, some much more frequent."""
    executors = {"sentences": 1, "split": 2, "count": 2, **parallelism}
    words = [f"word{number}" for number in range(WORDS)]
    share_of = [((n + 1) / WORDS) ** (1 / 3) - (n / WORDS) ** (1 / 3) for n in range(WORDS)]
    return _topology(
        topology_id,
        name,
        [
            _spout("sentences", executors, cpu_ms, _shape(load), tasks),
            _bolt("split", executors, cpu_ms, tasks),
            _bolt("count", executors, cpu_ms, tasks, stateful=True),
        ],
        [
            SimulatedEdge("sentences", "split"),
            SimulatedEdge(
                "split",
                "count",
                Grouping.FIELDS,
                WORDS_PER_SENTENCE,
                shares=fields_shares(words, share_of, tasks.get("count", executors["count"])),
            ),
        ],
        settings,
    )


def http_monitor(
    load: LoadShape | float = 200.0,
    parallelism: Numbers = NONE_GIVEN,
    cpu_ms: Millis = NO_CPU,
    topology_id: str = "http-monitor-1",
    name: str = "http-monitor",
    tasks: Numbers = NONE_GIVEN,
    **settings: object,
) -> SimulatedTopology:
    """004, figure 5: requests -> retrieve -> {country, isp, prefix} -> a statistic each (fields, stateful) -> alarm."""
    branches = [component for part in HTTP_PARTS for component in (part, f"stat-{part}")]
    executors = {"requests": 1, "retrieve": 2, **dict.fromkeys(branches, 2), "alarm": 1, **parallelism}
    components = [
        _spout("requests", executors, cpu_ms, _shape(load), tasks),
        _bolt("retrieve", executors, cpu_ms, tasks),
    ]
    edges = [SimulatedEdge("requests", "retrieve")]
    for part in HTTP_PARTS:
        keys, shares = _http_keys(part)
        stat = f"stat-{part}"
        components += [_bolt(part, executors, cpu_ms, tasks), _bolt(stat, executors, cpu_ms, tasks, stateful=True)]
        edges += [
            SimulatedEdge("retrieve", part),
            SimulatedEdge(
                part, stat, Grouping.FIELDS, shares=fields_shares(keys, shares, tasks.get(stat, executors[stat]))
            ),
            SimulatedEdge(stat, "alarm", tuples_per_tuple=0.01),
        ]
    return _topology(topology_id, name, [*components, _bolt("alarm", executors, cpu_ms, tasks)], edges, settings)


def reference_chain(
    load: LoadShape | float = 400.0,
    stages: int = 7,
    parallelism: Numbers = NONE_GIVEN,
    cpu_ms: Millis = NO_CPU,
    variance: float = 0.2,
    topology_id: str = "reference-chain-1",
    name: str = "reference-chain",
    tasks: Numbers = NONE_GIVEN,
    **settings: object,
) -> SimulatedTopology:
    """000, section 4.1: a spout, simple (shuffle) and stateful (fields) bolts in turn, last a bolt that acks.

    Parallelism, CPU and tasks go by kind. A bolt passes half of the values on and sends a constant of its own for the
    others.
    """
    executors = {"spout": 4, "simple": 3, "stateful": 2, "ack": 3, **parallelism}
    kinds = ["spout", *("simple" if stage % 2 == 0 else "stateful" for stage in range(2, stages)), "ack"]
    names = [f"{kind}{stage}" for stage, kind in enumerate(kinds, start=1)]
    components = []
    for kind, component in zip(kinds, names, strict=True):
        shape = _shape(load) if kind == "spout" else None
        components.append(
            SimulatedComponent(
                component,
                SPOUT if kind == "spout" else BOLT,
                executors[kind],
                tasks.get(kind),
                cpu_ms_per_tuple=cpu_ms.get(kind, 0.0),
                stateful=kind == "stateful",
                load=shape,
                load_spread=variance if kind == "spout" else 0.0,
            )
        )
    edges = []
    for stage, (source, target) in enumerate(itertools.pairwise(names), start=2):
        simple = stage % 2 == 0
        grouping = Grouping.SHUFFLE if simple else Grouping.FIELDS
        edges.append(SimulatedEdge(source, target, grouping, pinned_share=0.0 if simple else 0.5))
    return _topology(topology_id, name, components, edges, settings)


def grand_challenge_query1(
    load: LoadShape | float = 6_400.0,
    parallelism: Numbers = NONE_GIVEN,
    cpu_ms: Millis = NO_CPU,
    topology_id: str = "grand-challenge-query1-1",
    name: str = "grand-challenge-query1",
    tasks: Numbers = NONE_GIVEN,
    **settings: object,
) -> SimulatedTopology:
    """000, section 4.2: 32 sensors at 200 Hz -> speed (shuffle) -> analysis (fields by player, stateful)."""
    executors = {"sensor": 8, "speed": 4, "analysis": 2, **parallelism}
    return _topology(
        topology_id,
        name,
        [
            _spout("sensor", executors, cpu_ms, _shape(load), tasks),
            _bolt("speed", executors, cpu_ms, tasks),
            _bolt("analysis", executors, cpu_ms, tasks, stateful=True),
        ],
        [SimulatedEdge("sensor", "speed"), SimulatedEdge("speed", "analysis", Grouping.FIELDS)],
        settings,
    )


def source_to_consumer(
    load: LoadShape | float = 10.0,
    components: int = 5,
    cpu_ms: float = 5.0,
    topology_id: str = "application-1",
    name: str = "application",
    **settings: object,
) -> SimulatedTopology:
    """001, section 4: a source of 10 tuples/s, five operators one after the other, a consumer; tuples resent once."""
    names = ["source", *(f"operator{number}" for number in range(1, components + 1)), "consumer"]
    parts = [_spout("source", {"source": 1}, {}, _shape(load), {})]
    parts += [_bolt(part, {part: 1}, {part: cpu_ms}, {}) for part in names[1:]]
    edges = [SimulatedEdge(source, target) for source, target in itertools.pairwise(names)]
    return _topology(topology_id, name, parts, edges, {"replays_failed": True, "replays_once": True, **settings})


def fields_shares(keys: Sequence[str], shares: Sequence[float], tasks: int) -> tuple[float, ...]:
    """How fields grouping spreads `keys` of the given frequencies over tasks, by Storm's own hash."""
    of_task = [0.0] * tasks
    for key, share in zip(keys, shares, strict=True):
        of_task[(31 + java_hash(key)) % tasks] += share
    total = sum(of_task)
    return tuple(share / total for share in of_task)


def java_hash(text: str) -> int:
    """java.lang.String.hashCode, as a signed 32-bit number."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _http_keys(part: str) -> tuple[list[str], list[float]]:
    """Classes of destinations and how often they are visited, as HttpMonitor draws them: octets 1..223, cubed."""
    octets = {n + 1: ((n + 1) / 223) ** (1 / 3) - (n / 223) ** (1 / 3) for n in range(223)}
    shares: dict[str, float] = {}
    for octet, share in octets.items():
        for second in range(4):
            key = {"country": f"country-{octet % 40}", "isp": f"isp-{octet % 100}"}.get(part, f"{octet}.{second}/16")
            shares[key] = shares.get(key, 0.0) + share / 4
    return list(shares), list(shares.values())


def _shape(load: LoadShape | float) -> LoadShape:
    return Constant(float(load)) if isinstance(load, int | float) else load


def _spout(name: str, executors: Numbers, cpu_ms: Millis, load: LoadShape, tasks: Numbers) -> SimulatedComponent:
    return SimulatedComponent(name, SPOUT, executors[name], tasks.get(name), cpu_ms.get(name, 0.0), load=load)


def _bolt(name: str, executors: Numbers, cpu_ms: Millis, tasks: Numbers, stateful: bool = False) -> SimulatedComponent:
    return SimulatedComponent(name, BOLT, executors[name], tasks.get(name), cpu_ms.get(name, 0.0), stateful=stateful)


def _topology(
    topology_id: str,
    name: str,
    components: Sequence[SimulatedComponent],
    edges: Sequence[SimulatedEdge],
    settings: Mapping[str, object],
) -> SimulatedTopology:
    return SimulatedTopology(topology_id, name, tuple(components), tuple(edges), **settings)  # type: ignore[arg-type]
