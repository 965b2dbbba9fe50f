"""One Storm cluster's loop over all StormTopology resources that name its Nimbus."""

from __future__ import annotations

import contextlib
import math
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from storm_operator.adapters.errors import AdapterError
from storm_operator.adapters.kube.clients import KubeClients
from storm_operator.adapters.kube.errors import KubernetesError
from storm_operator.adapters.manager_lock import HolderAwaited, ManagedByAnother
from storm_operator.assembly import Assembly, assemble
from storm_operator.console.watcher import Watcher
from storm_operator.core.backoff import Retry, put_off
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.history.settings import HistoryRecorder, recorder_or_none
from storm_operator.kube.asks import follow_asks
from storm_operator.kube.calling_off import CallingOff
from storm_operator.kube.cluster_care import ClusterCare
from storm_operator.kube.connecting import FirstLook, RunnerSettings, discover, go_on_where_it_ended, remind
from storm_operator.kube.letting_go import LettingGo
from storm_operator.kube.managed import Registry, Wishes, wishes_of
from storm_operator.kube.owners import Owners
from storm_operator.kube.pod_limits import problem_reason
from storm_operator.kube.profile_maps import ProfileMaps
from storm_operator.kube.publisher import Publisher
from storm_operator.kube.resize_news import resizes_pods
from storm_operator.kube.sole_manager import AWAITED_LOOK_SECONDS, SoleManager, describe
from storm_operator.kube.status import status_of
from storm_operator.kube.submission import JobSubmitter
from storm_operator.kube.topology_views import view_of
from storm_operator.lifecycle_manager import LifecycleManager
from storm_operator.loop_ports import Audience, Listener, report_of_unseen
from storm_operator.operator_metrics import ClusterMetrics, OperatorMetrics, RunMode

LONGEST_RETRY_SECONDS = 10.0
LOOK_SECONDS = 0.5
"""Between passes it is looked so often whether anybody wants something new."""
FOLLOW_UP_SECONDS = 2.0
"""While topologies come or go Storm is asked so soon again, however long the period; later, if asking takes longer."""


