"""What the simulated cluster tells those who apply plans to it."""

from __future__ import annotations

from simulator_scene import all_on, cluster, executor, spout_and_bolts
from storm_operator.core.model import WorkerSlot
from storm_operator.simulated_cluster import SimulatedCluster
from storm_operator.simulator.engine import Engine
from storm_operator.simulator.model import SupervisorDies

BOTH = ("s1", "s2")


def test_a_worker_on_a_machine_that_is_dead_but_not_given_up_is_not_reported_as_running() -> None:
    model = cluster(spout_and_bolts(100.0, 1.0), supervisors=2, faults=(SupervisorDies("s2", 10.0, 30.0),))
    simulated = SimulatedCluster(Engine(model, all_on(model)))
    home, away = WorkerSlot("s1", 6700), WorkerSlot("s2", 6700)
    simulated.clock.sleep(15.0)
    simulated.engine.place(all_on(model).with_moves({executor(model, "b1"): away}))
    simulated.clock.sleep(10.0)
    assert set(simulated.workers(BOTH)) == {home}
    simulated.clock.sleep(6.0)
    assert set(simulated.workers(BOTH)) == {home}
    simulated.clock.sleep(20.0)
    assert set(simulated.workers(BOTH)) == {home, away}


def test_a_worker_ends_at_the_very_moment_at_which_its_machine_dies() -> None:
    model = cluster(spout_and_bolts(100.0, 1.0), faults=(SupervisorDies("s1", 10.0),))
    simulated = SimulatedCluster(Engine(model, all_on(model)))
    simulated.clock.sleep(9.0)
    assert simulated.workers(BOTH)
    simulated.clock.sleep(1.0)
    assert not simulated.workers(BOTH)
