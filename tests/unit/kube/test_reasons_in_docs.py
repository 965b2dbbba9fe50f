"""Each word that a user meets as the reason of a condition or an event is on a page that says what to do about it."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from storm_operator.core.decision import HoldReason
from storm_operator.core.plan_record import PlanState
from storm_operator.kube.conditions import FINE_HOLDS
from storm_operator.kube.publisher import WARNING_STATES

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "operator"
TELLING = [*sorted((PACKAGE / "storm_operator/kube").glob("*.py")), PACKAGE / "storm_operator/executor_counts.py"]
PAGES = "\n".join(
    page.read_text() for folder in ("how-to", "runbooks") for page in (ROOT / "docs" / folder).glob("*.md")
)
CALLS = frozenset({"Concern", "post", "refused_status", "tell", "tell_trouble", "_tell_all"})
DEGRADED, NOTHING_AMISS = "Degraded", "AsExpected"
REASON = re.compile(r"([A-Z][a-z]+)+")


def words_of(path: Path) -> Iterator[str]:
    """What that module tells, written where it is told or as a constant of the module."""
    module = importlib.import_module(".".join(path.relative_to(PACKAGE).with_suffix("").parts))
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and is_telling(node, module):
            yield from filter(None, (text_of(argument, module) for argument in node.args))


def is_telling(call: ast.Call, module: ModuleType) -> bool:
    if name_of(call.func) == "Condition":
        return text_of(call.args[0], module) == DEGRADED
    return name_of(call.func) in CALLS


def name_of(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def text_of(argument: ast.expr, module: ModuleType) -> str:
    value = argument.value if isinstance(argument, ast.Constant) else None
    if isinstance(argument, ast.Name):
        value = getattr(module, argument.id, None)
    return value if isinstance(value, str) and REASON.fullmatch(value) else ""


TOLD = {word for path in TELLING for word in words_of(path)} - {DEGRADED, NOTHING_AMISS}
DEGRADING = {reason.value for reason in HoldReason if reason not in FINE_HOLDS} | {
    f"Plan{state.value}" for state in PlanState if state in WARNING_STATES
}


def test_words_are_found_where_they_are_told() -> None:
    assert {"NameTaken", "InvalidSpec", "SubmissionFailed", "ScaleRefused", "Scaled", "Parallelism"} <= TOLD


@pytest.mark.parametrize("word", sorted(TOLD | DEGRADING | {"KubernetesRefused"}))
def test_a_reason_is_on_a_page(word: str) -> None:
    assert f"`{word}`" in PAGES
