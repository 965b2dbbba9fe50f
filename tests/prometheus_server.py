"""A real Prometheus for tests: started with a configuration, asked over HTTP, ended with the test."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from eventually import eventually

INSTALL = "apt-get install --no-install-recommends prometheus"
READY_SECONDS = 60.0
ANSWER_SECONDS = 60.0

Labels = Mapping[str, str]


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`; skips the test, saying how to install it, where there is none."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"NOT TESTED: there is no {name} on this machine; to install it: {INSTALL}")
    return found


@dataclass
class PrometheusServer:
    """One server over `config` (as prometheus.yml has it), with its data in `folder`."""

    folder: Path
    config: Mapping[str, Any]
    url: str = ""
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __enter__(self) -> PrometheusServer:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        self.url = f"http://{address}"
        config, log = self.folder / "prometheus.yml", self.folder / "prometheus.log"
        config.write_text(yaml.safe_dump(dict(self.config), sort_keys=False))
        data = self.folder / "data"
        command = [program("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={data}"]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*command, f"--web.listen-address={address}"], stdout=output, stderr=subprocess.STDOUT
            )
        try:
            eventually(lambda: self._has_ended() or self._is_ready(), "Prometheus is ready", READY_SECONDS)
            assert not self._has_ended(), log.read_text()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    def ask(self, path: str, **parameters: str) -> Any:
        """`data` of an answer of the HTTP API under /api/v1."""
        answer = requests.get(f"{self.url}/api/v1/{path}", params=parameters, timeout=ANSWER_SECONDS).json()
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression: str) -> list[tuple[Labels, float]]:
        """The expression now: labels and value of each series."""
        found = self.ask("query", query=expression)["result"]
        return [(one["metric"], float(one["value"][1])) for one in found]

    def firing(self) -> dict[str, list[Labels]]:
        """Labels of the alerts that fire now, by the alert's name."""
        by_name: dict[str, list[Labels]] = {}
        for alert in self.ask("alerts")["alerts"]:
            if alert["state"] == "firing":
                by_name.setdefault(alert["labels"]["alertname"], []).append(alert["labels"])
        return by_name

    def broken_rules(self) -> list[str]:
        """Rules whose last evaluation failed, each with the reason."""
        groups = self.ask("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return [f"{rule['name']}: {rule.get('lastError')}" for rule in rules if rule["health"] == "err"]

    def _has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def _is_ready(self) -> bool:
        try:
            return requests.get(f"{self.url}/-/ready", timeout=1.0).status_code == 200
        except requests.RequestException:
            return False
