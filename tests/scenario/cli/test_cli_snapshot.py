"""`storm-operator snapshot`: two readings of a live cluster, one file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml
from typer.testing import CliRunner, Result

from builders import chain_topology, placed, supervisors
from storm_operator.adapters.errors import NimbusUnreachable
from storm_operator.adapters.metrics import PrometheusSource, ScrapeSource
from storm_operator.adapters.metrics.addresses import parse_agents
from storm_operator.cli import app
from storm_operator.cli_snapshot import NOT_TOLD, agent_urls, metrics_source, take_snapshot
from storm_operator.core.metrics_window import MetricsWindow
from storm_operator.core.model import Assignment
from storm_operator.core.snapshot_builder import ClusterView
from storm_operator.core.snapshot_json import dump_snapshot, load_snapshot
from storm_operator.core.topology_spec import AdoptSource, StatefulSpec, TopologySpec
from storm_operator.told_specs import read_told_specs
from window_builder import Scrapes

WORDS = chain_topology("words", ("spout", 1))
MACHINES = supervisors(1)
SLOTS = placed(WORDS, {"spout": "s1"})
VIEW = ClusterView(MACHINES, (WORDS,), Assignment(SLOTS))
ENOUGH = ["snapshot", "--nimbus", "127.0.0.1:1", "--zookeeper", "127.0.0.1:1"]


class FakeTime:
    def __init__(self) -> None:
        self.now = 990.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class FakeSource:
    def __init__(self) -> None:
        self.readings: list[tuple[float, float]] = []

    def read_window(
        self, now_seconds: float, window_seconds: float, since_seconds: float | None = None
    ) -> MetricsWindow:
        self.readings.append((now_seconds, window_seconds))
        metrics = Scrapes(now_seconds, window_seconds)
        metrics.add_topology(WORDS, SLOTS, {"s1": MACHINES[0].host})
        return metrics.window()


class FakeCluster:
    """Marks what its specs call stateful, as Nimbus' reading does."""

    def read_view(self, specs: Mapping[str, TopologySpec]) -> ClusterView:
        stateful = specs["words"].stateful.stateful if "words" in specs else ()
        components = tuple(replace(one, stateful=one.name in stateful) for one in WORDS.components)
        return replace(VIEW, topologies=(replace(WORDS, components=components),))


def test_two_readings_one_period_apart_make_a_snapshot() -> None:
    source, time = FakeSource(), FakeTime()
    taken = take_snapshot(FakeCluster(), {}, source, 10.0, lambda: time.now, time.sleep)
    assert source.readings == [(990.0, 15.0), (1000.0, 15.0)]
    assert taken.completeness.ratio == 1.0
    assert (taken.taken_at_seconds, taken.period_seconds) == (1000.0, 10.0)
    assert len(taken.history) == 1
    assert taken.completeness.problems == ()


def test_first_reading_counts_however_long_nimbus_takes_before_the_second() -> None:
    """As while another Nimbus takes over, or in a large cluster with a short period."""
    source, time = FakeSource(), FakeTime()

    class SlowCluster(FakeCluster):
        def read_view(self, specs: Mapping[str, TopologySpec]) -> ClusterView:
            time.now += 20.0
            return super().read_view(specs)

    taken = take_snapshot(SlowCluster(), {}, source, 10.0, lambda: time.now, time.sleep)
    assert source.readings == [(1010.0, 15.0), (1040.0, 45.0)]
    assert (taken.taken_at_seconds, taken.period_seconds) == (1040.0, 30.0)


def test_a_clock_that_is_set_back_between_the_readings_makes_no_period_below_zero() -> None:
    time = FakeTime()
    taken = take_snapshot(FakeCluster(), {}, FakeSource(), 10.0, lambda: time.now, lambda _: time.sleep(-300.0))
    assert load_snapshot(dump_snapshot(taken)).period_seconds > 0.0


def test_what_stormtopologies_say_is_in_it_or_is_said_to_be_missing() -> None:
    time = FakeTime()
    spec = TopologySpec("words", AdoptSource(), stateful=StatefulSpec(("spout",)))
    taken = [
        take_snapshot(FakeCluster(), specs, FakeSource(), 10.0, lambda: time.now, time.sleep)
        for specs in (None, {"words": spec})
    ]
    assert [one.topologies[0].components[0].stateful for one in taken] == [False, True]
    assert [one.completeness.problems for one in taken] == [(NOT_TOLD,), ()]
    assert [one.completeness.ratio for one in taken] == [1.0, 1.0]


