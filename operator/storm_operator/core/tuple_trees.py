"""How long the tuple trees of one topology are under way, from the delays of its hops.

Hops are between *places*: the executors of one component in one worker. A place's part of a tree is complete when its
own ack has arrived and the trees of all tuples that it sends on are complete; taken as independent of each other, this
gives for C_i, the time from a tuple's arrival at place i,

    P(C_i <= x) = product over components c of (sum over j in c of w_ij P(C_j <= x - d_ij)) ^ n_ic

with n_ic tuples to component c for each that i takes in (one to the acker, where all is complete at once), w_ij the
share of them that j gets, and d_ij the delay on the way. So a sentence of five words is complete with the last of five,
of which one is likelier far away than each by itself. Of fewer than one tuple for each, n_ic is the probability of one.
Distributions are kept on a grid.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from storm_operator.core.arrays import Floats, Ints

GRID = 48
"""Points of a distribution, from no delay at all to the longest that a tree of the topology commonly has."""
COMMON_SHARE = 0.999
"""Of the tuples between two components, as many take no longer than what the grid is made for: one that is under way
for much longer than all others would make its steps too wide for these."""
ROUNDS_OF_CYCLES = 8
"""How often a tuple may come by again: where every second one goes round again, one in 256 is left then."""
PAIRS_AT_ONCE = 20_000
"""Of places, of which distributions are in memory together."""


@dataclass(frozen=True, slots=True)
class Hops:
    """From the places of one component to those of another; places are positions.

    `sources` each have a number of tuples per second that they send, and where their pairs begin. Of each pair: the
    target, tuples per second, their share of what the source sends over these hops, and the delay.
    """

    sources: Ints
    sent: Floats
    begins: Ints
    targets: Ints
    per_second: Floats
    shares: Floats
    delays_ms: Floats

    @property
    def mean_ms(self) -> Floats:
        """Of each source."""
        return _sums(self.shares * self.delays_ms, self.begins)

    @property
    def common_ms(self) -> float:
        """What `COMMON_SHARE` of the tuples take at most."""
        shortest_first = np.argsort(self.delays_ms)
        so_far = np.cumsum(self.per_second[shortest_first])
        return float(self.delays_ms[shortest_first][np.searchsorted(so_far, COMMON_SHARE * so_far[-1])])

    def parts(self) -> list[Hops]:
        """The same in parts of whole sources, with some `PAIRS_AT_ONCE` pairs each."""
        if len(self.targets) <= PAIRS_AT_ONCE:
            return [self]
        ends = np.append(self.begins[1:], len(self.targets))
        firsts = np.flatnonzero(np.diff(self.begins // PAIRS_AT_ONCE, prepend=-1)).tolist()
        parts = []
        for first, last in zip(firsts, [*firsts[1:], len(self.sources)], strict=True):
            sources, pairs = slice(first, last), slice(int(self.begins[first]), int(ends[last - 1]))
            own = self.targets[pairs], self.per_second[pairs], self.shares[pairs], self.delays_ms[pairs]
            parts.append(Hops(self.sources[sources], self.sent[sources], self.begins[sources] - pairs.start, *own))
        return parts


Edges = Mapping[tuple[int, int], Hops]
"""By the numbers of the components that the hops go between."""


def slowest_trees_ms(places: int, edges: Edges, spouts: Collection[int], acker: int) -> float:
    """The mean over the trees of each spout, from its message at the acker to the last one there; the longest of these.

    `places` is how many there are; the acker's own messages are not among `edges`. Where somebody acks, spouts that
    tell no acker of their trees have none, and what neither is acked nor leads to what is belongs to none. Where nobody
    does, the last arrival counts.
    """
    begun = {spout: edges[spout, acker] for spout in spouts if (spout, acker) in edges}
    trees = _in_trees({edge: hops for edge, hops in edges.items() if edge[1] != acker or edge[0] not in begun}, acker)
    last_first = list(nx.dfs_postorder_nodes(nx.DiGraph(trees.keys())))
    turn = {component: at for at, component in enumerate(last_first)}
    rounds = ROUNDS_OF_CYCLES if any(turn[target] >= turn[source] for source, target in trees) else 1
    common_ms = {edge: hops.common_ms for edge, hops in trees.items()}
    if not any(common_ms.values()):
        common_ms = {edge: float(hops.delays_ms.max()) for edge, hops in trees.items()}
    step_ms = _step_ms(max(common_ms.values(), default=0.0), _longest_ms(common_ms, last_first) * (rounds + 1) / 2)
    if not step_ms:
        return 0.0
    taken_in = _taken_in(places, trees, begun)
    done = _Done(places, step_ms)
    for _ in range(rounds):
        for component in last_first:
            done.settle(
                [(hops, target == acker) for (source, target), hops in trees.items() if source == component], taken_in
            )
    return max((_mean_ms(spout, trees, begun, done, taken_in) for spout in begun or spouts), default=0.0)


def _in_trees(edges: Edges, acker: int) -> Edges:
    """Those over which an ack comes of what they carry; all, where nobody acks."""
    graph = nx.DiGraph(edges.keys())
    if acker not in graph:
        return edges
    acked = nx.ancestors(graph, acker) | {acker}
    return {edge: hops for edge, hops in edges.items() if edge[1] in acked}


def _longest_ms(common_ms: Mapping[tuple[int, int], float], last_first: Sequence[int]) -> float:
    """How long a tree is commonly under way at most, with cycles gone through at most once."""
    longest: dict[int, float] = {}
    for component in last_first:
        ways = (ms + longest.get(target, 0.0) for (source, target), ms in common_ms.items() if source == component)
        longest[component] = max(ways, default=0.0)
    return max(longest.values(), default=0.0)


def _step_ms(longest_hop_ms: float, longest_tree_ms: float) -> float:
    """Between two points of the grid: the longest hops, mostly many as long, are a whole number of steps."""
    if not longest_hop_ms:
        return 0.0
    steps_of_hop = int((GRID - 1) * longest_hop_ms / longest_tree_ms)
    return longest_hop_ms / steps_of_hop if steps_of_hop else longest_tree_ms / (GRID - 1)


def _taken_in(places: int, trees: Edges, begun: Mapping[int, Hops]) -> Floats:
    """Tuples per second that each place takes in, trees that it begins for one of a spout.

    Where neither is known, it is as many as it sends to the component that gets most.
    """
    taken, sent = np.zeros(places), np.zeros(places)
    for hops in trees.values():
        np.add.at(taken, hops.targets, hops.per_second)
        sent[hops.sources] = np.maximum(sent[hops.sources], hops.sent)
    for messages in begun.values():
        taken[messages.sources] = messages.sent
    return np.where(taken > 0.0, taken, sent)


def _mean_ms(spout: int, trees: Edges, begun: Mapping[int, Hops], done: _Done, taken_in: Floats) -> float:
    """The mean over the trees of one spout; 0 where it sends nothing."""
    sources = [hops.sources for (source, _), hops in trees.items() if source == spout]
    if not sources:
        return 0.0
    begin = np.unique(np.concatenate(sources))
    first_ms = np.zeros(len(taken_in))
    if spout in begun:
        first_ms[begun[spout].sources] = begun[spout].mean_ms
    after_ms = np.maximum(done.mean_ms(begin) - first_ms[begin], 0.0)
    return float(np.average(after_ms, weights=taken_in[begin]))


class _Done:
    """For each place the probabilities that what a tuple brings about there is complete after 0, 1, 2... steps."""

    def __init__(self, places: int, step_ms: float) -> None:
        self._step_ms = step_ms
        table = np.zeros((places, GRID + 1 + GRID))
        self._probabilities = table[:, GRID + 1 :]
        self._probabilities[:] = 1.0
        self._from_step = sliding_window_view(table, GRID + 1, axis=1)
        """Windows of the table, by place and by how many steps after the table's begin they begin."""

    def mean_ms(self, rows: Ints) -> Floats:
        mean: Floats = self._step_ms * (1.0 - self._probabilities[rows]).sum(axis=1)
        return mean

    def settle(self, onward: Sequence[tuple[Hops, bool]], taken_in: Floats) -> None:
        """Reckon the places of one component from all their hops; with each, whether it is one of acks."""
        if not onward:
            return
        own = np.unique(np.concatenate([hops.sources for hops, _ in onward]))
        complete = np.ones((len(own), GRID))
        for hops, are_acks in onward:
            for part in hops.parts():
                number = np.ones(len(part.sources)) if are_acks else part.sent / taken_in[part.sources]
                complete[np.searchsorted(own, part.sources)] *= _all_of(self._one_of(part), number[:, np.newaxis])
        self._probabilities[own] = complete

    def _one_of(self, hops: Hops) -> Floats:
        """Of each source, the probabilities for one of its tuples.

        A delay between two steps is taken for each of them with a probability of its own, so that the mean is kept; one
        beyond the grid as one that ends with it.
        """
        steps = np.minimum(hops.delays_ms / self._step_ms, GRID)
        whole = steps.astype(np.int64)
        late = hops.shares * (steps - whole)
        windows = self._from_step[hops.targets, GRID - whole]
        at = windows[:, 1:] * (hops.shares - late)[:, np.newaxis] + windows[:, :-1] * late[:, np.newaxis]
        return _sums(at, hops.begins)


def _all_of(one: Floats, number: Floats) -> Floats:
    """The probabilities that `number` tuples are complete; of less than one, that it is or was not sent."""
    return np.where(number > 1.0, np.minimum(one, 1.0) ** number, 1.0 - number + number * one)


def _sums(values: Floats, begins: Ints) -> Floats:
    sums: Floats = np.add.reduceat(values, begins)
    return sums
