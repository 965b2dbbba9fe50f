"""One run of a small cluster that shows which classes each JVM needs (see class_data): for here or an image."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path

from storm_operator.local.class_data import (
    archive_options,
    archives_dir,
    make_archives,
    merged_class_list,
    recording_options,
)
from storm_operator.local.distribution import Say, distribution_dir
from storm_operator.local.jvm import Jvm
from storm_operator.local.lifecycle import bring_up, plan_layout, take_down, wait_until
from storm_operator.local.paths import RESOURCES
from storm_operator.local.readiness import registered_supervisors
from storm_operator.local.spec import ClusterLayout, LocalClusterError, LocalClusterSpec

NAME = "rehearsal"
WORKERS = 2
SECONDS = 120.0
SECONDS_IN_AN_IMAGE_BUILD = 1200.0
"""One for another kind of processor is built under emulation."""

PATIENT: Mapping[str, int] = {
    "nimbus.supervisor.timeout.secs": 600,
    "nimbus.task.timeout.secs": 600,
    "nimbus.task.launch.secs": 600,
    "supervisor.worker.start.timeout.secs": 600,
    "supervisor.worker.timeout.secs": 600,
    "storm.zookeeper.session.timeout": 20_000,
    "storm.zookeeper.connection.timeout": 20_000,
}
"""Nothing fails in a rehearsal, however slow it is: what is ended and started anew would make it slower. Of a session
ZooKeeper grants twenty ticks."""

KINDS_IN_PODS = (Jvm.WORKER, Jvm.LOG_WRITER)
"""A topology stands still while these start, one after the other, whenever a worker is moved."""


def ensure_archives(say: Say) -> Mapping[str, str]:
    """JVM options that use the archives, made now if they are not there. Without them everything works, but slower."""
    if not archive_options():
        say("rehearsing once, so that JVMs start faster from now on (about a minute)")
        try:
            rehearse(distribution_dir(), archives_dir(), tuple(Jvm), say)
        except (OSError, LocalClusterError) as reason:
            say(f"the rehearsal failed, JVMs will start slower: {reason}")
    return archive_options()


def rehearse(distribution: Path, target: Path, kinds: Collection[Jvm], say: Say, seconds: float = SECONDS) -> None:
    """Run a small cluster of the Storm in folder `distribution`; make archives of `kinds` in the new folder `target`.

    Raises OSError and LocalClusterError, and leaves nothing behind then.
    """
    with tempfile.TemporaryDirectory(prefix="storm-") as scratch:
        folder = Path(scratch)
        _run_once(distribution, folder, seconds)
        lists = {}
        for kind in kinds:
            lists[kind] = folder / f"{kind}.merged"
            lists[kind].write_text(
                merged_class_list(path.read_text() for path in sorted(folder.glob(f"{kind}.*.classlist")))
            )
        make_archives(lists, distribution, target, say)


def submit_words(layout: ClusterLayout, topology: str, workers: int) -> None:
    """Submit the rehearsal's topology, which needs no jar, to a cluster that is ready."""
    jar = layout.data_dir / "empty.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    command = ["java", "-XX:TieredStopAtLevel=1", f"-Dstorm.jar={jar}", f"-Dstorm.home={layout.storm_home}"]
    command += ["-Dstorm.conf.file=", "-Dstorm.options=", "-cp", f"{layout.conf_dir}:{layout.storm_home}/lib-worker/*"]
    command += [str(RESOURCES / "Rehearsal.java"), topology, str(workers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LocalClusterError(f"the rehearsal's topology was not taken: {(done.stdout + done.stderr)[-2000:]}")


def _run_once(distribution: Path, folder: Path, seconds: float) -> None:
    """Each JVM leaves the list of its classes in `folder`."""
    spec = LocalClusterSpec(
        name=NAME,
        machines=1,
        subnet="10.254.254.0/24",
        agents=False,
        fast_start=True,
        extra_conf=PATIENT,
        work_dir=folder / "cluster",
    )
    layout = plan_layout(spec, recording_options(folder), isolate=False, owner_pid=os.getpid())
    # Not in the `try`: when another process rehearses already, this is refused, and that one must go on.
    bring_up(layout, distribution)
    try:
        wait_until(lambda: bool(registered_supervisors(layout.host, layout.nimbus_port)), seconds, "not ready")
        submit_words(layout, NAME, WORKERS)
        wait_until(lambda: _running_workers(layout) == WORKERS, seconds, "the rehearsal's topology did not run")
    finally:
        take_down(NAME)


def _running_workers(layout: ClusterLayout) -> int:
    """Workers whose bolts have begun to count; their logs say so."""
    logs = layout.logs_dir.glob("*/workers/*/*/worker.log")
    return sum("Prepared bolt" in log.read_text() and "Opened spout" in log.read_text() for log in logs)


if __name__ == "__main__":
    rehearse(Path(sys.argv[1]), Path(sys.argv[2]), KINDS_IN_PODS, print, SECONDS_IN_AN_IMAGE_BUILD)
