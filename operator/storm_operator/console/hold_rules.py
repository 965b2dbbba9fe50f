"""Why nothing is done, in plain words: for each reason to hold, the rule that held and what would change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storm_operator.core.decision import HoldReason


@dataclass(frozen=True, slots=True)
class HoldRule:
    """`looked` says whether a policy was asked at all before the rule held."""

    rule: str
    change: str
    looked: bool


HOLD_RULES: Mapping[HoldReason, HoldRule] = {
    HoldReason.METRICS_INCOMPLETE: HoldRule(
        "Nothing is decided by measurements that do not cover enough executors: what is missing is not taken for zero.",
        "Agents or workers that answer again (they are named above), or a lower scheduling.minimumCompleteness.",
        looked=False,
    ),
    HoldReason.METRICS_STALE: HoldRule(
        "Nothing is decided by measurements that are too old.",
        "Agents that answer in time, or a higher scheduling.maximumAgeSeconds.",
        looked=False,
    ),
    HoldReason.WARMING_UP: HoldRule(
        "Rates need two readings of the counters, one control period apart; whether load rises shows only in several "
        "periods; and so does what a topology needs that was submitted lately, where executors would move beside it. "
        "Nobody is asked about executors that Storm itself is about to place.",
        "Time: the next passes bring what is missing.",
        looked=False,
    ),
    HoldReason.NO_CHANGE: HoldRule(
        "The policy found no assignment that it likes better than the one in force.",
        "Other traffic or load, other supervisors, or another scheduling.policy.",
        looked=True,
    ),
    HoldReason.NOT_DUE: HoldRule(
        "The policy looks for something better from time to time, and its period has not passed. What it proposed "
        "before still waits.",
        "Time, or a shorter period (scheduling.parameters). An executor without a place would be placed at once.",
        looked=False,
    ),
    HoldReason.GAIN_TOO_SMALL: HoldRule(
        "A plan restarts workers; it must lower the cost by at least scheduling.minimumGainPercent to be worth that.",
        "A larger gain (traffic that grows between supervisors, load that changes), or a lower minimumGainPercent. An "
        "overloaded supervisor would be relieved whatever the gain.",
        looked=True,
    ),
    HoldReason.PAYBACK_TOO_LONG: HoldRule(
        "What the restarts of a plan cost must be saved again within scheduling.maximumPaybackSeconds.",
        "A larger saving, fewer restarts, or a higher maximumPaybackSeconds. An overloaded supervisor would be "
        "relieved all the same.",
        looked=True,
    ),
    HoldReason.TOO_LITTLE_CAPACITY: HoldRule(
        "Executors need more CPU than the supervisors that they are on have, and the policy knows no assignment that "
        "is worth its restarts.",
        "More supervisors or more CPU for them (spec.supervisors lets the operator add pods), or less load. Topologies "
        "of lower spec.priority go short first.",
        looked=True,
    ),
    HoldReason.COOL_DOWN: HoldRule(
        "Between two plans for a topology there is a rest of scheduling.coolDownSeconds, overload excepted. After "
        "plans that could not be put in force it is ever longer, up to five minutes, whatever the next one is for.",
        "Time: the next plan may follow when the rest is over. Why a plan failed is with the plan.",
        looked=True,
    ),
    HoldReason.INFEASIBLE: HoldRule(
        "The policy found no assignment that keeps the rules (slots, CPU, memory, separation).",
        "More supervisors, slots or CPU, or less load.",
        looked=True,
    ),
    HoldReason.KNOWN_BAD: HoldRule(
        "What a person refused is not tried again, what was rolled back not for a day; nor the like, unless urgent.",
        "Time, after a roll-back; else other traffic or load, by which the policy proposes something else.",
        looked=True,
    ),
    HoldReason.PAUSED: HoldRule(
        "The topology is paused by annotation.", "The annotation's removal: storm-operator.dev/paused.", looked=False
    ),
    HoldReason.OBSERVE_ONLY: HoldRule(
        "In mode Observe the operator measures and plans nothing.",
        "scheduling.mode Recommend (plans wait for a person) or Enforce (plans are carried out).",
        looked=False,
    ),
    HoldReason.AWAITING_APPROVAL: HoldRule(
        "The plan waits for a person.",
        "Somebody who approves or rejects it: on the page, where that may be (standalone --page-approval), or on "
        "Kubernetes by the annotation storm-operator.dev/rebalance of its StormRebalance.",
        looked=True,
    ),
    HoldReason.EXCLUDED_WINDOW: HoldRule(
        "In the windows of scheduling.excludedWindows no plan is applied, not even an urgent one.",
        "The end of the window, or another list of windows.",
        looked=True,
    ),
    HoldReason.APPLYING: HoldRule(
        "One plan at a time: it is verified before the next is made.",
        "Time: the plan in progress is verified or rolled back after scheduling.settlingSeconds.",
        looked=True,
    ),
    HoldReason.CLUSTER_UNREACHABLE: HoldRule(
        "Without Nimbus and ZooKeeper nothing can be seen and nothing can be changed.",
        "Nimbus and ZooKeeper that answer again.",
        looked=False,
    ),
}
