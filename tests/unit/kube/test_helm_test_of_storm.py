"""`helm test` of the chart `storm` leaves no topology behind, whatever becomes of its pod."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

CHECK = Path(__file__).parents[3] / "charts" / "storm" / "test" / "check_cluster.py"

SCENE = """
import importlib.util, signal, sys
from unittest.mock import Mock
from storm_operator.adapters.errors import SubmissionFailed, TopologyNotAlive

path, becomes_of_it = sys.argv.pop(1), sys.argv.pop(1)
spec = importlib.util.spec_from_file_location("check_cluster", path)
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)

def submit(*_):
    if becomes_of_it == "told to end":
        signal.raise_signal(signal.SIGTERM)
    raise SubmissionFailed("it has no main method")

def kill(name, **_):
    print("killed", name, flush=True)
    if becomes_of_it != "told to end":
        raise TopologyNotAlive(name)

check.NimbusClient = lambda *_, **__: Mock(kill=kill)
check.registered = lambda *_: ("storm-supervisor-0",)
check.submit_jar = submit
sys.exit(check.main())
"""


def run(becomes_of_it: str) -> tuple[int, str]:
    """Exit code and output of the check."""
    options = ("--nimbus=n:6627", "--supervisors=1")
    command = (sys.executable, "-c", SCENE, str(CHECK), becomes_of_it, *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_one_that_is_told_to_end_while_it_submits_kills_what_may_have_got_into_storm() -> None:
    """As where `helm test` is run once more: that deletes the pod of the one before."""
    code, said = run("told to end")
    assert "killed helm-test-" in said
    assert code == 128 + signal.SIGTERM


def test_a_submission_that_fails_is_what_is_told() -> None:
    code, said = run("fails")
    assert (code, said.splitlines()[-1]) == (1, "FAILED: it has no main method")
