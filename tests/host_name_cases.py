"""Host names of one cluster's supervisors, and what `status` and the page make of them."""

from __future__ import annotations

POD = "storm-supervisor-{}.storm-supervisor.storm.svc.cluster.local"

HOST_NAME_CASES = (
    ((POD.format(0), POD.format(1)), ("storm-supervisor-0", "storm-supervisor-1")),
    (("a.rack-1", "a.rack-2", "b.rack-1"), ("a.rack-1", "a.rack-2", "b.rack-1")),
    (("10.0.0.1", "10.0.1.1", "b.rack-1"), ("10.0.0.1", "10.0.1.1", "b")),
    (("2001:db8::1", "::ffff:10.0.0.1"), ("2001:db8::1", "::ffff:10.0.0.1")),
    (("a.rack-1", "a.rack-1", "b.rack-1"), ("a.rack-1", "a.rack-1", "b.rack-1")),
    (("a", "a.rack-1"), ("a", "a.rack-1")),
    ((".rack-1", "b.rack-1"), (".rack-1", "b.rack-1")),
    ((), ()),
)
"""(hosts, names)."""
