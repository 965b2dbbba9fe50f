"""How Storm's shuffle would share the tuples of a component under another assignment.

Shuffle and local-or-shuffle send to executors of the own worker where there are any, else to those of the own
supervisor, else to all alike (`LoadAwareShuffleGrouping`, unless `topology.disable.loadaware.messaging`). So who is
placed beside a sender gets its tuples, and the CPU that they take, and who was beside it loses them: a plan by the
rates of the assignment in force is a plan for shares that it ends itself.

What is measured stays where an assignment changes nothing: a sender with the same receivers in reach sends as it did,
and a component that was seen to send far off although receivers are in reach (load-aware messaging is off, or their
queues are full) is taken to go on so. Fields, all, direct, ... go by keys: what a receiver gets is in proportion to
what the sender has to send.

Local-or-shuffle knows those of its own worker alone where there are any, however full they are and whatever
load-aware messaging does (`GrouperFactory`): what they would need beyond a thread, nobody else takes off them
(`Demand.beyond_thread_millicores`).

Limits: where a receiver in reach of shuffle would need more than a thread has, its queue fills, upon which Storm shares
among all; that is taken to be alike, unless those in reach are full now and hardly anybody else gets any: queues take
long to fill to four fifths, and max spout pending may keep them from it. CPU goes with all tuples that a component
receives, whatever those of each input cost. Topologies with cycles, and those too large for it, keep the rates of now.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

import numpy as np

from storm_operator.core.arrays import Flags, Floats
from storm_operator.core.cpu_demand import Demand
from storm_operator.core.model import ACKER_COMPONENT, Assignment, Executor, Topology, WorkerSlot
from storm_operator.core.shuffle_reach import NearFirst, Seats, in_reach, near_first, seats_of, spread, with_own_worker
from storm_operator.core.snapshot import ClusterSnapshot

OWN_WORKER_ONLY = frozenset({"local_or_shuffle", "localOrShuffle"})
"""Where a receiver is in the sender's worker."""
LOCAL_FIRST = OWN_WORKER_ONLY | {"shuffle"}

MOST_EXECUTORS, MOST_PAIRS = 1_000, 40_000
"""Of a topology, and of its neighbouring components: above, to share anew would take longer than to plan."""

THREAD_MILLICORES = 1000.0
"""An executor is one thread."""
FULL_MILLICORES = 900.0
"""Who needs nearly all of a core has a queue."""

TRICKLE = 0.05
"""Of what an executor of the component receives: who receives less does not tell what it would send of more."""

LEAST_CHANGE = 0.02
"""Of what an executor received: less is rounding."""

Pair = tuple[str, str]
Blocks = Mapping[Pair, Floats]
"""Tuples per second between two components: a row for each sender, a column for each receiver."""


@dataclass(frozen=True, slots=True)
class ShuffleShares:
    """What assignments would make of the rates and needs that are known under the one in force."""

    snapshot: ClusterSnapshot
    demand: Demand
    _flows: tuple[_Flows, ...]

    @classmethod
    def of(cls, snapshot: ClusterSnapshot, demand: Demand, topology_ids: Collection[str]) -> ShuffleShares:
        """`demand` is as executors share the tuples now; only the topologies named share theirs anew."""
        asked = (topology for topology in snapshot.topologies if topology.id in topology_ids)
        needs = demand.of_now().room_millicores
        flows = (_flows_of(topology, snapshot, needs) for topology in asked)
        return cls(snapshot, demand, tuple(found for found in flows if found is not None))

    def under(self, assignment: Assignment) -> tuple[ClusterSnapshot, Demand]:
        """The snapshot with the traffic that `assignment` brings, and the demand; the very same where it changes none.

        `assignment` covers all executors that run; the snapshot's own stays the one in force. In the demand, needs
        and room go with the tuples, to what a thread has at most; what confined tuples need beyond that is told apart.
        What is given (`Demand.millicores`) is never less.
        """
        shared = [(flows, _shared_anew(flows, assignment)) for flows in self._flows]
        changed = [(flows, blocks) for flows, blocks in shared if blocks is not flows.blocks]
        if not changed:
            return self.snapshot, self.demand
        traffic = self.snapshot.traffic.with_changes(
            (flows.executors[source], flows.executors[target], block - flows.blocks[source, target])
            for flows, blocks in changed
            for (source, target), block in blocks.items()
            if block is not flows.blocks[source, target]
        )
        return replace(self.snapshot, traffic=traffic), _demand_anew(self.demand, changed)

    def of_topology(self, topology_id: str) -> ShuffleShares:
        """The same of one topology alone: `under` then takes and gives what concerns its executors, and no others."""
        snapshot, slot_of = self.snapshot, self.snapshot.assignment.slot_of
        (topology,) = (one for one in snapshot.topologies if one.id == topology_id)
        alone = replace(
            snapshot,
            topologies=(topology,),
            traffic=snapshot.traffic.within(topology_id),
            assignment=Assignment({e: slot_of[e] for e in topology.executors if e in slot_of}),
        )
        own = tuple(flows for flows in self._flows if flows.topology_id == topology_id)
        return ShuffleShares(alone, self.demand.among(topology.executors), own)


