"""Prometheus rule files as tests use them: what they name, and copies whose time runs faster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from storm_operator.local.paths import repository_root

ROOT = repository_root() or Path(__file__).parents[1]
RULES = ROOT / "monitoring" / "rules"
RULE_TESTS = ROOT / "monitoring" / "tests"
UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"(?:\d+(?:ms|[smhd]))+")
PART = re.compile(r"(\d+)(ms|[smhd])")
RANGE = re.compile(r"\[([^\]]+)\]")
NOT_METRICS = frozenset({"and", "or", "unless", "bool", "offset", "inf", "nan"})


@dataclass(frozen=True, slots=True)
class Rule:
    """One recording or alerting rule; `body` is as the file has it."""

    file: str
    body: Mapping[str, Any]

    @property
    def name(self) -> str:
        return name_of(self.body)

    @property
    def is_alert(self) -> bool:
        return "alert" in self.body

    @property
    def expression(self) -> str:
        return str(self.body["expr"])

    @property
    def annotations(self) -> Mapping[str, str]:
        return dict(self.body.get("annotations") or {})


def name_of(rule: Mapping[str, Any]) -> str:
    return str(rule.get("alert") or rule["record"])


def rule_files() -> tuple[Path, ...]:
    return tuple(sorted(RULES.glob("*.yml")))


@cache
def all_rules() -> tuple[Rule, ...]:
    return tuple(rule for file in rule_files() for rule in _rules_of(file))


def alerts() -> tuple[Rule, ...]:
    return tuple(rule for rule in all_rules() if rule.is_alert)


def _rules_of(file: Path) -> Iterator[Rule]:
    for group in yaml.safe_load(file.read_text())["groups"]:
        for body in group["rules"]:
            yield Rule(file.name, body)


def metrics_in(expression: str) -> frozenset[str]:
    """The names of metrics in a PromQL expression: every word that is no function, keyword, label, text or variable."""
    bare = re.sub(r"#[^\n]*", " ", expression)
    bare = re.sub(r"""("|')(?:\\.|(?!\1).)*\1""", " ", bare)
    bare = re.sub(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\boffset\s+\S+|\b(?:group_left|group_right)\b", " ", bare)
    words = re.findall(r"(?<![\w:.$])([a-zA-Z_:][\w:]*)(?![\w:]|\s*\()", bare)
    return frozenset(word for word in words if word.lower() not in NOT_METRICS)


def seconds_of(duration: str) -> float:
    """`1h30m` as seconds."""
    return sum(int(number) * UNIT_SECONDS[unit] for number, unit in PART.findall(duration))


def faster(duration: str, factor: float) -> str:
    """The duration divided by `factor`, in whole milliseconds."""
    return f"{max(1, round(1000.0 * seconds_of(duration) / factor))}ms"


def speed_up(
    document: Mapping[str, Any], factor: float, other_factors: Mapping[str, float] = MappingProxyType({})
) -> dict[str, Any]:
    """The same rules for a world in which everything goes `factor` times as fast: `for`, `interval` and every range.

    `other_factors` has those of rules, by name, for which it is another. Numbers that an expression compares with stay.
    """
    groups = []
    for group in document["groups"]:
        rules = [_speed_up_rule(rule, other_factors.get(name_of(rule), factor)) for rule in group["rules"]]
        groups.append({**group, "rules": rules, "interval": faster(group["interval"], factor)})
    return {**document, "groups": groups}


def _speed_up_rule(rule: Mapping[str, Any], factor: float) -> dict[str, Any]:
    quick = dict(rule)
    quick["expr"] = RANGE.sub(lambda found: f"[{DURATION.sub(lambda d: faster(d[0], factor), found[1])}]", rule["expr"])
    for key in ("for", "keep_firing_for"):
        if key in rule:
            quick[key] = faster(rule[key], factor)
    return quick
