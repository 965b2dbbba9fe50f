"""Fitting sampled task-to-task counts to Storm's margins."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_operator.core.traffic_fit import ObservedTraffic, fit_traffic

Counts = Mapping[tuple[int, str, int], float]
SOURCES, TARGETS = (1, 2, 3), (11, 12, 13, 14)
COMPONENTS = {**dict.fromkeys(SOURCES, "split"), **dict.fromkeys(TARGETS, "count")}


def margins(counts: Counts) -> tuple[dict[tuple[int, str], float], dict[tuple[int, str, str], float]]:
    sent: dict[tuple[int, str], float] = {}
    received: dict[tuple[int, str, str], float] = {}
    for (source, stream, target), tuples in counts.items():
        sent[source, stream] = sent.get((source, stream), 0.0) + tuples
        column = (target, COMPONENTS[source], stream)
        received[column] = received.get(column, 0.0) + tuples
    return sent, received


def observed(sampled: Counts, truth: Counts) -> ObservedTraffic:
    """`sampled` with the exact margins of `truth`."""
    sent, received = margins(truth)
    return ObservedTraffic(sampled, sent, received, COMPONENTS)


def weighted_error(counts: Counts, truth: Counts) -> float:
    wrong = sum(abs(counts.get(pair, 0.0) - truth.get(pair, 0.0)) for pair in {*counts, *truth})
    return wrong / sum(truth.values())


def sampled_one_in(k: int, truth: Counts, rng: random.Random) -> Counts:
    """Each call is seen with probability 1/k and counts k."""
    return {pair: float(k * sum(rng.random() < 1 / k for _ in range(int(tuples)))) for pair, tuples in truth.items()}


def skewed_truth(rng: random.Random, scale: int = 4000) -> Counts:
    return {(s, "default", t): float(rng.randint(scale // 20, scale)) for s in SOURCES for t in TARGETS}


counts_strategy = st.dictionaries(
    st.tuples(st.sampled_from(SOURCES), st.sampled_from(["default", "odd"]), st.sampled_from(TARGETS)),
    st.integers(1, 100_000).map(float),
    min_size=1,
)


@pytest.mark.slow
@given(counts_strategy, st.sampled_from([0.0, 1.0, 20.0]))
def test_exact_counts_with_exact_margins_stay_unchanged(truth: Counts, margin_step: float) -> None:
    fitted = fit_traffic(observed(truth, truth), margin_step)
    assert fitted.tuples == pytest.approx(truth, rel=1e-6)
    assert fitted.estimated == ()
    assert fitted.unresolved == ()


@pytest.mark.slow
@given(counts_strategy, st.data())
def test_fit_to_exact_margins_has_their_row_sums(truth: Counts, data: st.DataObject) -> None:
    sample = {pair: data.draw(st.floats(0.5, 2.0)) * tuples for pair, tuples in truth.items()}
    fitted = fit_traffic(observed(sample, truth), margin_step=0.0)
    sent, _ = margins(fitted.tuples)
    assert sent == pytest.approx(margins(truth)[0], rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_noisy_sample_with_exact_margins_comes_closer_to_the_truth(seed: int) -> None:
    rng = random.Random(seed)
    truth = skewed_truth(rng)
    sample = sampled_one_in(32, truth, rng)
    fitted = fit_traffic(observed(sample, truth), margin_step=0.0)
    assert weighted_error(fitted.tuples, truth) < weighted_error(sample, truth)


def test_noisy_sample_with_storms_own_margins_comes_closer_on_average() -> None:
    """One stream alone has the sampler for itself: the margin is off by at most its step."""
    rng = random.Random(7)
    errors_before, errors_after = [], []
    for _ in range(20):
        truth = skewed_truth(rng)
        sample = sampled_one_in(32, truth, rng)
        sent, received = margins(truth)
        noisy = ObservedTraffic(
            sample,
            {key: count + rng.uniform(-20, 20) for key, count in sent.items()},
            {key: count + rng.uniform(-20, 20) for key, count in received.items()},
            COMPONENTS,
        )
        errors_before.append(weighted_error(sample, truth))
        errors_after.append(weighted_error(fit_traffic(noisy).tuples, truth))
    assert sum(errors_after) < 0.9 * sum(errors_before)


def sampled_by_storm(count: float, rng: random.Random) -> float:
    """Half of each 20 calls of a task belong to this stream; which call counts is chance."""
    return 20.0 * sum(rng.random() < 0.5 for _ in range(round(count * 2 / 20)))


def test_margins_that_disagree_within_their_own_noise_leave_exact_counts_alone() -> None:
    rng = random.Random(3)
    errors = []
    for _ in range(50):
        truth = skewed_truth(rng, scale=400)
        sent, received = margins(truth)
        noisy_sent = {key: sampled_by_storm(count, rng) for key, count in sent.items()}
        acks = {(task, "__ack_init"): count for (task, _), count in sent.items()}
        noisy = ObservedTraffic(truth, {**noisy_sent, **acks}, received, COMPONENTS)
        errors.append(weighted_error(fit_traffic(noisy).tuples, truth))
        margin_error = sum(abs(noisy_sent[key] - sent[key]) for key in sent) / sum(sent.values())
        assert errors[-1] <= margin_error
    assert sum(errors) / len(errors) < 0.01


def test_counts_below_the_margins_step_are_not_wiped_out() -> None:
    truth = {(1, "default", 11): 3.0}
    rarely = ObservedTraffic(truth, {(1, "default"): 0.0}, {(11, "split", "default"): 20.0}, COMPONENTS)
    assert fit_traffic(rarely).tuples == truth


def test_missing_margins_are_not_fitted() -> None:
    sample = {(1, "default", 11): 100.0, (1, "default", 12): 300.0, (2, "default", 11): 50.0}
    without = ObservedTraffic(sample, {}, {}, COMPONENTS)
    assert fit_traffic(without, margin_step=0.0).tuples == pytest.approx(sample)
    one_row = ObservedTraffic(sample, {(1, "default"): 800.0}, {}, COMPONENTS)
    assert fit_traffic(one_row, margin_step=0.0).tuples == pytest.approx(
        {(1, "default", 11): 200.0, (1, "default", 12): 600.0, (2, "default", 11): 50.0}
    )


def test_block_without_any_sample_is_spread_by_margins_and_marked() -> None:
    sent = {(1, "default"): 300.0, (2, "default"): 100.0}
    received = {(11, "split", "default"): 100.0, (12, "split", "default"): 300.0}
    fitted = fit_traffic(ObservedTraffic({}, sent, received, COMPONENTS), margin_step=0.0)
    assert fitted.estimated == (("split", "default"),)
    assert fitted.tuples == pytest.approx(
        {
            (1, "default", 11): 75.0,
            (1, "default", 12): 225.0,
            (2, "default", 11): 25.0,
            (2, "default", 12): 75.0,
        }
    )


def test_task_without_a_hook_sends_as_the_margins_say_and_its_block_is_marked() -> None:
    sample = {(1, "default", 11): 100.0, (1, "default", 12): 100.0}
    sent = {(1, "default"): 200.0, (2, "default"): 200.0}
    received = {(11, "split", "default"): 200.0, (12, "split", "default"): 200.0}
    fitted = fit_traffic(ObservedTraffic(sample, sent, received, COMPONENTS), margin_step=0.0)
    assert fitted.estimated == (("split", "default"),)
    assert fitted.tuples[2, "default", 11] == pytest.approx(100.0)


def test_block_whose_receivers_nobody_knows_is_unresolved_and_absent() -> None:
    fitted = fit_traffic(ObservedTraffic({}, {(1, "default"): 300.0}, {}, COMPONENTS), margin_step=0.0)
    assert fitted.unresolved == (("split", "default"),)
    assert fitted.tuples == {}


def test_tasks_of_no_known_component_are_left_out() -> None:
    fitted = fit_traffic(ObservedTraffic({(99, "default", 11): 5.0}, {(99, "default"): 5.0}, {}, COMPONENTS))
    assert fitted.tuples == {}


def test_margins_that_contradict_each_other_leave_the_last_word_to_what_was_sent() -> None:
    """A lone receiver whose queue overflows executes less than it is sent."""
    sample = {(1, "default", 11): 90.0}
    both = ObservedTraffic(sample, {(1, "default"): 100.0}, {(11, "split", "default"): 10.0}, COMPONENTS)
    assert fit_traffic(both, margin_step=0.0).tuples == pytest.approx({(1, "default", 11): 100.0})


def folded_beyond(counts: Counts, kept: int) -> tuple[Counts, dict[tuple[int, str], float]]:
    """As an agent exports them: the `kept` largest pairs by name, of the others the sum by source and stream."""
    largest_first = sorted(counts, key=lambda pair: (-counts[pair], pair))
    folded: dict[tuple[int, str], float] = {}
    for pair in largest_first[kept:]:
        folded[pair[:2]] = folded.get(pair[:2], 0.0) + counts[pair]
    return {pair: counts[pair] for pair in largest_first[:kept]}, folded


@pytest.mark.parametrize("kept", [1, 4, 8, 11])
def test_folded_flows_go_to_the_receivers_that_are_not_named(kept: int) -> None:
    truth = skewed_truth(random.Random(kept))
    named, folded = folded_beyond(truth, kept)
    sent, received = margins(truth)
    fitted = fit_traffic(ObservedTraffic(named, sent, received, COMPONENTS, folded=folded), margin_step=0.0)
    told_nothing = fit_traffic(ObservedTraffic(named, sent, received, COMPONENTS), margin_step=0.0)
    assert fitted.folded == (("split", "default"),)
    assert sum(fitted.tuples.values()) == pytest.approx(sum(truth.values()))
    for (source, stream), tuples in sent.items():
        row = sum(fitted.tuples.get((source, stream, target), 0.0) for target in TARGETS)
        assert row == pytest.approx(tuples, rel=1e-6)
    assert weighted_error(fitted.tuples, truth) < 0.5
    assert weighted_error(fitted.tuples, truth) <= weighted_error(told_nothing.tuples, truth) + 1e-9


def test_what_is_named_keeps_its_count_and_zero_is_a_name() -> None:
    named = {(1, "default", 11): 900.0, (1, "default", 12): 0.0}
    received = {
        (target, "split", "default"): count for target, count in ((11, 900.0), (12, 0.0), (13, 30.0), (14, 10.0))
    }
    observed_flows = ObservedTraffic(
        named, {(1, "default"): 940.0}, received, COMPONENTS, folded={(1, "default"): 40.0}
    )
    assert fit_traffic(observed_flows).tuples == pytest.approx(
        {(1, "default", 11): 900.0, (1, "default", 13): 30.0, (1, "default", 14): 10.0}
    )


def test_folded_flows_without_margins_are_spread_evenly_over_those_not_named() -> None:
    named = {(1, "default", 11): 90.0, (2, "default", 12): 50.0, (2, "default", 13): 50.0}
    flows = ObservedTraffic(named, {}, {}, COMPONENTS, folded={(1, "default"): 10.0})
    assert fit_traffic(flows).tuples == pytest.approx(named | {(1, "default", 12): 5.0, (1, "default", 13): 5.0})
