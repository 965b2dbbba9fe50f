"""`storm-operator`: one program, a command for each part. A command's module is imported only when it is called.

The agent runs beside every supervisor and must stay small: it must not pay for numpy because `plan` needs it.
"""

from __future__ import annotations

import sys

from storm_operator.lazy_commands import LazyCommand, lazy_program

PROGRAM = "storm-operator"

COMMANDS: dict[str, LazyCommand] = {
    "run": LazyCommand("storm_operator.kube.run_command:run", "The operator in Kubernetes: manage StormTopologies."),
    "standalone": LazyCommand(
        "storm_operator.standalone_command:standalone", "Manage the topologies described in a folder."
    ),
    "status": LazyCommand(
        "storm_operator.cli_status:status", "What a running operator sees, and what it decided last."
    ),
    "explain": LazyCommand("storm_operator.cli_status:explain", "Why the last decision about a topology was made."),
    "plan": LazyCommand("storm_operator.cli_plan:plan", "Make a plan from a snapshot file: no cluster needed."),
    "check": LazyCommand(
        "storm_operator.cli_check:check", "Say whether StormTopology files are right: no cluster needed."
    ),
    "simulate": LazyCommand(
        "storm_operator.simulate_command:simulate", "Play a scenario on a simulated cluster: no Storm, no Java."
    ),
    "snapshot": LazyCommand("storm_operator.cli_snapshot:snapshot", "Write a snapshot of a live cluster."),
    "topology": LazyCommand(
        "storm_operator.cli_topology:app", "Storm's topologies by hand: list, activate, deactivate, kill, hand-back."
    ),
    "submit": LazyCommand(
        "storm_operator.kube.submit_command:submit", "Submit one topology and end: what the operator's Jobs run."
    ),
    "agent": LazyCommand("storm_operator.agent.commands:agent", "Measure one supervisor and enforce CPU limits there."),
    "local": LazyCommand("storm_operator.local.commands:app", "A real Storm cluster on this machine."),
    "demo": LazyCommand("storm_operator.demo.commands:demo", "Storm's own scheduler against storm-operator, live."),
}

app = lazy_program(
    PROGRAM,
    COMMANDS,
    "Places Apache Storm executors by live traffic and CPU, moves as few as possible, and can say why.",
)


def main() -> None:
    """The console script.

    Without stdout nothing is begun: what is opened next would have its number, and get what others write there.
    """
    if sys.stdout is None:
        sys.exit(f"{PROGRAM}: stdout is closed: say where the output goes, as with > /dev/null")
    app()
