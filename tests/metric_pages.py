"""Pages of metrics, held against the contract and against Prometheus' own linter."""

from __future__ import annotations

import shutil
import subprocess

import requests
from prometheus_client.parser import text_string_to_metric_families

from storm_operator.metric_contract import BY_NAME, Exporter, Kind


def page_at(url: str) -> str:
    response = requests.get(url, timeout=10)
    response.raise_for_status()
    return response.text


def names_on(page: str, exporter: Exporter) -> set[str]:
    """The contract's names of the metrics on the page; fails where that says anything that the contract does not."""
    found = set()
    for family in text_string_to_metric_families(page):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        metric = BY_NAME.get(name)
        assert metric is not None, f"{name} is not in the contract"
        assert metric.exporter is exporter, name
        assert metric.kind.value == family.type, name
        for sample in family.samples:
            beyond = {"le"} if metric.kind is Kind.HISTOGRAM else set()
            assert set(sample.labels) - beyond == set(metric.labels), sample
        found.add(name)
    return found


def complaints_of_promtool(page: str) -> list[str]:
    """What `promtool check metrics` finds wrong; nothing where there is no promtool."""
    if shutil.which("promtool") is None:
        return []
    done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines()
