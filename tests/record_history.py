"""Records a few minutes of a real Storm cluster, of which the pipeline's golden tables are made: `make golden-record`.

WordCount on four machines, as Storm's own scheduler spreads it; the operator gathers it while its load is a wave.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from eventually import eventually
from rich.console import Console
from rich.progress import track

from golden_tables import CLUSTER, RECORDED
from operator_scene import WORD_COUNT
from storm_by_hand import StormByHand
from storm_operator.local.build import plugin_jar, workloads_jar
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.spec import LocalClusterSpec

SECONDS_AFTER_THE_PLAN = 90
FILE = """
apiVersion: storm-operator.dev/v1alpha1
kind: StormTopology
metadata: {{name: words}}
spec:
  jar:
    path: {jar}
    mainClass: {main_class}
    args: [--name, words, --rate, "sine:50..150/60s", --parallelism, "split=2,count=2", --workers, "3"]
  scheduling: {{mode: Enforce, periodSeconds: 5, coolDownSeconds: 10, settlingSeconds: 15, rollbackMarginPercent: 9000}}
  resources: {{thetaMillicores: 50, floorMillicores: 50}}
"""


def main() -> None:
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory() as scratch:
        spec = LocalClusterSpec(
            name="recorded", fast_start=True, plugin_jar=plugin_jar(), work_dir=Path(scratch) / "storm"
        )
        console.print("the cluster starts")
        with LocalCluster(spec) as storm:
            record(storm, Path(scratch), console)
        shutil.rmtree(RECORDED, ignore_errors=True)
        shutil.copytree(Path(scratch) / "history", RECORDED)
    size = sum(path.stat().st_size for path in RECORDED.rglob("*.parquet"))
    console.print(f"{RECORDED}: {size / 1000.0:.0f} kB; now `make golden` and look at what has changed")


def record(storm: LocalCluster, folder: Path, console: Console) -> None:
    """Run the operator beside the cluster until its first plan is verified, and some time longer."""
    (folder / "resources").mkdir()
    text = FILE.format(jar=workloads_jar(), main_class=WORD_COUNT)
    (folder / "resources" / "words.yaml").write_text(text, encoding="utf-8")
    host, port = storm.nimbus
    command = [sys.executable, "-m", "storm_operator", "standalone", str(folder / "resources"), "--page-port", "0"]
    command += ["--nimbus", f"{host}:{port}", "--zookeeper", storm.zookeeper, "--storm-home", str(storm.storm_home)]
    command += ["--storm-conf-dir", str(storm.conf_dir)]
    command += ["--history", str(folder / "history"), "--history-cluster", CLUSTER]
    log = folder / "operator.log"
    with log.open("w") as output:
        operator = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        eventually(lambda: "Verified" in log.read_text(), "a plan is verified")
        for _ in track(range(SECONDS_AFTER_THE_PLAN), description="load goes on", console=console):
            time.sleep(1.0)
        operator.send_signal(signal.SIGINT)
        operator.wait(timeout=60)
    finally:
        console.print(log.read_text(), markup=False)
        if operator.poll() is None:
            operator.kill()
            operator.wait(timeout=10)
        with StormByHand(storm) as hands:
            hands.kill_all()


if __name__ == "__main__":
    main()
