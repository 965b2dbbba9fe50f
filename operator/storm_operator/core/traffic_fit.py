"""Task-to-task tuple counts: the hook's sample, fitted to the sums that Storm counts anyway.

The hook in each worker sees one call in K, so a pair's count is right on average and noisy. Storm itself counts, per
task and stream, the tuples sent (the sum of a row) and, per task, component and stream, those executed (the sum of a
column). Iterative proportional fitting (Deming and Stephan, 1940) scales rows and columns in turn until both agree:
the sample says how the tuples spread, the margins how many there were.

Margins are not exact either. Storm's sampler counts one call in 20, once in every 20 calls of a task, and adds 20.
Where one stream has the sampler to itself, its count is at most about 20 off. Where streams share it (a spout that
emits `default` and `__ack_init` in turn), which of the 20 calls is counted falls to a stream by chance: the variance
is then that of a binomial, step * count * (1 - share). When the hook counts every call, as it does for slow tasks,
such margins are worse than the sample and must not spoil it. So a margin moves a sum only by as much as it
disagrees beyond its own noise: by difference * (1 - noise / difference^2), noise being twice the standard deviation,
squared (shrinkage as in James and Stein, 1961; nobody has to know K). Exact counts stay as they are; counts that
disagree widely move to the margin almost entirely.

Agents bound the pairs that they export one by one: of a row's smallest flows only the sum is known. It is spread over
the receivers that the row does not name, by what their own margins say they got beyond all that is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from storm_operator.core.model import read_only

STORM_MARGIN_STEP = 20.0
NOISE_DEVIATIONS = 2.0
MAXIMUM_ROUNDS = 200
TOLERANCE = 1e-9

Vector = npt.NDArray[np.float64]
Block = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ObservedTraffic:
    """What was counted in one topology over one period, in tuples. A margin that is not known is absent."""

    sampled: Mapping[tuple[int, str, int], float]
    """(source task, stream, target task): the hook's counts, scaled up."""
    sent: Mapping[tuple[int, str], float]
    """(source task, stream): tuples sent to all receivers together."""
    received: Mapping[tuple[int, str, str], float]
    """(target task, source component, stream): tuples that came in."""
    component_of: Mapping[int, str]
    """The component of each task; tasks that it does not name are left out."""
    fan_out: Mapping[Block, float] = field(default_factory=dict)
    """(source component, stream): receivers of one emitted tuple, where it is more than one (`all` grouping)."""
    folded: Mapping[tuple[int, str], float] = field(default_factory=dict)
    """(source task, stream): tuples to receivers that are not named, besides those in `sampled`."""


@dataclass(frozen=True, slots=True)
class FittedTraffic:
    """Fitted counts by (source task, stream, target task), and the blocks (source component, stream) to doubt.

    `estimated` blocks have rows for which the hook gave nothing, so that margins alone spread them: 1-9% off for plain
    shuffle and fields grouping, 100-150% for load-aware shuffle and fields after fields on the same key.
    `unresolved` blocks sent tuples of which nobody knows the receivers: they are absent. `folded` blocks have rows
    whose smallest flows are spread by margins.
    """

    tuples: Mapping[tuple[int, str, int], float]
    estimated: tuple[Block, ...] = ()
    unresolved: tuple[Block, ...] = ()
    folded: tuple[Block, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "tuples", read_only(self.tuples))


@dataclass(frozen=True, slots=True)
class _Margin:
    """Known sums of rows or of columns (NaN: not known) and the variance of each."""

    counts: Vector
    variances: Vector


@dataclass(frozen=True, slots=True)
class _BlockData:
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    sampled: Vector
    named: npt.NDArray[np.bool_]
    """Which pairs the sample names, if only with 0."""
    folded: Vector
    """By source: tuples to targets that are not named."""
    sent: _Margin
    received: _Margin


def fit_traffic(observed: ObservedTraffic, margin_step: float = STORM_MARGIN_STEP) -> FittedTraffic:
    """Fit each block (source component, stream) by itself.

    `margin_step` is what one counted call adds to Storm's counters (1 / topology.stats.sample.rate); 0 takes the
    margins for exact.
    """
    fitted: dict[tuple[int, str, int], float] = {}
    estimated, unresolved, folded = [], [], []
    for name, block in sorted(_blocks(observed, margin_step).items()):
        counts, is_estimate = _fit_block(block)
        if counts is None:
            unresolved.append(name)
            continue
        if is_estimate:
            estimated.append(name)
        if block.folded.any():
            folded.append(name)
        for row, column in np.argwhere(counts > 0.0):
            fitted[block.sources[row], name[1], block.targets[column]] = float(counts[row, column])
    return FittedTraffic(fitted, tuple(estimated), tuple(unresolved), tuple(folded))


def _fit_block(block: _BlockData) -> tuple[Vector | None, bool]:
    """The fitted block and whether margins alone had to spread any of its rows; None when they cannot."""
    seed = _with_folded(block)
    silent = _silent_rows(block, seed)
    if silent.any():
        spread = _spread_of_silent_rows(block)
        if spread is None:
            return None, False
        seed[silent] = spread * block.sent.counts[silent, np.newaxis]
    rows = _believed_sums(seed.sum(axis=1), block.sent)
    seed = _scaled(seed, rows, axis=0)
    columns = _believed_sums(seed.sum(axis=0), block.received)
    if not np.isnan(columns).any() and columns.sum() > 0.0:
        columns = columns * (seed.sum() / columns.sum())
    return _fit_proportionally(seed, rows, columns), bool(silent.any())


