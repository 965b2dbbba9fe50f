"""Writes docs/reference/policies.md from the registry of placement policies; `--check` only compares them."""

from __future__ import annotations

import sys
from pathlib import Path

from reference_page import keep

from storm_operator.core.placement.parameters import Parameter, Parameters
from storm_operator.core.placement.registry import POLICIES, parameters_of

PAGE = Path(__file__).parent.parent / "docs/reference/policies.md"
COMMAND = ".venv/bin/python .ci/policy_reference.py"
HEAD = f"""# Numbers of the placement policies

<!-- Made from the modules in operator/storm_operator/core/placement by
`{COMMAND}`: edit those, not this page. -->

What `spec.scheduling.parameters` (`parameters.NAME=VALUE` for `--set`) takes under each `spec.scheduling.policy`. A
name that the policy does not know, a number out of its range, or a part where only whole ones count, is refused. Both
ends of a range are allowed. What the policies do, and from which paper each is:
[Placement policies](../explanation/policies.md)."""


def page() -> str:
    names = sorted(POLICIES)
    plain = ", ".join(f"`{name}`" for name in names if not parameters_of(name))
    sections = [f"## `{name}`\n\n{table(known)}" for name in names if (known := parameters_of(name))]
    return "\n\n".join([HEAD, *sections, f"## Policies without numbers of their own\n\n{plain}."]) + "\n"


def told(parameter: Parameter) -> str:
    """What it means, and that it has no parts where its meaning does not say so."""
    meaning = parameter.meaning
    return f"{meaning}; a whole number" if parameter.is_whole and "whole number" not in meaning else meaning


def table(known: Parameters) -> str:
    rows = ["| name | default | least | most | meaning |", "|---|---:|---:|---:|---|"]
    for name, one in known.items():
        cells = (f"`{name}`", *(number(value) for value in (one.default, one.least, one.most)), told(one))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def number(value: float) -> str:
    """As a person writes it."""
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


if __name__ == "__main__":
    sys.exit(keep(PAGE, page(), "the policies say"))
