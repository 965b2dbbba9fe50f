"""What the agents see right now: worker processes, executors at work, tuples waiting. Asked while a plan is applied."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from storm_operator.adapters.metrics.scrape import ScrapeError, Targets, fetch_text, parse_metrics
from storm_operator.core.metrics_window import SeriesKey
from storm_operator.core.model import WorkerSlot
from storm_operator.core.plan_progress import InFlight, Way
from storm_operator.core.plan_record import ExecutorKey, WorkerSeen

HOSTED = "storm_executor_queue_length"
AT_WORK = "storm_executor_cpu_seconds_total"  # only there once the executor's thread runs
WORKER = "storm_worker_info"
EXECUTED = "storm_task_executed_tuples_total"
AGE = "storm_worker_snapshot_age_seconds"
FAILED = "storm_executor_failed_tuples_total"
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
            supervisor_id = ids.get(key.label("supervisor"))
            if supervisor_id is None or key.name not in (WORKER, HOSTED, AT_WORK):
                continue
            slot = WorkerSlot(supervisor_id, int(key.label("port")))
            if key.name == WORKER:
                pids[slot] = int(key.label("pid"))
            else:
                group = hosted if key.name == HOSTED else at_work
                group.setdefault(slot, set()).add(_executor_key(key))
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

        Storm's own tick tuples are no part of those executed: they go on while the spouts are paused.
        """
        answers = self._answers_of(supervisor_ids)
        if None in answers:
            return None
        own = [(key, value) for key, value in _merged(answers) if key.label("topology_id") in topology_ids]
        components = _components(key for key, _ in own)
        executed: dict[Way, float] = {}
        for key, value in own:
            if key.name == EXECUTED and key.label("source_component") != STORM_ITSELF:
                task = key.label("topology_id"), key.label("task")
                way = task[0], key.label("source_component"), components.get(task, "")
                executed[way] = executed.get(way, 0.0) + value
        return InFlight(
            waiting=sum(value for key, value in own if key.name == HOSTED),
            executed=executed,
            cpu_seconds={str(key): value for key, value in own if key.name == AT_WORK},
            age_seconds=max((value for key, value in own if key.name == AGE), default=0.0),
        )

    def failures(self, topology_ids: Collection[str], supervisor_ids: Collection[str]) -> Mapping[str, float] | None:
        """Failed tuples so far, by counter: a spout that moved is counted by another counter from then on.

        None when an agent of these supervisors does not answer.
        """
        answers = self._answers_of(supervisor_ids)
        if None in answers:
            return None
        return {
            str(key): value
            for key, value in _merged(answers)
            if key.name == FAILED and key.label("topology_id") in topology_ids
        }

    def _answers_of(self, supervisor_ids: Collection[str]) -> Sequence[Readings | None]:
        """A supervisor that is gone has no agent to be asked."""
        ids = self._supervisor_ids()
        return _answers(url for host, url in self._targets().items() if ids.get(host) in supervisor_ids)


def _answers(urls: Iterable[str]) -> Sequence[Readings | None]:
    asked = sorted(urls)
    if not asked:
        return (None,)
    with ThreadPoolExecutor(len(asked), "probe") as pool:
        pages = list(pool.map(_fetch, asked))
    return [None if page is None else _parse(page) for page in pages]  # here: threads that parse are no quicker


def _merged(answers: Sequence[Readings | None]) -> Iterator[tuple[SeriesKey, float]]:
    for readings in answers:
        if readings is not None:
            yield from readings.items()


def _fetch(url: str) -> str | None:
    try:
        return fetch_text(url, TIMEOUT_SECONDS)
    except ScrapeError:
        return None


def _parse(page: str) -> Readings | None:
    try:
        return parse_metrics(page)
    except ScrapeError:
        return None


def _components(keys: Iterable[SeriesKey]) -> Mapping[tuple[str, str], str]:
    """The component of each task, by topology id and task."""
    found: dict[tuple[str, str], str] = {}
    for key in keys:
        if key.name == HOSTED:
            topology_id, first, last = _executor_key(key)
            found |= {(topology_id, str(task)): key.label("component") for task in range(first, last + 1)}
    return found


def _executor_key(key: SeriesKey) -> ExecutorKey:
    start, _, end = key.label("executor").partition("-")
    return key.label("topology_id"), int(start), int(end)
