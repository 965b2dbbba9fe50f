"""`python -m storm_operator.agent`: the agent without the rest of the command line, so that it stays small."""

from __future__ import annotations

from storm_operator.agent.commands import agent
from storm_operator.lazy_commands import run_alone

if __name__ == "__main__":
    run_alone(agent)
