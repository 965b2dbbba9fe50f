"""What the learning jobs compute: their tables, which are replaced a cluster at a time."""

from __future__ import annotations

from storm_pipeline.schemas import CLUSTER, DerivedTable, schema_of

BY_CLUSTER = (CLUSTER,)

COMPONENT_PROFILE = DerivedTable(
    "component_profile",
    "Cost and behaviour of a component by hour of the week (0 is Monday 00:00 UTC; null: all hours): medians, and "
    "1.4826 times the median absolute deviation; the end of the newest period that counted, and its topology's id, "
    "executors and declared CPU",
    schema_of(
        "topology_name text, component text, component_kind text, hour_of_week whole, periods whole, "
        "cpu_per_tuple number, cpu_per_tuple_spread number, cpu_per_tuple_periods whole, "
        "selectivity number, selectivity_spread number, selectivity_periods whole, "
        "queue_growth number, queue_growth_spread number, executors whole, "
        "used_millicores number, used_millicores_p95 number, declared_millicores number, "
        "used_share_of_declared number, newest_period time, topology_id text, cluster text"
    ),
    BY_CLUSTER,
)
RESTARTS = DerivedTable(
    "restarts",
    "How long plans take until they are in force and until all moved executors run again, in seconds. The latter is of "
    "`running_plans`, which were seen to run again, `failed_tuples` of `failed_tuples_plans`; of others nobody knows",
    schema_of(
        "method text, state_moved truth, plans whole, in_force_median number, in_force_p90 number, "
        "running_median number, running_p90 number, running_plans whole, restarted_workers whole, "
        "failed_tuples number, failed_tuples_plans whole, cluster text"
    ),
    BY_CLUSTER,
)
FORECAST_ERRORS = DerivedTable(
    "forecast_errors",
    "Rolling-origin backtests: each forecaster on each component, errors in percent of the mean load",
    schema_of(
        "topology_name text, component text, forecaster text, error_percent number, short_percent number, "
        "over_percent number, is_winner truth, periods whole, cluster text"
    ),
    BY_CLUSTER,
)
SEASONS = DerivedTable(
    "seasons",
    "The season of each component's arrivals, as JSON; null where it has none. The end of the newest period that was "
    "learned from (null: the component was never measured whole) and of the newest in which it was there, and its "
    "topology's id then",
    schema_of(
        "topology_name text, component text, forecaster text, season text, newest_period time, last_seen time, "
        "topology_id text, cluster text"
    ),
    BY_CLUSTER,
)
PLAN_EFFECTS = DerivedTable(
    "plan_effects",
    "What a figure was before a plan and after it, what the forecast alone let expect, and the difference with the "
    "interval that 90% of resamples lie in. Periods count up to the topology's plans before and after",
    schema_of(
        "plan_id text, policy text, state text, topology_id text, figure text, created_at time, before number, "
        "expected number, after number, effect number, effect_low number, effect_high number, periods whole, "
        "cluster text"
    ),
    BY_CLUSTER,
)
PREDICTION_ERRORS = DerivedTable(
    "prediction_errors",
    "How far the planner's predictions were from what was measured, in percent of that, by policy",
    schema_of(
        "policy text, figure text, plans whole, median_error_percent number, bias_percent number, "
        "p90_error_percent number, cluster text"
    ),
    BY_CLUSTER,
)
LEAGUE = DerivedTable(
    "policy_league",
    "Policies by what their plans brought. `plans` are all that were made, also those that were only proposed, "
    "rejected or expired; moves, restarted workers and failed tuples are of those that came into force; of so many "
    "`failed_tuples_plans` it is known how many failed",
    schema_of(
        "policy text, plans whole, verified whole, rolled_back whole, failed whole, latency_change_percent number, "
        "traffic_change_percent number, moves whole, restarted_workers whole, failed_tuples number, "
        "failed_tuples_plans whole, cluster text"
    ),
    BY_CLUSTER,
)
RESTART_COSTS = DerivedTable(
    "restart_costs",
    "What it cost to put a plan in force: tuple trees that were to be expected by the forecast (without one, as many "
    "as before) and were not completed meanwhile, as far as was measured; of `unknown_seconds` nobody knows. Workers "
    "are the topology's own, `failed_tuples` those of the whole plan",
    schema_of(
        "plan_id text, topology_id text, restarted_workers whole, seconds number, unknown_seconds number, "
        "missing_trees number, missing_trees_per_worker number, failed_tuples number, cluster text"
    ),
    BY_CLUSTER,
)
TUNING_RUNS = DerivedTable(
    "tuning_runs",
    "One setting replayed on a part of history; the lower the score the better. Figures are per hour of the time that "
    "counts, but for `plans`: all that were made in the `seconds` of the stretch",
    schema_of(
        "rung whole, candidate whole, overrides text, seconds number, seed whole, score number, "
        "under_core_seconds number, over_core_seconds number, failed_tuples number, restarts whole, plans whole, "
        "cluster text"
    ),
    BY_CLUSTER,
)
TUNING_ADVICE = DerivedTable(
    "tuning_advice",
    "The settings that did best, and their score against the present ones on the same replays, in percent: first the "
    "best and the present ones, which alone were replayed again to decide; the end of the newest period replayed",
    schema_of(
        "rank whole, overrides text, change_percent number, low_percent number, high_percent number, replays whole, "
        "under_core_seconds number, over_core_seconds number, restarts number, newest_period time, cluster text"
    ),
    BY_CLUSTER,
)
