"""What can go wrong when talking to Storm and ZooKeeper, as types that callers can tell apart.

Every message names the peer (host:port), topology or field concerned and says what would be right.
"""

from __future__ import annotations


class AdapterError(Exception):
    """Root of all errors that the adapters raise on purpose."""


class NimbusError(AdapterError):
    """Nimbus answered, but not with what was asked for."""


class NimbusUnreachable(NimbusError):
    """No Nimbus of the seeds accepted a connection, or none answered, within the time given."""


class NotLeader(NimbusError):
    """Nimbus answers, but none is a leader that is ready for work; usual for some seconds after a failover."""


class NotAuthorized(NimbusError):
    """Nimbus refuses the call for this user."""


class TopologyNotAlive(NimbusError):
    """The leader knows no such topology (confirmed: not the false alarm of a Nimbus that is just taking over)."""


class TopologyAlreadyAlive(NimbusError):
    """A topology of that name runs already."""


class InvalidTopology(NimbusError):
    """Nimbus refuses the topology or its configuration."""


class RebalanceRefused(NimbusError):
    """Nimbus refuses the rebalance, e.g. for a component or a number of executors that cannot be."""


class RebalanceInProgress(RebalanceRefused):
    """The topology is being rebalanced already; until that is over Nimbus neither rebalances, activates nor deactivates
    it."""


class ZooKeeperUnreachable(AdapterError):
    """No ZooKeeper server answered within the time given. Whether a write took place is then unknown."""


OUT_OF_REACH = (NimbusUnreachable, NotLeader, ZooKeeperUnreachable)
"""Errors of a peer that gave no answer. All others are an answer, which asking again seldom changes."""

PASSING = (*OUT_OF_REACH, RebalanceInProgress)
"""Errors that pass by themselves: a step that met one is tried again, however often."""


class MalformedDocument(AdapterError):
    """A document (from ZooKeeper, Nimbus or a caller) is not what it should be; names field and value."""


class UnknownComponent(AdapterError):
    """A list of components names one that the topology does not have, or names one twice with opposite meanings."""


class SubmissionError(AdapterError):
    """A topology could not be submitted. `log_tail` is the end of what the submitting JVM wrote, perhaps empty."""

    def __init__(self, message: str, log_tail: str = "") -> None:
        super().__init__(f"{message}\n{log_tail}".rstrip())
        self.log_tail = log_tail


class NotAJar(SubmissionError):
    """The file is missing, unreadable, or not a jar."""


class MainClassMissing(SubmissionError):
    """The main class is neither in the jar nor in Storm's class path, or has no `main` method."""


class SubmissionFailed(SubmissionError):
    """The main class threw, or ended without submitting anything."""


class SubmissionTimedOut(SubmissionError):
    """The main class did not end in time and was stopped."""