@dataclass(slots=True)
class ClusterRunner:
    """Pass after pass for one Nimbus. `gone` collects the uids of resources whose topology no longer needs us."""

    nimbus: str
    registry: Registry
    kube: KubeClients
    settings: RunnerSettings
    say: Callable[[str], None]
    gone: set[str]
    last_pass_at: float = field(default_factory=time.monotonic)
    next_pass_at: float = 0.0
    """When the one after that is due, by the same clock."""
    came_through_at: float = math.inf
    """When the last pass began, by the same clock; infinity if it failed: then a pause of its own comes first."""
    look_again_at: float = math.inf
    """When those that come or go are to be looked at again, before the next pass; infinity: there are none."""
    owners: Owners = field(init=False)
    assembly: Assembly | None = None
    lifecycle: LifecycleManager | None = None
    submitter: JobSubmitter | None = None
    other_nimbuses: tuple[str, ...] = ()
    """Where another may lead, as of the last connection."""
    recorder: HistoryRecorder | None = None
    first_look: FirstLook = field(default_factory=FirstLook)
    publisher: Publisher = field(init=False)
    care: ClusterCare = field(init=False)
    submissions: CallingOff = field(init=False)
    letting_go: LettingGo = field(init=False)
    manager: SoleManager = field(init=False)
    stop: threading.Event = field(default_factory=threading.Event)
    attended: Wishes = frozenset()
    unforeseen: Retry | None = None
    """How often in a row it failed for a reason that nobody foresaw."""
    metrics: OperatorMetrics = field(default_factory=lambda: OperatorMetrics(RunMode.KUBERNETES))
    """Of the whole operator."""
    told: ClusterMetrics = field(init=False)

    def __post_init__(self) -> None:
        self.owners = Owners(self.nimbus, self.registry, self.gone, lambda: self.publisher)
        self.told = self.metrics.cluster(self.nimbus, self.owners.namespace_of, resizes_pods=True)
        self.manager = SoleManager(self.nimbus, self.say)
        self._know_nothing_yet()

    def _know_nothing_yet(self) -> None:
        """Of the cluster, as at the start, and after another has managed it."""
        self.publisher = Publisher(
            self.kube.kinds, self.kube.events, self.registry, self.owners.of_id, self._hosts, self.say
        )
        self.care = ClusterCare(
            self.nimbus,
            self.kube.pods,
            self._hosts,
            self.owners.tell,
            self.say,
            self.told.resize_asked,
            self.owners.namespace_of,
            lambda: any(map(resizes_pods, self.owners.specs().values())),
        )
        self.submissions = CallingOff(self.care.concerns, self.owners.tell)
        self.letting_go = LettingGo(self.gone, self.submissions, self.say)

    def run(self, stop: threading.Event) -> None:
        """Until `stop`. Topologies are left running under the plans in force, with limits while anybody asks."""
        self._watcher()  # from now on the page lists the cluster, whether it can be reached or not
        self.stop = stop
        while not stop.is_set():
            started = time.monotonic()
            self.manager.awaits = False
            self.look_again_at = math.inf
            period = self._whatever_happens(self.run_pass)
            ended = time.monotonic()
            self.came_through_at = math.inf if period is None else started
            until = started + (self._retry_seconds() if period is None else period)
            if self.unforeseen is None:  # else, when that goes on, /healthz says that there was no pass for long
                self.last_pass_at, self.next_pass_at = ended, until
            if not self.manager.awaits:
                self._note_pass(ended - started, period)
            self._rest(stop, until)
        if not self.registry.of_cluster(self.nimbus):
            self._whatever_happens(self._release)
        self.close()

    @property
    def paused(self) -> tuple[str, ...]:
        """Ids of the topologies whose spouts a plan on its way into force pauses."""
        assembly = self.assembly
        return assembly.loop.paused if assembly is not None else ()

    def _release(self) -> None:
        """Nobody asks for this cluster any more, and nobody watches it: no executor is held to what it once needed."""
        self.owners.by_name = {}
        if self.assembly is not None:
            self.manager.confirm()
            self.care.release()
            self.assembly.loop.release()

    def _retry_seconds(self) -> float:
        """After a failure: a period of its resources, if not too long; later, if Kubernetes refused the start.

        Ever later, too, after what nobody foresaw.
        """
        if self.unforeseen is not None:
            return self.unforeseen.pause_seconds
        if self.manager.awaits:
            return AWAITED_LOOK_SECONDS
        periods = [one.spec.scheduling.period_seconds for one in self.registry.of_cluster(self.nimbus) if one.spec]
        return self.first_look.pause_seconds(min([LONGEST_RETRY_SECONDS, *periods]))

    def _whatever_happens(self, act: Callable[[], float | None]) -> float | None:
        """As `_unless_out_of_reach`; an error that nobody foresaw does not end the loop, and with it all others."""
        try:
            period = self._unless_out_of_reach(act)
        except Exception as error:
            self.unforeseen = put_off(self.unforeseen, "", time.monotonic())
            self.say(f"{self.nimbus}: {''.join(traceback.format_exception(error))}")
            words = f"the operator failed ({type(error).__name__}: {error}); its log says where; please report it"
            self.registry.note_obstacle(self.nimbus, words)
            with contextlib.suppress(Exception):  # it may be the telling that failed
                self.owners.tell_trouble(words, "OperatorFailed")
            return None
        self.unforeseen = None
        return period

    def _unless_out_of_reach(self, act: Callable[[], float | None]) -> float | None:
        """What `act` returns; None when a peer is in its way, which the resources' statuses then say."""
        try:
            return act()
        except (ManagedByAnother, AdapterError) as error:
            self.registry.note_obstacle(self.nimbus, str(error))
            self._tell_obstacle(error)
            return None

    def _tell_obstacle(self, error: ManagedByAnother | AdapterError) -> None:
        if isinstance(error, HolderAwaited):
            return  # most often a dead operator's session, which ends in some seconds
        if isinstance(error, ManagedByAnother):
            self._tell_page(describe(error.holder, self.nimbus))
            self._leave_to(error)
            return
        if self.assembly is None:
            self._tell_page(str(error))
        self.say(f"{self.nimbus}: {error}")
        reason = "KubernetesRefused" if isinstance(error, KubernetesError) else "ClusterUnreachable"
        self.owners.tell_trouble(str(error), reason)

    def _watcher(self) -> Watcher | None:
        return self.settings.page.watcher_of(self.nimbus) if self.settings.page else None

    def _tell_page(self, why: str) -> None:
        """That the cluster is not seen, where there is no loop that could tell."""
        watcher = self._watcher()
        if watcher is not None:
            watcher.on_pass(report_of_unseen(time.time(), why))

    def _leave_to(self, other: ManagedByAnother) -> None:
        """Once that one has gone, this loop begins as after a restart."""
        if self.manager.has_lost:
            self._close_parts()
            self._know_nothing_yet()
        self.manager.tell(self.owners.by_name.values(), self.publisher, other)

    def _note_pass(self, seconds: float, period_seconds: float | None) -> None:
        """`period_seconds` None: a peer was in the pass' way."""
        report = self.publisher.last_report
        snapshot = report.snapshot if report is not None else None
        failed = period_seconds is None or snapshot is None
        self.told.pass_ended(seconds, failed, len(self.owners.by_name), period_seconds or self._retry_seconds())
        if snapshot is not None:
            problems = self.care.limits.problems_of([supervisor.host for supervisor in snapshot.supervisors])
            self.told.resize_problems(map(problem_reason, problems.values()))

    def _rest(self, stop: threading.Event, until: float) -> None:
        """Until the next pass is due. New and changed resources are attended to once they have come to rest, and those
        that come or go again and again."""
        before = self.attended
        while not stop.wait(max(0.0, min(LOOK_SECONDS, until - time.monotonic()))):
            if time.monotonic() >= until:
                return
            now = self._wishes()
            if now == before and self.lifecycle is not None and (now != self.attended or self._is_to_look_again()):
                self.look_again_at = time.monotonic() + self._retry_seconds()  # if it fails
                self._whatever_happens(self.attend)
                until = min(until, self.came_through_at + shortest_period_seconds(self.owners.specs()))
            before = now

    def _is_to_look_again(self) -> bool:
        """Not after what nobody foresaw: that would go on ever more slowly, and a look that succeeds would hide it."""
        return self.unforeseen is None and time.monotonic() >= self.look_again_at

    def _wishes(self) -> Wishes:
        return wishes_of(self.registry.of_cluster(self.nimbus))

    def close(self) -> None:
        self._close_parts()
        self.manager.close()  # last: whoever waits for the lock begins at once

    def _close_parts(self) -> None:
        if self.assembly is not None:
            self.assembly.close()
            self.assembly = None
        if self.recorder is not None:
            self.recorder.close()
            self.recorder = None
        self.lifecycle = None

    def run_pass(self) -> float:
        """One pass; returns the seconds from its beginning to that of the next."""
        try:
            assembly, lifecycle, specs = self._prepare_pass()
        except AdapterError as error:
            if self.assembly is not None:
                self.assembly.loop.tell_out_of_reach(error)
            raise
        assembly.loop.run_once(specs)
        if self.publisher.last_report is not None:
            self.manager.confirm()  # to observe and to search took long
            self.care.tell_of_moves(self.publisher.last_report, self.publisher.last_record, assembly.loop)
            self.care.follow(specs, self.publisher.last_report, assembly)
        self._publish(lifecycle)
        return assembly.loop.period_seconds

    def _prepare_pass(self) -> tuple[Assembly, LifecycleManager, Mapping[str, TopologySpec]]:
        assembly, lifecycle, specs = self._follow_wishes()
        if specs:
            assembly.loop.period_seconds = shortest_period_seconds(specs)
        self.care.see(self.registry.of_cluster(self.nimbus))
        self.care.release()
        follow_asks(self.registry, self.kube.kinds, assembly.loop, self.nimbus, self.say, self.care.concerns)
        return assembly, lifecycle, specs

    def attend(self) -> None:
        """As much of a pass as needs no measurement: nobody waits a whole period for a submission to begin."""
        _, lifecycle, _ = self._follow_wishes()
        self.care.release()
        self._publish(lifecycle)

    def _follow_wishes(self) -> tuple[Assembly, LifecycleManager, Mapping[str, TopologySpec]]:
        """Submit, replace, suspend, kill: what the resources want. Returns the specs of those that are managed."""
        began = time.monotonic()
        self.attended = self._wishes()
        self.registry.note_question(self.nimbus, time.time())
        self.owners.look()
        assembly, lifecycle = self._connect()
        self.registry.note_question(self.nimbus, time.time())  # anew, if it went on with a plan while it connected
        owners = tuple(self.owners.by_name.values())
        have_ended = self.submissions.follow_pauses(owners, self.submitter)
        have_left = self.letting_go.follow(owners, assembly, self.submitter)
        specs = self.owners.specs()
        for name in specs:
            remind(lifecycle, name, self.owners.by_name[name])
        lifecycle.step(specs, time.time(), assembly.loop.being_moved)
        for name, words in lifecycle.repairs.items():
            self.owners.tell(name, "Drift", words, True)
        self.registry.note_answer(self.nimbus)
        ended = time.monotonic()
        is_at_rest = have_ended and have_left and not lifecycle.is_under_way
        self.look_again_at = math.inf if is_at_rest else ended + max(FOLLOW_UP_SECONDS, ended - began)
        return assembly, lifecycle, specs

    def _connect(self) -> tuple[Assembly, LifecycleManager]:
        """The parts, made at the first pass that finds Nimbus: it says where its ZooKeeper is."""
        if self.assembly is None or self.lifecycle is None:
            with self.first_look.attempt():
                self.assembly = self._assembled()
            self.submitter = JobSubmitter(
                self.kube.jobs,
                self.settings.jobs,
                lambda name: self.owners.by_name[name],
                self.kube.config_map_text,
                self.other_nimbuses,
            )
            self.lifecycle = self.assembly.lifecycle(self.say, self.submitter)
            self.lifecycle.before_suspending = self.owners.note_suspension
        self.manager.confirm()
        return self.assembly, self.lifecycle

    def _assembled(self) -> Assembly:
        connection = discover(self.nimbus, self.settings)
        self.registry.note_answer(self.nimbus)
        self.other_nimbuses = connection.nimbus[1:]
        self.manager.take(connection, self.settings.pod)
        self.recorder = self.recorder or recorder_or_none(self.settings.history, self.nimbus, self.say)
        watcher = self._watcher()
        if watcher is not None:
            self.care.counts.onlooker = watcher.on_held_resizes
        onlookers: tuple[Listener | None, ...] = (self.publisher, self.told, self.recorder, watcher)
        audience = Audience(tuple(one for one in onlookers if one is not None), self.say)
        calls, profiles = self.metrics.calls(self.nimbus), self._profiles()
        assembly = assemble(
            connection,
            audience,
            machines=self.care,
            profiles=profiles,
            calls=calls,
            confirm=self.manager.confirm,
            is_ending=self.stop.is_set,
        )
        self.assembly = assembly  # to go on with a plan is to open pods, and to name hosts
        try:
            self.care.see(self.registry.of_cluster(self.nimbus))
            namespaces = tuple({one.key[0] for one in self.owners.by_name.values()})
            go_on_where_it_ended(assembly.loop, self.nimbus, self.registry, self.kube.kinds, namespaces)
        except BaseException:
            assembly.close()
            self.assembly = None
            raise
        return assembly

    def _profiles(self) -> ProfileMaps:
        return ProfileMaps(
            self.nimbus,
            self.kube.config_map_text,
            lambda name: self.owners.by_name[name].key[0],
            self.settings.learned_profile,
        )

    def _publish(self, lifecycle: LifecycleManager) -> None:
        agents = self.assembly.metrics.by_host if self.assembly is not None else {}
        for name, one in self.owners.by_name.items():
            if one.spec is not None:
                view = view_of(name, one, self.publisher, self.care, lifecycle, self.submitter, agents)
                self.publisher.write_status(one, status_of(view))
                self.publisher.trim_history(one, one.spec.rebalance_history_limit)

    def _hosts(self) -> Mapping[str, str]:
        if self.assembly is None:
            return {}
        return {supervisor_id: host for host, supervisor_id in self.assembly.storm.supervisor_ids().items()}


def shortest_period_seconds(specs: Mapping[str, TopologySpec]) -> float:
    """How long a period is in which all of these are looked at; infinity where there is none."""
    return min((spec.scheduling.period_seconds for spec in specs.values()), default=math.inf)
