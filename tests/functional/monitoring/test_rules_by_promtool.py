"""monitoring/rules as Prometheus' own tool sees them: no fault in them, and they do as their tests say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from prometheus_server import program
from rule_files import RULE_TESTS, RULES, rule_files


def promtool(*arguments: str) -> str:
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_finds_no_fault() -> None:
    said = promtool("check", "rules", "--lint=all", "--lint-fatal", *map(str, rule_files()))
    assert said.count("SUCCESS") == len(rule_files()) > 0


@pytest.mark.parametrize("case", sorted(RULE_TESTS.glob("*.yml")), ids=lambda case: case.stem)
def test_rules_do_as_promtool_is_told(case: Path) -> None:
    assert "SUCCESS" in promtool("test", "rules", str(case))


def test_promtool_accepts_the_example_configuration() -> None:
    promtool("check", "config", str(RULES.parent / "prometheus.yml"))