@dataclass(frozen=True, slots=True)
class _Flows:
    """What a topology's components send each other under the assignment in force."""

    topology_id: str
    executors: Mapping[str, tuple[Executor, ...]]
    """By component, senders before receivers."""
    slot_of: Mapping[Executor, WorkerSlot]
    """Where they live."""
    blocks: Blocks
    near_first: Mapping[Pair, NearFirst]
    received: Mapping[str, Floats]
    """Tuples per second that each executor of the component receives."""
    needs: Mapping[str, Floats]
    """Millicores of each executor by component; 0 where unknown."""

    def inputs(self, name: str) -> list[Pair]:
        return [pair for pair in self.blocks if pair[1] == name]

    def may_be_confined_to(self, name: str) -> bool:
        """Whether there are senders that may send to no others, however full those in reach are."""
        known = [self.near_first[pair] for pair in self.inputs(name) if pair in self.near_first]
        return any(one.is_own_worker_only or one.stays_when_full for one in known)

    def received_under(self, blocks: Blocks, name: str) -> Floats:
        """As `received`, with other `blocks`."""
        inputs = self.inputs(name)
        if all(blocks[pair] is self.blocks[pair] for pair in inputs):
            return self.received[name]
        return _received(blocks, name, len(self.executors[name]))


def _received(blocks: Blocks, name: str, count: int) -> Floats:
    total = np.zeros(count)
    for (_, to), block in blocks.items():
        if to == name:
            total += block.sum(axis=0)
    return total


def _flows_of(topology: Topology, snapshot: ClusterSnapshot, needs: Mapping[Executor, float]) -> _Flows | None:
    """None where no placement changes who gets what, or the topology is one that keeps its rates."""
    groupings: dict[Pair, set[str]] = {}
    for edge in topology.edges:
        if edge.source != ACKER_COMPONENT:
            groupings.setdefault((edge.source, edge.target), set()).add(edge.grouping)
    local_first = [pair for pair, names in groupings.items() if names <= LOCAL_FIRST]
    order = _in_order_of_flow(groupings)
    if not local_first or not order:
        return None
    executors = {name: topology.executors_of(name) for name in order}
    pairs = sum(len(executors[source]) * len(executors[target]) for source, target in groupings)
    if pairs > MOST_PAIRS or len(topology.executors) > MOST_EXECUTORS:
        return None
    whole = snapshot.traffic.block(topology.executors, topology.executors)
    row_of = {executor: row for row, executor in enumerate(topology.executors)}
    rows_of = {name: [row_of[executor] for executor in own] for name, own in executors.items()}
    blocks = {(source, target): whole[np.ix_(rows_of[source], rows_of[target])] for source, target in groupings}
    own_needs = {name: np.array([needs.get(executor, 0.0) for executor in own]) for name, own in executors.items()}
    in_force = snapshot.assignment.slot_of
    seats = seats_of(executors, in_force)
    return _Flows(
        topology_id=topology.id,
        executors=executors,
        slot_of={e: in_force[e] for own in executors.values() for e in own if e in in_force},
        blocks=blocks,
        near_first={
            (source, target): near_first(
                blocks[source, target],
                seats[source],
                seats[target],
                tasks=_tasks(executors[target]),
                full=own_needs[target] >= FULL_MILLICORES,
                is_own_worker_only=groupings[source, target] <= OWN_WORKER_ONLY,
            )
            for source, target in local_first
        },
        received={name: _received(blocks, name, len(own)) for name, own in executors.items()},
        needs=own_needs,
    )


def _in_order_of_flow(pairs: Mapping[Pair, object]) -> tuple[str, ...]:
    """The components with senders first; none where tuples go in circles."""
    senders: dict[str, set[str]] = {}
    for source, target in pairs:
        senders.setdefault(target, set()).add(source)
    try:
        return tuple(TopologicalSorter(senders).static_order())
    except CycleError:
        return ()


