"""The series that agents and operator export for a cluster of any size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from played_values import Played, checked

from storm_operator.agent.neighbours import neighbours
from storm_operator.core.decision import HoldReason
from storm_operator.core.plan_record import PlanState
from storm_operator.metric_contract import BY_NAME

NIMBUS = "nimbus.storm:6627"
OPERATOR = "10.1.0.1:8080"
COMPONENTS = ("source", "parse", "enrich", "join", "count", "rank", "store", "__acker")
LATENCY_BUCKETS = tuple(0.0005 * 2**n for n in range(20))
PEERS = (("nimbus", "getClusterInfo"), ("nimbus", "getTopologyInfo"), ("zookeeper", "get"), ("agent", "scrape"))


@dataclass(frozen=True, slots=True)
class PlayedCluster:
    """`topologies` of `executors_each`, spread over `supervisors`, two topologies to a supervisor or so."""

    topologies: int = 10
    executors_each: int = 100
    supervisors: int = 50
    targets_each: int = 10

    def series(self) -> Iterator[Played]:
        """All series; those that the contract does not know raise `ValueError`."""
        makers = (self._agents, self._executors, self._pairs, self._topologies, self._decisions, self._loop)
        for make in makers:
            for one in make():
                yield checked(one)

    def supervisor(self, topology: int, executor: int) -> str:
        reach = max(self.supervisors // self.topologies * 2, 1)
        place = (topology * self.supervisors // self.topologies + executor % reach) % self.supervisors
        return f"10.0.{place // 200}.{place % 200 + 1}"

    def hosts(self) -> list[str]:
        return [f"10.0.{place // 200}.{place % 200 + 1}" for place in range(self.supervisors)]

    def _executor_labels(self, topology: int, number: int) -> dict[str, str]:
        return {
            "supervisor": self.supervisor(topology, number),
            "topology_id": _topology_id(topology),
            "component": COMPONENTS[number % len(COMPONENTS)],
            "executor": f"{number + 1}-{number + 1}",
            "port": str(6700 + topology % 4),
        }

    def _executors(self) -> Iterator[Played]:
        for topology in range(self.topologies):
            for number in range(self.executors_each):
                labels = self._executor_labels(topology, number)
                busy = 0.05 + 0.6 * ((number * 37) % 100) / 100
                for name in ("executed", "emitted", "acked"):
                    yield Played(f"storm_executor_{name}_tuples_total", labels, 800 * busy, counter=True)
                yield Played("storm_executor_failed_tuples_total", labels, 0.0, counter=True)
                yield Played("storm_executor_cpu_seconds_total", labels, busy, counter=True)
                yield Played("storm_executor_throttled_seconds_total", labels, 0.02 * busy, counter=True)
                yield Played("storm_executor_queue_length", labels, 40 * busy)
                yield Played("storm_executor_arrival_tuples_per_second", labels, 800 * busy)
                yield Played("storm_executor_cpu_limit_cores", labels, busy * 1.3 + 0.05, 0.1)
                if labels["component"] == COMPONENTS[0]:
                    yield from _latency(labels)

    def _pairs(self) -> Iterator[Played]:
        for topology in range(self.topologies):
            for number in range(self.executors_each):
                here = {"supervisor": self.supervisor(topology, number), "topology_id": _topology_id(topology)}
                task = {**here, "task": str(number + 1), "stream": "default"}
                yield Played("storm_task_transferred_tuples_total", task, 400.0, counter=True)
                executed = {**task, "source_component": COMPONENTS[(number - 1) % len(COMPONENTS)]}
                yield Played("storm_task_executed_tuples_total", executed, 400.0, counter=True)
                for step in range(self.targets_each):
                    target = (number + 1 + step * 7) % self.executors_each + 1
                    pair = {**here, "source_task": str(number + 1), "stream": "default", "target_task": str(target)}
                    yield Played("storm_traffic_tuples_total", pair, 5.0 + (number * step) % 60, counter=True)

    def _agents(self) -> Iterator[Played]:
        hosts = self.hosts()
        for place, host in enumerate(hosts):
            here = {"supervisor": host}
            yield Played("storm_supervisor_cpu_seconds_total", here, 3.0, counter=True)
            yield Played("storm_supervisor_throttled_seconds_total", here, 0.01, counter=True)
            yield Played("storm_supervisor_cpu_capacity_cores", here, 8.0, 0.0)
            yield Played("storm_supervisor_cpu_limit_cores", here, 5.0, 0.2)
            yield Played("storm_supervisor_memory_bytes", here, 6e9, 0.1)
            yield Played("storm_supervisor_coordinate_error_ratio", here, 0.2)
            yield Played("storm_agent_enforcement", {**here, "mode": "cgroup-v2", "reason": ""}, 1.0, 0.0)
            yield Played("storm_agent_start_time_seconds", here, 1.7e9, 0.0)
            yield Played("storm_agent_uptime_seconds", here, 1.0, counter=True)
            for peer in neighbours(host, hosts):
                probed = {**here, "peer": peer}
                yield Played("storm_supervisor_round_trip_seconds", probed, 0.0004 * (1 + place % 3))
                yield Played("storm_supervisor_availability_ratio", probed, 1.0, 0.0)
        for topology in range(self.topologies):
            for host in sorted({self.supervisor(topology, number) for number in range(self.executors_each)}):
                of_topology = {"supervisor": host, "topology_id": _topology_id(topology)}
                worker = {**of_topology, "port": str(6700 + topology % 4)}
                yield Played("storm_worker_info", {**worker, "pid": "4711"}, 1.0, 0.0)
                yield Played("storm_worker_cpu_seconds_total", worker, 1.5, counter=True)
                yield Played("storm_worker_memory_bytes", worker, 7e8, 0.1)
                yield Played("storm_worker_snapshot_age_seconds", worker, 0.6)
                yield Played("storm_traffic_folded_pairs", of_topology, 0.0)
                yield Played("storm_traffic_folded_tuples_total", of_topology, 0.0, counter=True)

    def _topologies(self) -> Iterator[Played]:
        for number in range(self.topologies):
            mine = {"nimbus": NIMBUS, "topology": _topology(number)}
            yield _operator("topology_info", {**mine, "namespace": "storm", "topology_id": _topology_id(number)}, 1.0)
            for reach, rate in (("worker", 20_000), ("supervisor", 9_000), ("inter_supervisor", 4_000)):
                yield _operator("traffic_tuples_per_second", {**mine, "level": reach}, rate, 0.3)
            for statistic, latency in (("mean", 0.006), ("p50", 0.004), ("p99", 0.03)):
                yield _operator("complete_latency_seconds", {**mine, "statistic": statistic}, latency, 0.3)
            for name, level in (
                ("inter_supervisor_traffic_ratio", 0.15),
                ("acked_tuples_per_second", 3_000),
                ("failed_tuples_per_second", 0),
                ("topology_executors", self.executors_each),
                ("topology_workers", 10),
                ("topology_supervisors", 10),
                ("best_known_gain_ratio", 0.05),
                ("gap_to_best_known_ratio", 0.06),
            ):
                yield _operator(name, mine, level, 0.2)
            for place, component in enumerate(COMPONENTS):
                yield from self._component({**mine, "component": component}, place)
            for executor in range(self.executors_each):
                component = COMPONENTS[executor % len(COMPONENTS)]
                labels = {**mine, "component": component, "executor": f"{executor + 1}-{executor + 1}"}
                yield _operator("executor_cpu_demand_cores", labels, 0.4, 0.2)

    def _component(self, labels: dict[str, str], place: int) -> Iterator[Played]:
        load = 1000.0 * (place + 1)
        for name, level in (
            ("arrival_tuples_per_second", load),
            ("forecast_arrival_tuples_per_second", load * 1.03),
            ("next_arrival_tuples_per_second", load * 1.02),
            ("queue_tuples", 100.0),
            ("queue_growth_tuples_per_second", 0.5),
            ("executors", self.executors_each / len(COMPONENTS)),
            ("cpu_used_cores", 2.0 + place),
            ("cpu_demand_cores", 3.0 + place),
        ):
            yield _operator(f"component_{name}", labels, level, 0.3)

    def _decisions(self) -> Iterator[Played]:
        cluster = {"nimbus": NIMBUS}
        for state in PlanState:
            yield _operator("plans_total", {**cluster, "state": state.value, "policy": "adaptive"}, 0.003, 0.5)
        for reason in HoldReason:
            yield _operator("holds_total", {**cluster, "reason": reason.value}, 0.01, 0.5)
        yield _operator("holding", {**cluster, "reason": "NoChange"}, 1.0)
        yield _operator("plan_moves_total", cluster, 0.01, 0.5)
        yield _operator("plan_restarted_workers_total", cluster, 0.004, 0.5)
        yield _operator("pod_resizes_total", {**cluster, "outcome": "asked"}, 0.01, 0.5)
        yield _operator("pod_resize_problems", {**cluster, "reason": "Deferred"}, 0.0)
        for number in range(self.topologies):
            yield from self._last_plan({"nimbus": NIMBUS, "topology": _topology(number)}, number)

    def _last_plan(self, mine: dict[str, str], number: int) -> Iterator[Played]:
        yield _operator("topology_hold", {**mine, "reason": "NoChange"}, 1.0)
        plan = {"plan": f"p-{number}", "policy": "adaptive", "reason": "Savings", "state": "Verified"}
        yield _operator("last_plan_info", {**mine, **plan}, 1.0)
        for state in PlanState:
            yield _operator("topology_plans_total", {**mine, "state": state.value}, 0.0003, 0.5)
        for stage, rate in (("before", 9_000.0), ("predicted", 4_100.0), ("measured", 4_000.0)):
            yield _operator("last_plan_inter_supervisor_tuples_per_second", {**mine, "stage": stage}, rate)
            yield _operator("last_plan_complete_latency_seconds", {**mine, "stage": stage}, rate / 1e6)
        for name, level in (
            ("timestamp_seconds", 1.7e9),
            ("moves", 7.0),
            ("restarted_workers", 3.0),
            ("payback_seconds", 90.0),
            ("gain_ratio", 0.3),
            ("in_force_seconds", 0.7),
            ("running_seconds", 6.0),
            ("failed_tuples", 0.0),
        ):
            yield _operator(f"last_plan_{name}", mine, level)

    def _loop(self) -> Iterator[Played]:
        cluster = {"nimbus": NIMBUS}
        yield _operator("build_info", {"version": "0.1.0", "mode": "kubernetes", "instance": OPERATOR}, 1.0)
        yield _operator("leader", {}, 1.0)
        for name, level in (
            ("topologies", self.topologies),
            ("period_seconds", 30.0),
            ("passes_total", 1 / 30),
            ("failed_passes_total", 0.0),
            ("last_pass_age_seconds", 15.0),
            ("last_pass_duration_seconds", 2.0),
            ("metrics_completeness_ratio", 1.0),
            ("metrics_age_seconds", 3.0),
            ("metrics_problems", 0.0),
        ):
            yield _operator(name, cluster, level)
        yield _operator("omitted_series", {**cluster, "metric": "storm_operator_executor_cpu_demand_cores"}, 0.0)
        yield _operator("watch_age_seconds", {"kind": "StormTopologies"}, 5.0)
        yield from _durations("pass_duration_seconds", cluster)
        for step in ("observe", "forecast", "verify", "decide_and_apply", "cpu_limits"):
            yield from _durations("step_duration_seconds", {**cluster, "step": step})
        for peer, verb in PEERS:
            labels = {**cluster, "peer": peer, "verb": verb}
            yield from _durations("peer_call_duration_seconds", labels)
            yield _operator("peer_calls_total", {**labels, "outcome": "ok"}, 0.5)
        for host in self.hosts():
            seen = {**cluster, "supervisor": host}
            for name, level in (("capacity", 8.0), ("used", 3.0), ("demand", 5.0), ("overload", 0.0)):
                yield _operator(f"supervisor_cpu_{name}_cores", seen, level, 0.2)
            yield _operator("supervisor_measured", seen, 1.0)
            yield _operator("supervisor_executors", seen, 20.0)
            yield _operator("supervisor_workers", seen, 2.0)
            for target in self.hosts():
                pair = {**cluster, "source": host, "target": target}
                yield _operator("supervisor_traffic_tuples_per_second", pair, 40.0, 0.3)
        for name, level in (("process_cpu_seconds_total", 0.1), ("process_resident_memory_bytes", 3e8)):
            yield Played(name, {"instance": OPERATOR}, level, counter=name.endswith("_total"))


def _topology(number: int) -> str:
    return f"topology-{number:02d}"


def _topology_id(number: int) -> str:
    return f"{_topology(number)}-{number + 1}-1767268800"


def _operator(name: str, labels: dict[str, str], level: float, swing: float = 0.0) -> Played:
    return Played(f"storm_operator_{name}", labels, level, swing, counter=name.endswith("_total"))


def _latency(labels: dict[str, str]) -> Iterator[Played]:
    spout = {name: value for name, value in labels.items() if name != "port"}
    for bound in LATENCY_BUCKETS:
        share = 1 / (1 + (0.004 / bound) ** 2)
        yield Played("storm_complete_latency_seconds_bucket", {**spout, "le": f"{bound:g}"}, 50 * share, counter=True)
    yield Played("storm_complete_latency_seconds_bucket", {**spout, "le": "+Inf"}, 50.0, counter=True)
    yield Played("storm_complete_latency_seconds_count", spout, 50.0, counter=True)
    yield Played("storm_complete_latency_seconds_sum", spout, 0.3, counter=True)


def _durations(name: str, labels: dict[str, str]) -> Iterator[Played]:
    metric = BY_NAME[f"storm_operator_{name}"]
    for bound in metric.buckets:
        share = 1 / (1 + (0.2 / bound) ** 2)
        yield Played(f"{metric.name}_bucket", {**labels, "le": f"{bound:g}"}, 0.03 * share, counter=True)
    yield Played(f"{metric.name}_bucket", {**labels, "le": "+Inf"}, 0.03, counter=True)
    yield Played(f"{metric.name}_count", labels, 0.03, counter=True)
    yield Played(f"{metric.name}_sum", labels, 0.01, counter=True)
