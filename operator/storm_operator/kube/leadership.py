"""Holds the lease for as long as the process lives; a process that loses it must end at once."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from storm_operator.adapters.kube.errors import Forbidden, KubernetesError, Refused
from storm_operator.adapters.kube.leases import Lease, LeaseTerms
from storm_operator.core.backoff import Retry, put_off

LAST_MOMENT_SECONDS = 1.0
"""So long before the lease lapses the process ends, even in the middle of a renewal."""

HAND_OVER_SECONDS = 0.001
"""A thread that has Python's lock gives it to those that wait for it after so long, not after the usual 5 ms: a renewal
waits for it a dozen times, each time for all the loops that are reading metrics just then."""


def wait_for_leadership(
    lease: Lease, terms: LeaseTerms, stop: threading.Event, say: Callable[[str], None]
) -> float | None:
    """Block until the lease is held; since when, by `time.monotonic`. None when `stop` came first.

    A refusal is asked about ever more slowly.
    """
    told = False
    refused: Retry | None = None
    while not stop.is_set():
        pause_seconds = terms.renew_seconds
        asked_at = time.monotonic()
        try:
            if lease.hold():
                return asked_at
            if not told:
                say(f"another replica holds lease {terms.namespace}/{terms.name}; waiting")
                told = True
            refused = None
        except (Forbidden, Refused) as error:
            say(str(error))
            refused = put_off(refused, "", time.monotonic())
            pause_seconds = refused.pause_seconds
        except KubernetesError as error:
            say(str(error))
        stop.wait(pause_seconds)
    return None


def lead_under(
    lease: Lease,
    terms: LeaseTerms,
    held_since: float,
    lead: Callable[[], bool],
    lost: Callable[[str], None],
    say: Callable[[str], None],
) -> None:
    """Run `lead` under the lease that is held. It is renewed until nobody acts any more, and only then given back.

    `lead` returns whether all that acts has ended. If not, `lost` is called: it must end the process, and the lease is
    left to lapse after that.
    """
    sys.setswitchinterval(HAND_OVER_SECONDS)
    done = threading.Event()
    keep = (lease, terms, held_since, done, lost, say)
    keeper = threading.Thread(target=keep_leadership, args=keep, name="lease", daemon=True)
    keeper.start()
    all_ended = lead()
    if not all_ended:
        lost("a loop has not come to its end in time")
    done.set()
    keeper.join()  # a renewal that is under way would take back what is released
    if all_ended:
        lease.release()


def keep_leadership(
    lease: Lease,
    terms: LeaseTerms,
    held_since: float,
    stop: threading.Event,
    lost: Callable[[str], None],
    say: Callable[[str], None],
) -> None:
    """Renew until `stop`. `lost` is called before another replica may take over: it must end the process."""
    try:
        _renew(lease, terms, held_since, stop, lost, say)
    except Exception as error:  # a thread that just ended here would leave two replicas that act
        lost(f"lease {terms.namespace}/{terms.name} cannot be renewed any more: {type(error).__name__}: {error}")


def _renew(
    lease: Lease,
    terms: LeaseTerms,
    held_since: float,
    stop: threading.Event,
    lost: Callable[[str], None],
    say: Callable[[str], None],
) -> None:
    too_late = f"lease {terms.namespace}/{terms.name} could not be renewed in time"
    held_until = held_since + terms.duration_seconds
    while not stop.wait(terms.renew_seconds):
        asked_at = time.monotonic()
        # A renewal can hang for longer than the lease lasts: the client tries again by itself.
        watchdog = threading.Timer(held_until - LAST_MOMENT_SECONDS - asked_at, lost, [too_late])
        watchdog.daemon = True
        watchdog.start()
        try:
            # A conflict may be with our own renewal, which the client sent again: the second look tells who holds it.
            if not lease.hold() and not lease.hold():
                lost(f"lease {terms.namespace}/{terms.name} was taken by another replica")
                return
            held_until = asked_at + terms.duration_seconds
        except KubernetesError as error:
            say(str(error))
        finally:
            watchdog.cancel()
        if time.monotonic() > held_until - terms.renew_seconds:
            lost(too_late)
            return