def test_cluster_that_does_not_answer_is_known_before_the_wait() -> None:
    cluster = Mock(read_view=Mock(side_effect=NimbusUnreachable("no Nimbus answers")))
    source, time = FakeSource(), FakeTime()
    with pytest.raises(NimbusUnreachable):
        take_snapshot(cluster, {}, source, 10.0, lambda: time.now, time.sleep)
    assert (source.readings, time.now) == ([], 990.0)


SAID = """
apiVersion: storm-operator.dev/v1alpha1
kind: StormTopology
metadata: {name: NAME, namespace: storm}
spec: {adopt: {}, nimbus: NIMBUS, stateful: {stateful: [spout]}, parallelism: {workers: 3}}
"""


def said_of(name: str, nimbus: str = "storm-nimbus") -> str:
    return SAID.replace("NAME", name).replace("NIMBUS", nimbus)


def test_stormtopologies_are_read_from_a_folder_and_from_what_kubectl_lists(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"kind: ConfigMap\n---{said_of('words')}")
    (tmp_path / "b.yaml").write_text(said_of("lines"))
    listed = tmp_path / "listed"
    items = [yaml.safe_load(said_of(name)) | {"status": {"phase": "Running"}} for name in ("lines", "words")]
    listed.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    for source in (tmp_path, listed):
        said: list[str] = []
        specs = read_told_specs(source, ["storm-nimbus.storm.svc:6627"], said.append)
        assert said == []
        assert sorted(specs) == ["lines", "words"]
        assert specs["words"].stateful.stateful == ("spout",)
        assert specs["words"].parallelism.workers == 3


def test_a_stormtopology_of_another_nimbus_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(said_of("words", "other:6627"))
    said: list[str] = []
    assert read_told_specs(file, ["nimbus:6627"], said.append) == {}
    assert said == [f"{file}: words is left out: spec.nimbus is other:6627, not nimbus:6627"]
    file.write_text("kind: ConfigMap\n")
    assert read_told_specs(file, ["nimbus:6627"], said.append) == {}
    assert said[1:] == [f"{file}: no StormTopology is in it"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (said_of("words").replace("workers", "wrokers"), "spec.parallelism: unknown field wrokers"),
        ("a: [", "not valid YAML"),
        ("---".join([said_of("words", "127.0.0.1:1")] * 2), "words is described already"),
        (f"{said_of('words').replace('workers', 'w')}---{said_of('lines')}", "storm/words: spec.parallelism: unknown"),
    ],
)
def test_a_stormtopology_that_is_wrong_is_refused_with_its_file(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    done = CliRunner().invoke(app, [*ENOUGH, "--topologies", str(file)])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"storm-operator snapshot: {file}: {words}")


def test_agents_by_host_and_metrics_is_the_default_path() -> None:
    assert parse_agents(["h1=http://h1:9464", "h2=http://h2:9464/other", "h3=https://h3/"]) == {
        "h1": "http://h1:9464/metrics",
        "h2": "http://h2:9464/other",
        "h3": "https://h3/metrics",
    }


def test_the_source_is_agents_or_prometheus() -> None:
    assert isinstance(metrics_source(["h1=http://h1:9464"], None, list, 9464), ScrapeSource)
    assert isinstance(metrics_source([], None, list, 9464), ScrapeSource)
    assert isinstance(metrics_source([], "http://prometheus:9090", list, 9464), PrometheusSource)


