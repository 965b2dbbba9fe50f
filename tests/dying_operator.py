"""`storm-operator`, but it dies at one moment: `python dying_operator.py after:PlanStore.write_plan:1 run ...`.

A moment is before or after the n-th call of a method. It dies as by `kill -9`: nothing is tidied up, no thread ends.
"""

from __future__ import annotations

import functools
import itertools
import os
import signal
import sys
from typing import Any

from storm_operator.adapters.kube.resources import OwnKinds
from storm_operator.adapters.plan_store import PlanStore
from storm_operator.adapters.storm_cluster import PlanJournal, StormCluster
from storm_operator.cli import main
from storm_operator.cpu_limits import CpuLimits

CLASSES: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (OwnKinds, PlanStore, PlanJournal, StormCluster, CpuLimits)
}


def die_at(moment: str) -> None:
    """Wrap the method that `moment` names."""
    when, method, number = moment.split(":")
    kind, name = CLASSES[method.split(".")[0]], method.split(".")[1]
    original = getattr(kind, name)
    calls = itertools.count(1)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        is_the_one = next(calls) == int(number)
        if is_the_one and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = original(*args, **kwargs)
        if is_the_one and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(kind, name, wrapped)


if __name__ == "__main__":
    die_at(sys.argv.pop(1))
    main()
