"""Helm as tests use it, and the Kubernetes objects that a chart renders."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from storm_operator.cli import COMMANDS, PROGRAM
from storm_operator.lazy_commands import load_available

ROOT = Path(__file__).parents[3]
CHARTS = ROOT / "charts"
KUBERNETES_VERSION = "1.35.4"
RELEASE = "storm"
NAMESPACE = "streams"
NOTES_AS_DATA = """kind: Notes
metadata: {name: notes}
text: {{ include (print .Template.BasePath "/NOTES.txt") . | toJson }}
"""

Object = Mapping[str, Any]


class HelmRefused(Exception):
    """Helm ended with an error; the message is its own."""


def find_helm() -> Path | None:
    """The test cluster's helm where it has been built, else the one on PATH."""
    try:
        from kube_cluster.binaries import program_path
    except ImportError:
        built = None
    else:
        built = program_path("helm")
    if built is not None and built.is_file():
        return built
    found = shutil.which("helm")
    return Path(found) if found else None


@dataclass(frozen=True, slots=True)
class Helm:
    """One helm program. Helm's own settings and caches of the user play no part."""

    program: Path
    home: Path

    def lint(self, chart: str, values: Sequence[str] = ()) -> str:
        return self._run("lint", "--strict", "--kube-version", KUBERNETES_VERSION, str(CHARTS / chart), *_set(values))

    def template(
        self,
        chart: str,
        *values: str,
        chart_folder: Path | None = None,
        release: str = RELEASE,
        namespace: str = NAMESPACE,
        texts: Sequence[str] = (),
    ) -> Rendered:
        """The chart with `key=value` settings, hooks included; HelmRefused when helm will not render it.

        `texts` are settings whose values are text also where they look like a number.
        """
        text = self.template_text(
            chart, *values, chart_folder=chart_folder, release=release, namespace=namespace, texts=texts
        )
        return Rendered(tuple(document for document in yaml.safe_load_all(text) if document))

    def template_text(
        self,
        chart: str,
        *values: str,
        chart_folder: Path | None = None,
        crds: bool = False,
        release: str = RELEASE,
        namespace: str = NAMESPACE,
        texts: Sequence[str] = (),
    ) -> str:
        """The same as YAML, as helm sends it; `crds`: with what is in the chart's folder of that name."""
        return self._run(
            *("template", release, str(chart_folder or CHARTS / chart), "--namespace", namespace),
            *("--kube-version", KUBERNETES_VERSION, *(("--include-crds",) if crds else ())),
            *_set(values),
            *(part for text in texts for part in ("--set-string", text)),
        )

    def notes(self, chart: str, copy_to: Path, *values: str) -> str:
        """What an installation would tell its user. Helm renders notes only there, so a chart copy makes them data."""
        folder = copy_to / chart
        shutil.copytree(CHARTS / chart, folder)
        (folder / "templates" / "notes-as-data.yaml").write_text(NOTES_AS_DATA)
        return str(self.template(chart, *values, chart_folder=folder).one("Notes", "notes")["text"])

    def _run(self, *arguments: str) -> str:
        environment = os.environ | {
            "HELM_CACHE_HOME": str(self.home / "cache"),
            "HELM_CONFIG_HOME": str(self.home / "config"),
            "HELM_DATA_HOME": str(self.home / "data"),
            "KUBECONFIG": str(self.home / "no-cluster"),
        }
        done = subprocess.run(
            [str(self.program), *arguments], capture_output=True, text=True, check=False, env=environment
        )
        if done.returncode != 0:
            raise HelmRefused(done.stdout + done.stderr)
        return done.stdout


def _set(values: Sequence[str]) -> list[str]:
    return [part for value in values for part in ("--set", value)]


@dataclass(frozen=True, slots=True)
class Rendered:
    """All objects of one rendering."""

    objects: tuple[Object, ...]

    def of_kind(self, kind: str) -> tuple[Object, ...]:
        return tuple(item for item in self.objects if item["kind"] == kind)

    def one(self, kind: str, name: str) -> Object:
        found = [item for item in self.of_kind(kind) if item["metadata"]["name"] == name]
        assert len(found) == 1, f"{len(found)} objects {kind} {name}: {[i['metadata']['name'] for i in self.objects]}"
        return found[0]

    def pod_specs(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Every pod that may come to be: its owner's `kind/name`, and its spec."""
        for item in self.objects:
            label = f"{item['kind']}/{item['metadata']['name']}"
            if item["kind"] == "Pod":
                yield label, item["spec"]
            elif "template" in item.get("spec", {}):
                yield label, item["spec"]["template"]["spec"]


def containers(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*spec.get("initContainers", ()), *spec["containers"]]


def container(spec: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(item for item in containers(spec) if item["name"] == name)
    return found


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector, as Kubernetes has it, takes in what has these labels."""
    assert selector.keys() <= {"matchLabels", "matchExpressions"}
    wanted = [(rule["key"], rule["values"]) for rule in selector.get("matchExpressions", ())]
    assert all(rule["operator"] == "In" for rule in selector.get("matchExpressions", ()))
    wanted += [(key, [value]) for key, value in selector.get("matchLabels", {}).items()]
    return all(labels.get(key) in values for key, values in wanted)


def options_of(command: str) -> set[str]:
    """The options that `storm-operator <command>` has."""
    parameters = load_available(PROGRAM, command, COMMANDS[command]).params
    return {option for parameter in parameters for option in (*parameter.opts, *parameter.secondary_opts)}