def test_agents_are_on_the_supervisors_hosts_unless_they_are_named() -> None:
    assert agent_urls(["h1", "h2"], 9000, {"h2": "http://elsewhere:1/metrics"}) == {
        "h1": "http://h1:9000/metrics",
        "h2": "http://elsewhere:1/metrics",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--agent", "h=http://h:1", "--prometheus", "http://p:1"], "expected either --agent"),
        (["--agent", "http://h:1"], "--agent is 'http://h:1': expected HOST=URL"),
        (["--agent", "h=ftp://h:1"], "--agent is 'ftp://h:1': expected a URL such as"),
        (["--agent", "h=http://h:99999"], "--agent is 'http://h:99999': expected a URL such as"),
        (["--agent", "h=http://a:1", "--agent", "h=http://b:1"], "names the host h twice"),
        (["--prometheus", "prometheus:9090"], "--prometheus is 'prometheus:9090': expected a URL such as"),
        (["--prometheus", "http://p:1", "--nimbus", "nonsense:port"], "nonsense:port"),
        (["--match", "a='b'"], "--match a='b' narrows what a Prometheus is asked for"),
        (["--file", "/no such/folder/x.json"], "--file: there is no folder /no such/folder to write x.json into"),
        (["--file", f"/{'x' * 300}/x.json"], f"--file: there is no folder /{'x' * 300} to write x.json into"),
        (["--period", "inf"], "'--period': Input should be less than or equal to 86400"),
        (["--topologies", "/no such/folder"], "/no such/folder: cannot be read: No such file or directory"),
    ],
)
def test_bad_options_give_one_message_and_exit_code_2(arguments: Sequence[str], message: str) -> None:
    done = CliRunner().invoke(app, [*ENOUGH, *arguments])
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize("zookeeper", ["", "127.0.0.1:1,,", "a:b", "zookeeper", "a:2181,b:70000"])
def test_what_is_no_address_of_a_zookeeper_is_told_with_the_option_and_an_example(zookeeper: str) -> None:
    done = CliRunner().invoke(app, ["snapshot", "--nimbus", "127.0.0.1:1", "--zookeeper", zookeeper])
    assert done.exit_code == 2
    assert f"--zookeeper: {zookeeper!r} must be HOST:PORT, such as zookeeper.example:2181" in done.output


def test_who_does_not_answer_is_looked_for_where_it_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the option, not by the keys of a storm.yaml, which the command does not read."""
    from storm_operator import cli_snapshot

    peers = {name: Mock() for name in ("NimbusClient", "ZooKeeperSession")}
    for name, peer in peers.items():
        monkeypatch.setattr(cli_snapshot, name, peer)
    monkeypatch.setattr(cli_snapshot, "take_snapshot", Mock(side_effect=NimbusUnreachable("no Nimbus answers")))
    assert CliRunner().invoke(app, ENOUGH).exit_code == 1
    assert [peer.call_args.kwargs["named_by"] for peer in peers.values()] == ["--nimbus", "--zookeeper"]


@pytest.fixture
def write(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Result]:
    """The command with `--file`, of a cluster that was read already."""
    from storm_operator import cli_snapshot

    time = FakeTime()
    taken = take_snapshot(FakeCluster(), {}, FakeSource(), 10.0, lambda: time.now, time.sleep)
    monkeypatch.setattr(cli_snapshot, "take_snapshot", lambda *_: taken)
    return lambda path: CliRunner().invoke(app, [*ENOUGH, "--agent", "h=http://h:1", "-f", str(path)])


def test_what_is_written_to_stdout_is_utf_8_whatever_a_terminal_has(monkeypatch: pytest.MonkeyPatch) -> None:
    from storm_operator import cli_snapshot

    time = FakeTime()
    taken = take_snapshot(FakeCluster(), {}, FakeSource(), 10.0, lambda: time.now, time.sleep)
    named = replace(taken, completeness=replace(taken.completeness, problems=("no agent at h\u00e9\u6f22",)))
    monkeypatch.setattr(cli_snapshot, "take_snapshot", lambda *_: named)
    done = CliRunner(charset="latin-1").invoke(app, [*ENOUGH, "--agent", "h=http://h:1"])
    assert done.exit_code == 0
    assert load_snapshot(done.stdout_bytes.decode("utf-8")).completeness == named.completeness


def test_unwritable_file_is_one_message(tmp_path: Path, write: Callable[[Path], Result]) -> None:
    assert write(tmp_path / "s.json").exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["s.json"]
    refused = write(tmp_path / ("s" * 300))
    assert refused.exit_code == 2
    assert "cannot be written: File name too long" in refused.output


def test_what_is_no_plain_file_is_written_to_and_not_replaced(tmp_path: Path, write: Callable[[Path], Result]) -> None:
    """`--file /dev/null`, given by root, would make a plain file of it for the whole machine."""
    (tmp_path / "null").symlink_to("/dev/null")
    (tmp_path / "link.json").symlink_to("target.json")
    (tmp_path / "target.json").touch()
    assert [write(tmp_path / name).exit_code for name in ("null", "link.json")] == [0, 0]
    assert Path("/dev/null").is_char_device()
    assert [(tmp_path / name).is_symlink() for name in ("null", "link.json")] == [True, True]
    assert (tmp_path / "target.json").read_text().startswith("{")


def test_snapshot_that_cannot_be_put_in_place_leaves_nothing(tmp_path: Path, write: Callable[[Path], Result]) -> None:
    (tmp_path / "folder").mkdir()
    assert "cannot be written: Is a directory" in write(tmp_path / "folder").output
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
