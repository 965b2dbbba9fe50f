"""Checks that the lock covers what pyproject.toml asks for, and that nothing shadows the standard library."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def unlocked_dependencies() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    names = {normalise(re.split(r"[<>=~! \[]", line)[0]) for line in wanted}
    locked = {
        normalise(line.split("==")[0])
        for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
        if "==" in line
    }
    return [f"requirements.lock lacks {name}: run `make lock`" for name in sorted(names - locked)]


def normalise(name: str) -> str:
    return re.sub(r"[-_.\[]+", "-", name.strip().lower()).removesuffix("-")


def no_package_in_operator() -> list[str]:
    shadow = ROOT / "operator/__init__.py"
    return [f"{shadow} would shadow the standard library's operator module"] if shadow.exists() else []


if __name__ == "__main__":
    problems = [*unlocked_dependencies(), *no_package_in_operator()]
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)
