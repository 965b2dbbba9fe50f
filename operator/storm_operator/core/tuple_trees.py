"""How long the tuple trees of one topology are under way, from the delays of its hops.

An executor's part of a tree is complete when its own ack has arrived and the trees of all tuples that it sends on are
complete; taken as independent of each other, this gives for C_i, the time from a tuple's arrival at executor i,

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

GRID = 32
"""Points of a distribution, from no delay at all to the longest that a tree of the topology can have."""
ROUNDS_OF_CYCLES = 8
"""How often a tuple may come by again: where every second one goes round again, one in 256 is left then."""


@dataclass(frozen=True, slots=True)
class Hops:
    """From the executors of one component to those of another; executors are positions.

    `sources` each have a number of tuples per second that they send, and a place where their pairs begin. Of each pair:
    the target, its share of what the source sends over these hops, and the delay.
    """

    sources: Ints
    sent: Floats
    begins: Ints
    targets: Ints
    shares: Floats
    delays_ms: Floats

    @property
    def mean_ms(self) -> Floats:
        """Of each source."""
        return _sums(self.shares * self.delays_ms, self.begins)

    @property
    def received(self) -> Floats:
        """Tuples per second over each pair."""
        return self.shares * np.repeat(self.sent, np.diff(self.begins, append=len(self.targets)))


Edges = Mapping[tuple[int, int], Hops]
"""By the numbers of the components that the hops go between."""


def slowest_trees_ms(executors: int, edges: Edges, spouts: Collection[int], acker: int) -> float:
    """The mean over the trees of each spout, from its message at the acker to the last one there; the longest of these.

    `executors` is how many there are; the acker's own messages are not among `edges`. Where nobody acks, the last
    arrival counts, and where somebody does, what neither is acked nor leads to what is belongs to no tree.
    """
    begun = {spout: edges[spout, acker] for spout in spouts if (spout, acker) in edges}
    trees = _in_trees({edge: hops for edge, hops in edges.items() if edge[1] != acker or edge[0] not in begun}, acker)
    last_first = list(nx.dfs_postorder_nodes(nx.DiGraph(trees.keys())))
    turn = {component: at for at, component in enumerate(last_first)}
    rounds = ROUNDS_OF_CYCLES if any(turn[target] >= turn[source] for source, target in trees) else 1
    longest_hop_ms = max((float(hops.delays_ms.max()) for hops in trees.values()), default=0.0)
    if not longest_hop_ms:
        return 0.0
    taken_in = _taken_in(executors, trees, begun)
    done = _Done(executors, _step_ms(longest_hop_ms, _longest_ms(trees, last_first) * (rounds + 1) / 2))
    for _ in range(rounds):
        for component in last_first:
            onward = [(hops, target == acker) for (source, target), hops in trees.items() if source == component]
            done.settle(onward, taken_in)
    return max((_mean_ms(spout, trees, begun, done, taken_in) for spout in spouts), default=0.0)


def _in_trees(edges: Edges, acker: int) -> Edges:
    """Those over which an ack comes of what they carry; all, where nobody acks."""
    graph = nx.DiGraph(edges.keys())
    if acker not in graph:
        return edges
    acked = nx.ancestors(graph, acker) | {acker}
    return {edge: hops for edge, hops in edges.items() if edge[1] in acked}


def _longest_ms(trees: Edges, last_first: Sequence[int]) -> float:
    """The longest that a tree can be under way, with cycles gone through at most once."""
    longest: dict[int, float] = {}
    for component in last_first:
        ways = (
            float(hops.delays_ms.max()) + longest.get(target, 0.0)
            for (source, target), hops in trees.items()
            if source == component
        )
        longest[component] = max(ways, default=0.0)
    return max(longest.values(), default=0.0)


def _step_ms(longest_hop_ms: float, longest_tree_ms: float) -> float:
    """Between two points of the grid: the longest hops, mostly many as long, are a whole number of steps."""
    steps_of_hop = int((GRID - 1) * longest_hop_ms / longest_tree_ms)
    return longest_hop_ms / steps_of_hop if steps_of_hop else longest_tree_ms / (GRID - 1)


def _taken_in(executors: int, trees: Edges, begun: Mapping[int, Hops]) -> Floats:
    """Tuples per second that each executor takes in, trees that it begins for one of a spout.

    Where neither is known, it is as many as it sends to the component that gets most.
    """
    taken, sent = np.zeros(executors), np.zeros(executors)
    for hops in trees.values():
        np.add.at(taken, hops.targets, hops.received)
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
    """For each executor the probabilities that what a tuple brings about there is complete after 0, 1, 2... steps."""

    def __init__(self, executors: int, step_ms: float) -> None:
        self._step_ms = step_ms
        table = np.zeros((executors, GRID + 1 + GRID))
        self._probabilities = table[:, GRID + 1 :]
        self._probabilities[:] = 1.0
        self._from_step = sliding_window_view(table, GRID + 1, axis=1)
        """Windows of the table, by executor and by how many steps after the table's begin they begin."""

    def mean_ms(self, rows: Ints) -> Floats:
        mean: Floats = self._step_ms * (1.0 - self._probabilities[rows]).sum(axis=1)
        return mean

    def settle(self, onward: Sequence[tuple[Hops, bool]], taken_in: Floats) -> None:
        """Reckon the executors of one component from all their hops; with each, whether it is one of acks."""
        complete = np.ones((len(taken_in), GRID))
        for hops, are_acks in onward:
            number = np.ones(len(hops.sources)) if are_acks else hops.sent / taken_in[hops.sources]
            complete[hops.sources] *= _all_of(self._one_of(hops), number[:, np.newaxis])
        for hops, _ in onward:
            self._probabilities[hops.sources] = complete[hops.sources]

    def _one_of(self, hops: Hops) -> Floats:
        """Of each source, the probabilities for one of its tuples.

        A delay between two steps is taken for each of them with a probability of its own, so that the mean is kept.
        """
        steps = hops.delays_ms / self._step_ms
        whole = np.minimum(steps.astype(np.int64), GRID)
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
