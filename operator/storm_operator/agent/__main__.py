"""`python -m storm_operator.agent`: the agent without the rest of the command line, so that it stays small."""

from __future__ import annotations

import typer

from storm_operator.agent.commands import agent

if __name__ == "__main__":
    typer.run(agent)
