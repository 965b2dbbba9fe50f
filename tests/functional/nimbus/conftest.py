"""Jars to submit, made with javac; a ZooKeeper of its own that tests may stop."""

from __future__ import annotations

import shutil
import socket
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_operator.adapters.nimbus.client import NimbusClient
from storm_operator.adapters.submission import StormClientHome
from storm_operator.adapters.zookeeper import ZooKeeperSession
from storm_operator.local.cluster import LocalCluster

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
FLUX = "org.apache.storm:flux-core:2.8.3:jar"
# Version 2.8 of the plugin reads no POM of the artifact: flux-core's parent is not in every repository.
MAVEN_GET = "org.apache.maven.plugins:maven-dependency-plugin:2.8:get"


@pytest.fixture
def client(storm_cluster: LocalCluster) -> Iterator[NimbusClient]:
    host, port = storm_cluster.nimbus
    client = NimbusClient([f"{host}:{port}"], patience_seconds=60.0)
    yield client
    client.close()


@pytest.fixture
def session(storm_cluster: LocalCluster) -> Iterator[ZooKeeperSession]:
    session = ZooKeeperSession(storm_cluster.zookeeper)
    yield session
    session.close()


@pytest.fixture
def home(storm_cluster: LocalCluster) -> StormClientHome:
    return StormClientHome(storm_cluster.storm_home, storm_cluster.conf_dir)


@pytest.fixture(scope="session")
def many_kinds_jar(storm_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ManyKinds.java as a jar."""
    folder = tmp_path_factory.mktemp("many-kinds")
    class_path = f"{storm_cluster.storm_home}/lib-worker/*"
    subprocess.run(
        ["javac", "-nowarn", "-d", folder, "-cp", class_path, HERE / "ManyKinds.java"], check=True, timeout=120
    )
    jar = folder / "many-kinds.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for compiled in sorted(folder.glob("*.class")):
            archive.write(compiled, compiled.name)
    return jar


@pytest.fixture(scope="session")
def flux_jar(many_kinds_jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same classes with Flux beside them."""
    folder = tmp_path_factory.mktemp("flux")
    core = folder / "flux-core.jar"
    fetch = [str(ROOT / "mvnw"), "-q", "-B", MAVEN_GET, f"-Dartifact={FLUX}", "-Dtransitive=false", f"-Ddest={core}"]
    subprocess.run(fetch, check=True, timeout=240, cwd=folder)
    jar = folder / "with-flux.jar"
    shutil.copy(many_kinds_jar, jar)
    with zipfile.ZipFile(core) as bundled, zipfile.ZipFile(jar, "a") as archive:
        for entry in bundled.namelist():
            # Flux bundles its own logging interface, which would hide Storm's.
            if entry.endswith(".class") and not entry.startswith("org/slf4j/"):
                archive.writestr(entry, bundled.read(entry))
    return jar


class LoneZooKeeper:
    """A ZooKeeper that may be stopped and started again; it keeps its data, as a real one does."""

    def __init__(self, storm_home: Path, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / "zookeeper.log"
        self._command = [
            "java",
            "-Xmx64m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Dzookeeper.admin.enableServer=false",
            "-cp",
            f"{storm_home}/lib/*",
            "org.apache.storm.shade.org.apache.zookeeper.server.ZooKeeperServerMain",
            str(self.port),
            str(folder / "data"),
        ]

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def lone_zookeeper(storm_cluster: LocalCluster, tmp_path: Path) -> Iterator[LoneZooKeeper]:
    zookeeper = LoneZooKeeper(storm_cluster.storm_home, tmp_path)
    zookeeper.start()
    yield zookeeper
    zookeeper.stop()
