"""What the operator exports about plans, holds, and the CPU of pods."""

from __future__ import annotations

from storm_operator.metric_contract.metric import (
    CLUSTER,
    NIMBUS,
    NUMBER,
    OF_TOPOLOGY,
    ONE,
    PER_SECOND,
    RATIO,
    SECONDS,
    TOPOLOGY,
    TUPLES,
    operator_metric,
)

_LAST_PLAN = "managed topology that had a plan since the operator began"
DECISION_METRICS = (
    operator_metric(
        "plans_total",
        ("nimbus", "state", "policy"),
        NUMBER,
        "state and policy",
        "Plans that reached the state (Proposed, Applying, Settling, Verified, RolledBack, Failed, Expired, Rejected); "
        "a plan counts once in each state of its life. Like all counters of plans it is 0 when it is first asked for: "
        "what came before that is an increase.",
    ),
    operator_metric(
        "topology_plans_total",
        ("nimbus", "topology", "state"),
        NUMBER,
        "managed topology and state",
        "The same for each topology that the plan concerned; from the first pass on there is a 0 for each state.",
        20_000,
    ),
    operator_metric("plan_moves_total", NIMBUS, NUMBER, CLUSTER, "Executors moved by plans that came into force."),
    operator_metric("plan_restarted_workers_total", NIMBUS, NUMBER, CLUSTER, "Workers restarted by plans in force."),
    operator_metric(
        "last_plan_info",
        ("nimbus", "topology", "plan", "policy", "reason", "state"),
        ONE,
        _LAST_PLAN,
        "The last plan that concerned the topology, why it was made, and how far it came. reason: WithoutPlace, "
        "Overload, LittleHeadroom, ComingOverload, Memory, Savings, Policy (by its own trigger), Rollback, TakenBack "
        "(asked for), Unstated.",
        2_000,
    ),
    operator_metric(
        "last_plan_timestamp_seconds", TOPOLOGY, SECONDS, _LAST_PLAN, "When it was made, since 1970.", 2_000
    ),
    operator_metric("last_plan_moves", TOPOLOGY, NUMBER, _LAST_PLAN, "Executors that it moves.", 2_000),
    operator_metric("last_plan_restarted_workers", TOPOLOGY, NUMBER, _LAST_PLAN, "Workers that it restarts.", 2_000),
    operator_metric(
        "last_plan_inter_supervisor_tuples_per_second",
        ("nimbus", "topology", "stage"),
        PER_SECOND,
        f"{_LAST_PLAN}, and stage",
        "Traffic between supervisors, all topologies of the plan. stage: before, predicted, measured (once verified).",
        6_000,
    ),
    operator_metric(
        "last_plan_complete_latency_seconds",
        ("nimbus", "topology", "stage"),
        SECONDS,
        f"{_LAST_PLAN}, and stage",
        "Mean complete latency of the slowest topology of the plan. stage as above; none is predicted of a plan that"
        " relieves an overload.",
        6_000,
    ),
    operator_metric(
        "last_plan_payback_seconds", TOPOLOGY, SECONDS, _LAST_PLAN, "When its cost was to be earned.", 2_000
    ),
    operator_metric(
        "last_plan_gain_ratio", TOPOLOGY, RATIO, _LAST_PLAN, "Fall of the objective that it promised.", 2_000
    ),
    operator_metric(
        "last_plan_in_force_seconds",
        TOPOLOGY,
        SECONDS,
        _LAST_PLAN,
        "From decision to in force; after a wait for approval, from its execution on.",
        2_000,
    ),
    operator_metric(
        "last_plan_running_seconds",
        TOPOLOGY,
        SECONDS,
        _LAST_PLAN,
        "From in force until every moved executor ran again.",
        2_000,
    ),
    operator_metric(
        "last_plan_failed_tuples", TOPOLOGY, TUPLES, _LAST_PLAN, "Tuple trees that failed meanwhile.", 2_000
    ),
    operator_metric(
        "best_known_gain_ratio",
        TOPOLOGY,
        RATIO,
        OF_TOPOLOGY,
        "What the best placement found would save of the cost in force, by the last decision that looked for one.",
    ),
    operator_metric(
        "gap_to_best_known_ratio",
        TOPOLOGY,
        RATIO,
        OF_TOPOLOGY,
        "How much more the placement in force costs than the best one found: 0 is as good as known, 0.1 is 10% more.",
    ),
    operator_metric(
        "holding", ("nimbus", "reason"), NUMBER, "reason", "Groups of topologies left as they are, by reason."
    ),
    operator_metric(
        "holds_total", ("nimbus", "reason"), NUMBER, "reason", "Decisions to leave a group of topologies as it is."
    ),
    operator_metric(
        "topology_hold", ("nimbus", "topology", "reason"), ONE, OF_TOPOLOGY, "Why the last decision left it as it is."
    ),
    operator_metric(
        "pod_resizes_total",
        ("nimbus", "outcome"),
        NUMBER,
        "outcome",
        "CPU limits asked for supervisor pods. outcome: asked (the API server took it), refused. Kubernetes only.",
    ),
    operator_metric(
        "pod_resize_problems",
        ("nimbus", "reason"),
        NUMBER,
        "reason",
        "Supervisor pods whose CPU limit, or reserved CPU, is not what was asked. reason: Deferred, Infeasible, Error, "
        "Refused, Invalid (its annotation). Kubernetes only.",
    ),
)
