"""What is done for a topology, given what should be and what is."""

from __future__ import annotations

from dataclasses import replace

from storm_operator.core.lifecycle import Kill, Resume, RunningTopology, Submit, Suspend, Wait, fingerprint, next_action
from storm_operator.core.settings import SchedulingSettings
from storm_operator.core.topology_spec import AdoptSource, JarSource, TopologySpec

SPEC = TopologySpec(name="wc", source=JarSource("wc.jar", "a.B"))
PRINT = fingerprint(SPEC, "jar-1")
RUNNING = RunningTopology("wc-1-1", "wc", "ACTIVE", PRINT)


def test_missing_topology_is_submitted_once() -> None:
    assert next_action(SPEC, None, PRINT) == Submit(SPEC, PRINT)
    assert next_action(SPEC, RUNNING, PRINT) is None


def test_adopted_topology_is_waited_for_and_never_submitted() -> None:
    adopted = replace(SPEC, source=AdoptSource())
    assert isinstance(next_action(adopted, None, PRINT), Wait)
    assert next_action(adopted, RUNNING, "other") is None


def test_changed_jar_replaces_the_topology_and_changed_settings_do_not() -> None:
    assert isinstance(next_action(SPEC, RUNNING, fingerprint(SPEC, "jar-2")), Kill)
    tuned = replace(SPEC, scheduling=SchedulingSettings(policy="liu"))
    assert next_action(tuned, RUNNING, fingerprint(tuned, "jar-1")) is None


def test_topology_of_someone_else_is_not_replaced() -> None:
    assert next_action(SPEC, replace(RUNNING, fingerprint=None), PRINT) is None


def test_leaving_topology_is_waited_for() -> None:
    assert isinstance(next_action(SPEC, replace(RUNNING, status="KILLED"), PRINT), Wait)


def test_suspend_and_resume_are_said_once() -> None:
    suspended = replace(SPEC, suspend=True)
    inactive = replace(RUNNING, status="INACTIVE")
    assert next_action(suspended, RUNNING, PRINT) == Suspend("wc")
    assert next_action(suspended, inactive, PRINT) is None
    assert next_action(SPEC, inactive, PRINT) == Resume("wc")
    assert next_action(suspended, None, PRINT) is None


def test_topology_that_is_being_rebalanced_is_neither_suspended_nor_resumed() -> None:
    rebalanced = replace(RUNNING, status="REBALANCING")
    assert next_action(replace(SPEC, suspend=True), rebalanced, PRINT) is None
    assert next_action(SPEC, rebalanced, PRINT) is None


def test_adopted_topology_that_its_owner_deactivated_is_left_so() -> None:
    adopted = replace(SPEC, source=AdoptSource())
    inactive = replace(RUNNING, status="INACTIVE")
    assert next_action(adopted, inactive, PRINT) is None
    assert next_action(adopted, inactive, PRINT, suspended_by_us=True) == Resume("wc")
