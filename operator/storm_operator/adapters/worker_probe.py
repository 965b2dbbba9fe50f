"""What the agents see right now: worker processes, executors at work, tuples waiting. Asked while a plan is applied."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter

from storm_operator.adapters.metrics.page import ScrapeError, fetch_text
from storm_operator.adapters.metrics.scrape import Targets, check_supervisor, parse_metrics
from storm_operator.core.finite import is_measure
from storm_operator.core.metrics_window import SeriesKey
from storm_operator.core.model import WorkerSlot
from storm_operator.core.plan_progress import Component, InFlight, Way
from storm_operator.core.plan_record import ExecutorKey, WorkerSeen

HOSTED = "storm_executor_queue_length"
AT_WORK = "storm_executor_cpu_seconds_total"  # only there once the executor's thread runs
WORKER = "storm_worker_info"
EXECUTED = "storm_task_executed_tuples_total"
AGE = "storm_worker_snapshot_age_seconds"
FAILED = "storm_executor_failed_tuples_total"
LATENCY = "storm_complete_latency_seconds_sum"  # of every spout, whether its trees are acked or not, and of nobody else
MEASURES = frozenset({HOSTED, AT_WORK, EXECUTED, FAILED, AGE})
ASKED_FOR = MEASURES | {WORKER, LATENCY}
STORM_ITSELF = "__system"
TIMEOUT_SECONDS = 3.0

Readings = Mapping[SeriesKey, float]


class AgentProbe:
    """Asks every agent that a question is for, once. One that does not answer adds nothing: its workers are not seen.

    `targets` gives the agents' URLs by supervisor host, `supervisor_ids` the supervisor id by host.
    """

    def __init__(self, targets: Callable[[], Targets], supervisor_ids: Callable[[], Mapping[str, str]]) -> None:
        self._targets = targets
        self._supervisor_ids = supervisor_ids

    def workers(self, supervisor_ids: Collection[str]) -> Mapping[WorkerSlot, WorkerSeen]:
        """The workers on these supervisors whose agents answer, by slot."""
        ids = self._supervisor_ids()
        pids: dict[WorkerSlot, int] = {}
        hosted: dict[WorkerSlot, set[ExecutorKey]] = {}
        at_work: dict[WorkerSlot, set[ExecutorKey]] = {}
        for key, _ in _merged(self._answers_of(supervisor_ids)):
            supervisor_id, port = ids.get(key.label("supervisor")), key.whole("port")
            if supervisor_id is None or port is None:
                continue
            slot = WorkerSlot(supervisor_id, port)
            if key.name == WORKER and (pid := key.whole("pid")) is not None:
                pids[slot] = pid
            elif key.name in (HOSTED, AT_WORK) and (executor := _executor(key)) is not None:
                group = hosted if key.name == HOSTED else at_work
                group.setdefault(slot, set()).add(executor)
        return {
            slot: WorkerSeen(pid, frozenset(hosted.get(slot, ())), frozenset(at_work.get(slot, ())))
            for slot, pid in pids.items()
        }

    def sees_any(self, supervisor_ids: Collection[str]) -> bool:
        """Whether the agent of any of these supervisors answers."""
        return any(answer is not None for answer in self._answers_of(supervisor_ids))

    def tuples_in_flight(self, topology_ids: Collection[str], supervisor_ids: Collection[str]) -> InFlight | None:
        """What waits, was executed and took CPU in these topologies, which are on no other supervisors.

        None when one of their agents does not answer.

        Storm's own tick tuples are no part of those executed: they go on while the spouts are paused. What lies in
        spouts' queues does not wait: acks, ticks and flush tuples are no data.
        """
        answers = self._answers_of(supervisor_ids)
        if None in answers:
            return None
        own = [(key, value) for key, value in _merged(answers) if key.label("topology_id") in topology_ids]
        component_of = _Components(key for key, _ in own if key.name == HOSTED)
        executed: dict[Way, float] = {}
        for key, value in own:
            if key.name == EXECUTED and key.label("source_component") != STORM_ITSELF:
                way = key.label("topology_id"), key.label("source_component"), component_of.task(key)
                executed[way] = executed.get(way, 0.0) + value
        return InFlight(
            waiting=_waiting(own),
            executed=executed,
            cpu_seconds={str(key): value for key, value in own if key.name == AT_WORK},
            age_seconds=max((value for key, value in own if key.name == AGE), default=0.0),
            queues_of=frozenset(_executors_with_a_queue(own)),
        )

    def failures(self, topology_ids: Collection[str], supervisor_ids: Collection[str]) -> Mapping[str, float] | None:
        """Failed tuple trees so far, by counter: a spout that moved is counted by another counter from then on.

        What bolts fail is not added: that fails the tree, which its spout counts. None when an agent of these
        supervisors does not answer, or none shows a spout of a topology that counts.
        """
        answers = self._answers_of(supervisor_ids)
        if None in answers:
            return None
        own = [(key, value) for key, value in _merged(answers) if key.label("topology_id") in topology_ids]
        spouts = _spouts(own)
        counts = [(key, value) for key, value in own if key.name == FAILED]
        if {key.label("topology_id") for key, _ in counts} - {topology_id for topology_id, _ in spouts}:
            return None
        return {str(key): value for key, value in counts if _component(key) in spouts}

    def _answers_of(self, supervisor_ids: Collection[str]) -> Sequence[Readings | None]:
        """A supervisor that is gone has no agent to be asked."""
        ids = self._supervisor_ids()
        return _answers((host, url) for host, url in self._targets().items() if ids.get(host) in supervisor_ids)


def _waiting(readings: Sequence[tuple[SeriesKey, float]]) -> float:
    """Tuples in the queues of bolts and ackers.

    Where a topology batches, a flush tuple comes to each executor every millisecond, so that a bolt that does nothing
    else often has one: the first one of each is none of those that wait. That it batches is told by what lies in
    spouts' queues, where paused ones look a few times a second; a bolt that does not get on has two and more.
    """
    spouts = _spouts(readings)
    queues = [(_component(key), length) for key, length in readings if key.name == HOSTED]
    batching = {topology_id for (topology_id, name), length in queues if length and (topology_id, name) in spouts}
    return sum(max(0.0, length - (at[0] in batching)) for at, length in queues if at not in spouts)


def _executors_with_a_queue(readings: Iterable[tuple[SeriesKey, float]]) -> Iterator[ExecutorKey]:
    for key, _ in readings:
        if key.name == HOSTED and (executor := _executor(key)) is not None:
            yield executor


def _executor(key: SeriesKey) -> ExecutorKey | None:
    tasks = key.executor_tasks()
    return None if tasks is None else (key.label("topology_id"), *tasks)


def _spouts(readings: Iterable[tuple[SeriesKey, float]]) -> frozenset[Component]:
    return frozenset(_component(key) for key, _ in readings if key.name == LATENCY)


def _component(key: SeriesKey) -> Component:
    return key.label("topology_id"), key.label("component")


class _Components:
    """The component that executes at each task, by the executors that have a queue."""

    def __init__(self, hosted: Iterable[SeriesKey]) -> None:
        self._executors: dict[str, list[tuple[int, int, str]]] = {}
        for key in hosted:
            if (tasks := key.executor_tasks()) is not None:
                self._executors.setdefault(key.label("topology_id"), []).append((*tasks, key.label("component")))
        for executors in self._executors.values():
            executors.sort()

    def task(self, key: SeriesKey) -> str:
        """Of the task and the topology that the series is of; empty where no executor has it."""
        executors, task = self._executors.get(key.label("topology_id"), []), key.whole("task")
        at = 0 if task is None else bisect_right(executors, task, key=itemgetter(0))
        if task is None or at == 0 or executors[at - 1][1] < task:
            return ""
        return executors[at - 1][2]


def _answers(agents: Iterable[tuple[str, str]]) -> Sequence[Readings | None]:
    """By host and URL. Of nobody, one is missing."""
    asked = sorted(agents)
    if not asked:
        return (None,)
    with ThreadPoolExecutor(len(asked), "probe") as pool:
        pages = list(pool.map(lambda agent: _fetch(agent[1]), asked))
    # Here: threads that parse are no quicker.
    return [None if page is None else _parse(host, page) for (host, _), page in zip(asked, pages, strict=True)]


def _merged(answers: Sequence[Readings | None]) -> Iterator[tuple[SeriesKey, float]]:
    for readings in answers:
        if readings is not None:
            yield from readings.items()


def _fetch(url: str) -> str | None:
    try:
        return fetch_text(url, TIMEOUT_SECONDS)
    except ScrapeError:
        return None


def _parse(host: str, page: str) -> Readings | None:
    """None also of an agent that speaks of another supervisor, or shows a number that nobody can have measured."""
    try:
        readings = parse_metrics(page)
        check_supervisor(readings, host)
    except ScrapeError:
        return None
    if not all(is_measure(value) for key, value in readings.items() if key.name in MEASURES):
        return None
    return {key: value for key, value in readings.items() if key.name in ASKED_FOR}
