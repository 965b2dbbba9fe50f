"""What stays in the operator's memory of a StormRebalance: of plans that are over little is asked any more. Pure."""

from __future__ import annotations

from storm_operator.core.plan_record import PlanState
from storm_operator.kube.managed import Body
from storm_operator.kube.rebalances import FINAL_STATES, asked, is_way_back, state_of

FOR_PEOPLE = frozenset({"moves", "restartedWorkers", "keptWorkers", "cpuLimitsMillicores"})
"""Parts of the spec that the operator only writes: what it reads of a plan it reads from its text."""

NOT_WANTED_AGAIN = frozenset({PlanState.ROLLED_BACK.value, PlanState.REJECTED.value})
"""States of plans whose targets a loop that begins has to know; of a way back it has to know what that left."""


def as_kept(body: Body) -> Body:
    """`body`, without nearly all of its size where the plan is over and nobody asks anything of it.

    Whoever asks, by annotation, has the watch tell of it anew, with the plan.
    """
    if state_of(body) not in FINAL_STATES or asked(body) is not None:
        return body
    tells_what_is_unwanted = state_of(body) in NOT_WANTED_AGAIN or is_way_back(body)
    left_out = FOR_PEOPLE if tells_what_is_unwanted else FOR_PEOPLE | {"plan"}
    return {
        **body,
        "metadata": {name: value for name, value in body["metadata"].items() if name != "managedFields"},
        "spec": {name: value for name, value in body["spec"].items() if name not in left_out},
    }
