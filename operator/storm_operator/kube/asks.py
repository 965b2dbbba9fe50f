"""What people ask of StormRebalances by annotation, or by deleting one, carried to the loop; and proposals kept over a
restart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from storm_operator.adapters.kube.errors import Conflict, KubernetesError, NotFound
from storm_operator.adapters.kube.resources import REBALANCES, OwnKinds
from storm_operator.control_loop import ControlLoop
from storm_operator.core.decision import Plan
from storm_operator.core.decision_memory import DecisionMemory
from storm_operator.core.plan_record import PlanState
from storm_operator.core.short_repr import short_repr
from storm_operator.core.way_back import is_tried_again
from storm_operator.kube.concerns import Concern, Concerns
from storm_operator.kube.kept_rebalance import NOT_WANTED_AGAIN
from storm_operator.kube.managed import Body, Registry, annotations_of, key_of
from storm_operator.kube.rebalances import (
    APPROVED,
    ASK_ANNOTATION,
    Ask,
    annotated_by,
    asked,
    cluster_of,
    is_way_back,
    plan_of,
    proposal_record,
    state_of,
)
from storm_operator.kube.shown_plans import ShownPlans
from storm_operator.plan_in_hand import STANDS, TAKEN_BACK_BY

WORDS = ", ".join(Ask)
DELETED = "its StormRebalance was deleted; the next pass proposes anew if that is due"


def follow_asks(
    shown: ShownPlans, kinds: OwnKinds, loop: ControlLoop, nimbus: str, say: Callable[[str], None], concerns: Concerns
) -> None:
    """Carry out each annotation once: it is removed, and the status says what came of it.

    One that cannot be removed is not carried out, and tried again slowly. A proposal whose StormRebalance was deleted
    is withdrawn: as long as it waited nobody could answer it, and no other would be shown.
    """
    registry = shown.registry
    for namespace, name in sorted(registry.take_deleted_proposals(nimbus)):
        waiting = loop.memory.proposals.named(name)
        if waiting is not None and shown.namespace_of(waiting.plan) == namespace:
            loop.desk.have_made_anew(name, DELETED)
    for body in registry.rebalances():
        ask = asked(body)
        if cluster_of(body) != nimbus:
            continue
        namespace, name = key_of(body)
        removable = Concern("AskNotRemoved", f"{namespace}/{name}")
        if ask is None:
            _tell_of_lost_ask(removable, body, kinds, say, concerns)
            continue
        # Removed first: an ask that is carried out and then repeated would be worse than one that must be repeated.
        removal = Removal(kinds, body)
        if not concerns.attempt(removable, removal, identity=str(ask)):
            continue
        if not removal.is_done:
            continue
        registry.replace_rebalance(body, _without_ask(body))  # the watch may tell of it only after the next pass
        answer = _carry_out(ask, body, loop, shown)
        say(f"{name}: {answer}" if not isinstance(ask, Ask) else f"{name}: {ask}: {answer}")
        status = {"message": answer}
        state = {WILL_BEGIN: APPROVED, GONE: PlanState.EXPIRED.value}.get(answer)
        if state is not None:
            status |= {"state": state, "reason": state}
        try:
            kinds.patch_status(REBALANCES, namespace, name, status)
        except KubernetesError as error:
            say(f"{name}: the answer could not be shown: {error}")


def _tell_of_lost_ask(
    removable: Concern, body: Body, kinds: OwnKinds, say: Callable[[str], None], concerns: Concerns
) -> None:
    """Where only the answer to its removal was lost nobody would else see that the ask came to nothing."""
    trouble = concerns.troubles.get(removable.key)
    if trouble is None:
        return
    namespace, name = key_of(body)
    why = f"its annotation is gone, and not by an answer ({trouble.message})"
    words = f"what was asked was not carried out: {why}; ask again"
    try:
        kinds.patch_status(REBALANCES, namespace, name, {"message": words})
    except KubernetesError as error:
        say(f"{name}: what became of an ask could not be shown: {error}")
        return
    say(f"{name}: {words}")
    concerns.settle(removable)


@dataclass(slots=True)
class Removal:
    """Takes the annotation away where it is still as seen: another ask, which came since, must not go with it."""

    kinds: OwnKinds
    body: Body
    is_done: bool = False

    def __call__(self) -> None:
        version = str(self.body["metadata"].get("resourceVersion", ""))
        try:
            self.kinds.annotate(REBALANCES, *key_of(self.body), {ASK_ANNOTATION: None}, version)
            self.is_done = True
        except (Conflict, NotFound):  # the watch will tell of what has changed, and the next pass sees it
            return


def _without_ask(body: Body) -> Body:
    metadata = body["metadata"]
    others = {name: value for name, value in annotations_of(body).items() if name != ASK_ANNOTATION}
    return {**body, "metadata": {**metadata, "annotations": others}}


UNDER_WAY = ("Applying", "InForce", "Settling")
WILL_BEGIN = "approved; it begins with the next pass"
FOREIGN = "the operator did not write this StormRebalance: nothing is asked of the plan of that name"
GONE = "it no longer stands: the cluster has changed since it was proposed"


def _carry_out(ask: Ask | str, body: Body, loop: ControlLoop, shown: ShownPlans) -> str:
    name, state = body["metadata"]["name"], state_of(body)
    if not isinstance(ask, Ask):
        return f"{ASK_ANNOTATION}: {short_repr(ask)} is not understood; it may be {WORDS}"
    if ask is Ask.ROLLBACK:
        return _roll_back(body, loop, shown)
    waiting = loop.memory.proposals.named(name)
    if waiting is not None and not shown.shows(body, waiting.plan):
        return FOREIGN
    # An approved one may wait for the end of an excluded window, while people think again.
    may_be_unsaid = state == APPROVED and waiting is not None and ask is not Ask.APPROVE
    if state != PlanState.PROPOSED.value and not may_be_unsaid:
        return f"it is {state}: only a Proposed plan can be asked to {ask}"
    if waiting is None:
        return GONE
    if ask is Ask.APPROVE:
        loop.desk.approve(name, annotated_by(body))
        return WILL_BEGIN
    if ask is Ask.REJECT:
        loop.desk.reject(waiting.plan, "rejected by annotation")
        return "rejected; its target is not proposed again"
    again = loop.desk.have_made_anew(name, "refresh was asked for; the next pass proposes anew if that is due")
    return f"withdrawn; plan {again.plan.id} waits in its place" if again else "withdrawn; the next pass proposes anew"


def _roll_back(body: Body, loop: ControlLoop, shown: ShownPlans) -> str:
    if state_of(body) != PlanState.VERIFIED.value:
        return f"it is {state_of(body)}: only a Verified plan can be rolled back"
    plan = plan_of(body) if shown.is_in_its_place(body) else None
    if plan is None:
        return "the operator did not write it, or not this version: only a plan of its own can be rolled back"
    back = loop.desk.propose_way_back(plan, annotated_by(body))
    return f"plan {back.id} goes back to where its executors were"


def close_lost(registry: Registry, kinds: OwnKinds, loop: ControlLoop, nimbus: str) -> None:
    """Plans that were begun and that no journal knows, as after ZooKeeper was set up anew: nobody will finish them.

    Of one whose way back is in the journal that is how it ended: the life that began that could tell nobody any more.
    """
    begun = {record.plan.id for record in loop.memory.records}
    ways_back = {record.rollback_of: record for record in loop.memory.records}
    for body in registry.rebalances():
        namespace, name = key_of(body)
        if cluster_of(body) == nimbus and state_of(body) in UNDER_WAY and name not in begun:
            state = PlanState.EXPIRED.value
            words = f"it was {state_of(body)}, and the journal in ZooKeeper does not know it: how it ended is not known"
            way_back = ways_back.get(name)
            if way_back is not None and is_tried_again(way_back):
                words = STANDS.format(way_back.plan.id)
            elif way_back is not None:
                state, words = PlanState.ROLLED_BACK.value, TAKEN_BACK_BY.format(way_back.plan.id)
            kinds.patch_status(REBALANCES, namespace, name, {"state": state, "reason": state, "message": words})


def seed_proposals(shown: ShownPlans, loop: ControlLoop, nimbus: str) -> None:
    """Proposals that an earlier life of the operator showed still wait; those approved then begin now.

    Of several for the same topologies the newest: that life could not write any more that the others are superseded.
    What was rejected, rolled back or asked back then is not proposed again; what the loop has in its hands already is
    left to it.
    """
    begun = {record.plan.id for record in loop.memory.records}
    for body in shown.registry.rebalances():
        if cluster_of(body) != nimbus or not shown.is_in_its_place(body):
            continue
        loop.memory.decisions = _with_unwanted(loop.memory.decisions, body)
        record = proposal_record(body)
        if record is None or record.plan.id in begun:
            continue
        if record.rollback_of:
            loop.memory.decisions = _with_left(loop.memory.decisions, record.plan)
        loop.desk.take_up(record)
        shown.take_up(body)


def _with_unwanted(known: DecisionMemory, body: Body) -> DecisionMemory:
    """What a plan that is over says of targets that nobody wants again: its own, or the one that it took back."""
    state, takes_back = state_of(body), is_way_back(body)
    if state not in NOT_WANTED_AGAIN and not (state == PlanState.VERIFIED.value and takes_back):
        return known  # to unpack it takes long
    plan = plan_of(body)
    if plan is None:
        return known
    if state not in NOT_WANTED_AGAIN:
        return _with_left(known, plan)
    return known.with_known_bad(plan.target, plan.created_at_seconds if state == PlanState.ROLLED_BACK.value else None)


def _with_left(known: DecisionMemory, way_back: Plan) -> DecisionMemory:
    return known.with_way_back(way_back, way_back.created_at_seconds)