def _with_folded(block: _BlockData) -> Vector:
    """The sample, with what each row folded spread over the targets that it does not name.

    The weights are what these received beyond what is named; where nobody knows that, all weigh the same. A row that
    names every target has folded what it names now.
    """
    if not block.folded.any():
        return block.sampled.copy()
    beyond = np.maximum(np.nan_to_num(block.received.counts) - block.sampled.sum(axis=0), 0.0)
    weights = np.where(block.named, 0.0, beyond)
    for fallback in (np.where(block.named, 0.0, 1.0), block.sampled):
        weights = np.where(weights.sum(axis=1, keepdims=True) > 0.0, weights, fallback)
    return block.sampled + _scaled(weights, block.folded, axis=0)


def _silent_rows(block: _BlockData, seed: Vector) -> npt.NDArray[np.bool_]:
    """Tasks that sent more than noise explains although the hook saw nothing of it."""
    noise = NOISE_DEVIATIONS * np.sqrt(block.sent.variances)
    silent: npt.NDArray[np.bool_] = (seed.sum(axis=1) == 0.0) & (np.nan_to_num(block.sent.counts) > noise)
    return silent


def _spread_of_silent_rows(block: _BlockData) -> Vector | None:
    """Shares of the targets, as their margins have them, or else as the other rows send."""
    for weights in (np.nan_to_num(block.received.counts), block.sampled.sum(axis=0)):
        if weights.sum() > 0.0:
            shares: Vector = weights / weights.sum()
            return shares
    return None


def _believed_sums(sums: Vector, margin: _Margin) -> Vector:
    """Where between the sample's sum and the margin the truth is taken to be; NaN where there is no margin."""
    difference = margin.counts - sums
    noise = NOISE_DEVIATIONS**2 * margin.variances
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.clip(1.0 - noise / difference**2, 0.0, 1.0)
    believed: Vector = sums + np.where(difference == 0.0, 0.0, weight * difference)
    return believed


def _fit_proportionally(seed: Vector, rows: Vector, columns: Vector) -> Vector:
    """Scale columns and rows in turn; rows (what was sent) have the last word where the two cannot both hold."""
    fitted = seed
    for _ in range(MAXIMUM_ROUNDS):
        before = fitted
        fitted = _scaled(_scaled(fitted, columns, axis=1), rows, axis=0)
        if np.allclose(before, fitted, rtol=TOLERANCE, atol=0.0):
            break
    return fitted


def _scaled(counts: Vector, wanted: Vector, axis: int) -> Vector:
    """`counts` with each row (axis 0) or column (axis 1) scaled to its wanted sum; NaN leaves it alone."""
    sums = counts.sum(axis=1 - axis)
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(np.isnan(wanted) | (sums == 0.0), 1.0, wanted / sums)
    scaled: Vector = counts * (factors[:, np.newaxis] if axis == 0 else factors[np.newaxis, :])
    return scaled


def _blocks(observed: ObservedTraffic, margin_step: float) -> Mapping[Block, _BlockData]:
    sources: dict[Block, set[int]] = {}
    targets: dict[Block, set[int]] = {}
    component_of = observed.component_of
    for source, stream, target in observed.sampled:
        if source in component_of and target in component_of:
            sources.setdefault((component_of[source], stream), set()).add(source)
            targets.setdefault((component_of[source], stream), set()).add(target)
    for source, stream in (*observed.sent, *observed.folded):
        if source in component_of:
            sources.setdefault((component_of[source], stream), set()).add(source)
    for target, component, stream in observed.received:
        if target in component_of:
            targets.setdefault((component, stream), set()).add(target)
    sent_by_task = _totals_by_task(observed.sent)
    received_by_task = _totals_by_task(observed.received)
    return {
        name: _block(
            observed,
            name,
            tuple(sorted(tasks)),
            tuple(sorted(targets.get(name, ()))),
            margin_step,
            (sent_by_task, received_by_task),
        )
        for name, tasks in sources.items()
    }


def _block(
    observed: ObservedTraffic,
    name: Block,
    sources: tuple[int, ...],
    targets: tuple[int, ...],
    margin_step: float,
    totals: tuple[Mapping[int, float], Mapping[int, float]],
) -> _BlockData:
    stream = name[1]
    sampled = np.array(
        [[observed.sampled.get((source, stream, target), 0.0) for target in targets] for source in sources],
        dtype=np.float64,
    ).reshape(len(sources), len(targets))
    sent = {task: observed.sent[task, stream] for task in sources if (task, stream) in observed.sent}
    received = {task: observed.received[task, *name] for task in targets if (task, *name) in observed.received}
    sent_step = margin_step * max(1.0, observed.fan_out.get(name, 1.0))
    return _BlockData(
        sources,
        targets,
        sampled,
        np.array([[(source, stream, target) in observed.sampled for target in targets] for source in sources]).reshape(
            sampled.shape
        ),
        np.array([observed.folded.get((source, stream), 0.0) for source in sources], dtype=np.float64),
        _margin(sources, sent, totals[0], sent_step),
        _margin(targets, received, totals[1], margin_step),
    )


def _margin(tasks: tuple[int, ...], counts: Mapping[int, float], totals: Mapping[int, float], step: float) -> _Margin:
    known = np.array([counts.get(task, np.nan) for task in tasks], dtype=np.float64)
    of_task = np.array([totals.get(task, np.nan) for task in tasks], dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(of_task > 0.0, known / of_task, 1.0)
    return _Margin(known, step * known * (1.0 - share) + step**2)


def _totals_by_task(
    margins: Mapping[tuple[int, str], float] | Mapping[tuple[int, str, str], float],
) -> dict[int, float]:
    totals: dict[int, float] = {}
    for key, count in margins.items():
        totals[key[0]] = totals.get(key[0], 0.0) + count
    return totals
