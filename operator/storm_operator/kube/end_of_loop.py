"""What is released when the loop of a cluster ends for good: what fails is tried again, since nobody else will."""

from __future__ import annotations

from collections.abc import Callable

from storm_operator.adapters.errors import AdapterError
from storm_operator.control_loop import ControlLoop
from storm_operator.kube.cluster_care import ClusterCare
from storm_operator.paused_spouts import resume_before_the_end

PAUSES_SECONDS = (1.0, 2.0, 4.0)
"""It is tried after each of these, too. Of pods, what was asked for may be refused, or take the kubelet a moment; and a
request may be given back only after the limit. Together less than `runners.END_SECONDS`."""


def release_at_the_end(
    loop: ControlLoop,
    care: ClusterCare,
    confirm: Callable[[], None],
    say: Callable[[str], None],
    sleep: Callable[[float], object],
) -> None:
    """Resume paused spouts, give pods their CPU back, lift executors' limits. What is left at last is said.

    One answer that fails does not end it: what is left would be so for ever. `confirm` raises where another manages the
    cluster, which does end it.
    """

    def say_where(words: str) -> None:
        say(f"{care.nimbus}: {words}")

    if not is_done_at_last(confirm, say_where, sleep):
        say_of_spouts(loop, say_where)
        say_of_pods(care)
        say_of_limits(loop, say_where)
        return
    is_done_at_last(lambda: resume_before_the_end(loop, say), say_where, sleep)
    give_back_pods(care, confirm, sleep)
    if not is_done_at_last(loop.release, say_where, sleep):
        say_of_limits(loop, say_where)


def is_done_at_last(act: Callable[[], object], say: Callable[[str], None], sleep: Callable[[float], object]) -> bool:
    """Whether `act` came through and did not return False, tried so often at most; an answer that fails is said."""
    for seconds in (0.0, *PAUSES_SECONDS):
        sleep(seconds)
        try:
            if act() is not False:
                return True
        except AdapterError as error:
            say(str(error))
    return False


def give_back_pods(care: ClusterCare, confirm: Callable[[], None], sleep: Callable[[float], object]) -> None:
    """Supervisor pods get their own CPU again, until none is held. `confirm` raises where another manages the
    cluster."""

    def give_back() -> bool:
        confirm()
        return care.release_what_is_seen()

    def say(words: str) -> None:
        care.say(f"{care.nimbus}: {words}")

    care.limits.forget_refusals()
    if not is_done_at_last(give_back, say, sleep):
        say_of_pods(care)


def say_of_spouts(loop: ControlLoop, say: Callable[[str], None]) -> None:
    """Those that stay paused, if any."""
    if loop.paused:
        say(f"the spouts of {', '.join(loop.paused)} may stay paused; `storm activate NAME` resumes them")


def say_of_pods(care: ClusterCare) -> None:
    """Those that stay held, if any."""
    if care.limits.held:
        names = ", ".join("/".join(key) for key in sorted(care.limits.held))
        care.say(f"{care.nimbus}: pods {names} keep other CPU than their own, and nobody sees to them any more")


def say_of_limits(loop: ControlLoop, say: Callable[[str], None]) -> None:
    """Topologies whose executors stay held, if any."""
    if loop.memory.limited:
        names = ", ".join(sorted(loop.memory.limited))
        say(f"executors of {names} keep their CPU limits, and nobody sees to them any more")