def _shared_anew(flows: _Flows, then: Assignment) -> Blocks:
    """Component after component as tuples flow; `flows.blocks` itself where nobody receives anything else."""
    slot_of = then.slot_of
    if all(flows.slot_of.get(e) == slot_of.get(e) for own in flows.executors.values() for e in own):
        return flows.blocks
    seats = seats_of(flows.executors, slot_of)
    blocks = dict(flows.blocks)
    changed = False
    for name in flows.executors:
        for pair in [pair for pair in flows.inputs(name) if pair in flows.near_first]:
            shared = _share(flows, blocks, pair, seats)
            changed |= shared is not blocks[pair]
            blocks[pair] = shared
        before, after = flows.received[name], flows.received_under(blocks, name)
        if _differ(before, after):
            changed = True
            for pair in [pair for pair in blocks if pair[0] == name]:
                blocks[pair] = _sent_on(blocks[pair], before, after)
    return blocks if changed else flows.blocks


def _share(flows: _Flows, blocks: Blocks, pair: Pair, seats: Mapping[str, Seats]) -> Floats:
    """What `pair` exchanges with those in reach; the block itself where each sender has them in reach already."""
    block, known = blocks[pair], flows.near_first[pair]
    senders, receivers = seats[pair[0]], seats[pair[1]]
    reach = in_reach(senders, receivers, of_host=known.keeps_to_reach)
    sent = block.sum(axis=1)
    other = ((reach != known.reach).any(axis=1) | known.is_new) & (sent > 0.0)
    if not other.any() or not (known.keeps_to_reach or known.is_own_worker_only):
        return block
    near = np.where(other[:, None], spread(sent, reach, known.tasks), block)
    needs, before = flows.needs[pair[1]], flows.received[pair[1]]
    needed = _gone_with_tuples(needs, before, flows.received_under({**blocks, pair: near}, pair[1]))
    if needed.max() <= max(FULL_MILLICORES, needs.max()):
        return near
    confined = known.stays_when_full | (with_own_worker(senders, receivers) & known.is_own_worker_only)
    widened: Flags = reach | ~confined[:, None]
    return np.where(other[:, None], spread(sent, widened, known.tasks), block)


def _sent_on(block: Floats, before: Floats, after: Floats) -> Floats:
    """Who receives more sends more: each executor what it sent for each tuple; who received hardly any as all do."""
    of_all = block.sum(axis=0) / max(float(before.sum()), 1e-9)
    tells = (before > TRICKLE * before.mean())[:, None]
    for_each: Floats = np.where(tells, block / np.where(tells, before[:, None], 1.0), of_all)
    sent: Floats = for_each * after[:, None]
    return sent


def _gone_with_tuples(values: Floats, before: Floats, after: Floats) -> Floats:
    """Millicores in proportion to the tuples received: no more and no less altogether."""
    received = float(before.sum())
    return values if received <= 0.0 else after * float(values.sum()) / received


def _demand_anew(demand: Demand, changed: Sequence[tuple[_Flows, Blocks]]) -> Demand:
    given, needs, room = (dict(part) for part in (demand.millicores, demand.raw_millicores, demand.room_millicores))
    bare, coming = demand.of_now().room_millicores, demand.of_coming().room_millicores
    expected = dict(demand.coming_millicores)
    beyond: dict[Executor, float] = {}
    for flows, blocks in changed:
        for name, executors in flows.executors.items():
            before, after = flows.received[name], flows.received_under(blocks, name)
            if not _differ(before, after) or any(executor not in bare for executor in executors):
                continue
            for old, new in ((bare, needs), (demand.room_millicores, room), (coming, expected)):
                values = _gone_with_tuples(np.array([old[executor] for executor in executors]), before, after)
                new.update(zip(executors, np.minimum(values, THREAD_MILLICORES).tolist(), strict=True))
            given.update((executor, max(given[executor], needs[executor])) for executor in executors)
            if flows.may_be_confined_to(name):
                beyond |= _beyond_thread([bare[executor] for executor in executors], executors, before, after)
    return replace(
        demand,
        millicores=given,
        raw_millicores=needs,
        room_millicores=room,
        coming_millicores=expected if demand.coming_millicores else {},
        beyond_thread_millicores=beyond,
    )


def _beyond_thread(
    needs: Sequence[float], executors: Sequence[Executor], before: Floats, after: Floats
) -> Mapping[Executor, float]:
    """What each would need beyond nearly all of a core; of who needs more already, beyond that."""
    own = np.array(needs)
    lacking = _gone_with_tuples(own, before, after) - np.maximum(own, FULL_MILLICORES)
    return {executor: lack for executor, lack in zip(executors, lacking.tolist(), strict=True) if lack > 0.0}


def _differ(before: Floats, after: Floats) -> bool:
    return bool((np.abs(after - before) > LEAST_CHANGE * np.maximum(before, after)).any())


def _tasks(executors: tuple[Executor, ...]) -> Floats:
    return np.array([executor.task_end - executor.task_start + 1 for executor in executors], dtype=np.float64)
