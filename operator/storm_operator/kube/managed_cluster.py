"""One Storm cluster as its resources want it: the parts that manage it, and one pass over all of them."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from storm_operator.adapters.errors import AdapterError, ZooKeeperUnreachable
from storm_operator.adapters.kube.clients import KubeClients
from storm_operator.assembly import Assembly, assemble
from storm_operator.console.watcher import Watcher
from storm_operator.control_loop import ControlLoop
from storm_operator.core.refusal import Refusal
from storm_operator.core.topology_spec import TopologySpec
from storm_operator.history.settings import HistoryRecorder, recorder_or_none
from storm_operator.kube.asks import follow_asks
from storm_operator.kube.calling_off import CallingOff
from storm_operator.kube.cluster_care import ClusterCare
from storm_operator.kube.connecting import FirstLook, RunnerSettings, discover, go_on_where_it_ended, remind
from storm_operator.kube.end_of_loop import release_at_the_end
from storm_operator.kube.idle_annotations import tell_of_idle_annotations
from storm_operator.kube.letting_go import LettingGo
from storm_operator.kube.managed import Body, Registry, Wishes, wishes_of
from storm_operator.kube.owners import Owners
from storm_operator.kube.profile_maps import ProfileMaps
from storm_operator.kube.publisher import Publisher
from storm_operator.kube.resize_news import resizes_pods
from storm_operator.kube.shown_plans import ShownPlans
from storm_operator.kube.sole_manager import SoleManager
from storm_operator.kube.status import status_of
from storm_operator.kube.submission import JobSubmitter
from storm_operator.kube.topology_views import view_of
from storm_operator.lifecycle_manager import LifecycleManager
from storm_operator.loop_ports import Audience, Listener
from storm_operator.operator_metrics import ClusterMetrics, OperatorMetrics, RunMode

FOLLOW_UP_SECONDS = 2.0
"""While topologies come or go Storm is asked so soon again, however long the period; later, if asking takes longer."""

ZOOKEEPER_PATIENCE_SECONDS = 120.0
"""While ZooKeeper does not answer Nimbus is asked so often where it is by now."""

HISTORY_END_SECONDS = 5.0
"""For the rest of the history, of the time in which a loop must end (`END_SECONDS`): the next recorder publishes what
this one could not, and a Lease that is not given back holds up everybody."""


@dataclass(slots=True)
class ManagedCluster:
    """All that knows one Nimbus. `gone` collects the uids of resources whose topology no longer needs us.

    What stands in its way is raised: `ManagedByAnother`, `AdapterError`.
    """

    nimbus: str
    registry: Registry
    kube: KubeClients
    settings: RunnerSettings
    say: Callable[[str], None]
    gone: set[str]
    is_ending: Callable[[], bool] = lambda: False
    metrics: OperatorMetrics = field(default_factory=lambda: OperatorMetrics(RunMode.KUBERNETES))
    """Of the whole operator."""
    sleep: Callable[[float], object] = time.sleep
    attended: Wishes = frozenset()
    look_again_at: float = math.inf
    """When those that come or go are to be looked at again, by the monotonic clock; infinity: there are none."""
    topologies_came_at: float = -math.inf
    """When one was last found to run that did not before, by the monotonic clock; minus infinity: none was."""
    silent_since: float = math.inf
    """Since when, by the monotonic clock, ZooKeeper has not answered, or when Nimbus was asked about that; infinity: it
    answers."""
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
    told: ClusterMetrics = field(init=False)

    def __post_init__(self) -> None:
        self.owners = Owners(self.nimbus, self.registry, self.gone, lambda: self.publisher)
        self.told = self.metrics.cluster(self.nimbus, self.owners.namespace_of, resizes_pods=True)
        self.manager = SoleManager(self.nimbus, self.say)
        self.know_nothing_yet()

    def know_nothing_yet(self) -> None:
        """Of the cluster, as at the start, and after another has managed it."""
        self.publisher = Publisher(
            self.kube.kinds,
            self.kube.events,
            self.registry,
            self.owners.of_id,
            self._hosts,
            self.say,
            ShownPlans(self.registry, self.owners.holder_of_id),
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
            lambda: self.lifecycle.awaited if self.lifecycle is not None else (),
            self.owners.left_alone,
        )
        self.submissions = CallingOff(self.care.concerns, self.owners.tell)
        self.letting_go = LettingGo(self.gone, self.submissions, self.care.concerns, self.owners.tell, self.say)

    @property
    def paused(self) -> tuple[str, ...]:
        """Ids of the topologies whose spouts a plan on its way into force pauses."""
        assembly = self.assembly
        return assembly.loop.paused if assembly is not None else ()

    def wishes(self) -> Wishes:
        """What owners want by now."""
        return wishes_of(self.registry.of_cluster(self.nimbus))

    def watcher(self) -> Watcher | None:
        """Who tells the page of this cluster; None without one."""
        return self.settings.page.watcher_of(self.nimbus) if self.settings.page else None

    def proposal(self, plan_id: str) -> Body | None:
        """The StormRebalance of a plan that waits for a person; None where none of that id does."""
        assembly = self.assembly  # the page asks from a thread of its own
        waiting = assembly.loop.memory.proposals.named(plan_id) if assembly is not None else None
        if waiting is None or waiting.approved_by:
            return None
        return self.publisher.shown.body_of(waiting.plan)

    def not_as_described(self) -> tuple[Refusal, ...]:
        """Why topologies of this cluster do not run (yet) as StormTopologies say, as far as is known now."""
        return (*self.owners.refused, *(self.lifecycle.not_as_described() if self.lifecycle is not None else ()))

    def run_pass(self) -> float | None:
        """One pass; returns the seconds from its beginning to that of the next; None where a peer was in its way."""
        try:
            assembly, lifecycle, specs = self._prepare_pass()
        except AdapterError as error:
            if self.assembly is not None:
                self.assembly.loop.tell_out_of_reach(error)
                self._note_silence(error)
            raise
        self.silent_since = math.inf
        report = assembly.loop.run_once(specs)
        if self.publisher.last_report is not None:
            self.manager.confirm()  # to observe and to search took long
            self.care.tell_of_moves(self.publisher.last_report, assembly.loop)
            self.care.follow(specs, self.publisher.last_report, assembly)
        self._publish(lifecycle)
        return assembly.loop.seconds_to_next if report.snapshot is not None else None

    def _note_silence(self, error: AdapterError) -> None:
        """ZooKeeper's servers may be others by now: then the next pass makes the parts anew."""
        if not isinstance(error, ZooKeeperUnreachable):
            return
        now = time.monotonic()
        self.silent_since = min(self.silent_since, now)
        if now - self.silent_since < ZOOKEEPER_PATIENCE_SECONDS:
            return
        self.silent_since = now
        with contextlib.suppress(AdapterError):
            if discover(self.nimbus, self.settings) != self.manager.connection:
                self.say(f"{self.nimbus}: it has another ZooKeeper than before: connecting anew")
                self.close()

    def _prepare_pass(self) -> tuple[Assembly, LifecycleManager, Mapping[str, TopologySpec]]:
        assembly, lifecycle, specs = self._follow_wishes()
        if specs:
            assembly.loop.period_seconds = shortest_period_seconds(specs)
        self.care.see(self.registry.of_cluster(self.nimbus))
        self.care.release()
        shown = self.publisher.shown
        follow_asks(shown, self.kube.kinds, assembly.loop, self.nimbus, self.say, self.care.concerns)
        return assembly, lifecycle, specs

    def attend(self) -> None:
        """As much of a pass as needs no measurement: nobody waits a whole period for a submission to begin."""
        _, lifecycle, _ = self._follow_wishes()
        self.care.release()
        self._publish(lifecycle)

    def _follow_wishes(self) -> tuple[Assembly, LifecycleManager, Mapping[str, TopologySpec]]:
        """Submit, replace, suspend, kill: what the resources want. Returns the specs of those that are managed."""
        began = time.monotonic()
        self.attended = self.wishes()
        self.registry.note_question(self.nimbus, time.time())
        self.owners.look()
        self.submissions.follow_moves(self.nimbus, self.registry.topologies(), self.submitter)
        assembly, lifecycle = self._connect()
        self._go_on_with_plan(assembly)
        self.registry.note_question(self.nimbus, time.time())  # anew, if it went on with a plan meanwhile
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
        if lifecycle.come:
            self.topologies_came_at = ended
        is_at_rest = have_ended and have_left and not lifecycle.is_under_way
        rest_seconds = lifecycle.next_try_at_seconds - time.time() if is_at_rest else 0.0
        self.look_again_at = ended + max(FOLLOW_UP_SECONDS, ended - began, rest_seconds)
        return assembly, lifecycle, specs

    def _go_on_with_plan(self, assembly: Assembly) -> None:
        """First, where one was cut short: its spouts may be paused, and all else may take long, or fail."""
        if not assembly.loop.being_moved:
            return
        asked = self.registry.unanswered(self.nimbus)
        self.registry.note_answer(self.nimbus)  # a loop that is busy waits for nobody
        try:
            assembly.loop.carry_on()
        except AdapterError:
            if asked is not None:
                self.registry.note_question(self.nimbus, asked.since_seconds)
            raise

    def _connect(self) -> tuple[Assembly, LifecycleManager]:
        """The parts, made at the first pass that finds Nimbus: it says where its ZooKeeper is."""
        if self.assembly is None or self.lifecycle is None:
            with self.first_look.attempt():
                self.assembly = self._assembled(self._go_on)
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

    def _assembled(self, take_up: Callable[[ControlLoop], None]) -> Assembly:
        """`take_up` is told of the loop what an earlier life of the operator left."""
        connection = discover(self.nimbus, self.settings)
        self.registry.note_answer(self.nimbus)
        self.other_nimbuses = connection.nimbus[1:]
        self.manager.take(connection, self.settings.pod)
        self.recorder = self.recorder or recorder_or_none(self.settings.history, self.nimbus, self.say)
        watcher = self.watcher()
        if watcher is not None:
            self.care.counts.onlooker = watcher.on_held_resizes
            watcher.refused = self.not_as_described
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
            is_ending=self.is_ending,
        )
        self.assembly = assembly  # to go on with a plan is to open pods, and to name hosts
        try:
            take_up(assembly.loop)
        except BaseException:
            assembly.close()
            self.assembly = None
            raise
        return assembly

    def _go_on(self, loop: ControlLoop) -> None:
        self.care.see(self.registry.of_cluster(self.nimbus))
        namespaces = tuple({one.key[0] for one in self.owners.by_name.values()})
        go_on_where_it_ended(loop, self.nimbus, self.publisher.shown, self.kube.kinds, namespaces)

    def take_over(self) -> None:
        """Where invalid resources were managed, and no valid one names the cluster: know what an earlier life of the
        operator left there, for `release`."""

        def take_up(loop: ControlLoop) -> None:
            self.care.see(self.registry.were_on(self.nimbus))
            loop.take_over()

        self.assembly = self._assembled(take_up)

    def _profiles(self) -> ProfileMaps:
        return ProfileMaps(
            self.nimbus,
            self.kube.config_map_text,
            lambda name: self.owners.by_name[name].key[0],
            self.settings.learned_profile,
        )

    def release(self) -> None:
        """Nobody asks for this cluster any more, and nobody watches it: no executor is held to what it once needed.

        Nor do spouts stay paused for a plan that was cut short: perhaps nobody ever asks again.
        """
        self.owners.by_name = {}
        self.submissions.follow_moves(self.nimbus, self.registry.topologies(), self.submitter)
        if self.assembly is not None:
            release_at_the_end(self.assembly.loop, self.care, self.manager.confirm, self.say, self.sleep)

    def close(self) -> None:
        """All but the lock; a new pass makes the parts anew."""
        if self.assembly is not None:
            self.assembly.close()
            self.assembly = None
        if self.recorder is not None:
            self.recorder.close(HISTORY_END_SECONDS)
            self.recorder = None
        self.lifecycle = None

    def _publish(self, lifecycle: LifecycleManager) -> None:
        watcher = self.watcher()
        if watcher is not None:
            watcher.look_again()
        agents = self.assembly.metrics.by_host if self.assembly is not None else {}
        for name, one in self.owners.by_name.items():
            if one.spec is not None:
                view = view_of(name, one, self.publisher, self.care, lifecycle, self.submitter, agents)
                self.publisher.write_status(one, status_of(view))
                self.publisher.trim_history(one, one.spec.rebalance_history_limit)
        tell_of_idle_annotations(
            self.owners.by_name.values(), self.registry.rebalances(), self.nimbus, self.kube.events
        )

    def _hosts(self) -> Mapping[str, str]:
        if self.assembly is None:
            return {}
        return {supervisor_id: host for host, supervisor_id in self.assembly.storm.supervisor_ids().items()}


def shortest_period_seconds(specs: Mapping[str, TopologySpec]) -> float:
    """How long a period is in which all of these are looked at; infinity where there is none."""
    return min((spec.scheduling.period_seconds for spec in specs.values()), default=math.inf)
