"""What goes wrong with the test cluster, told to a person."""

from __future__ import annotations


class KubeClusterError(Exception):
    """The test cluster cannot do what was asked; the message says what to change."""
