"""Plays a real cluster under load for some minutes, then draws every panel of every dashboard from its Prometheus.

Pictures of the operator's page are taken from the same run.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import track

from dashboards.all_of_them import documents
from dashboards.preview.__main__ import draw
from dashboards.preview.prometheus import Prometheus
from dashboards.preview.screenshots import take
from monitored_cluster import SCRAPE_SECONDS, monitored, wait_for_a_verified_plan
from page_pictures import take_large, take_page
from storm_operator.local.build import plugin_jar, workloads_jar
from storm_operator.local.cluster import LocalCluster
from storm_operator.local.spec import LocalClusterSpec


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=5.0, help="how long to go on after the first verified plan (5)"
    )
    parser.add_argument("--output", type=Path, default=Path("build/dashboards/index.html"), help="the page")
    parser.add_argument("--pictures", metavar="FOLDER", type=Path, help="also a PNG of each dashboard")
    parser.add_argument("--page", metavar="FOLDER", type=Path, help="also pictures of the operator's page")
    options = parser.parse_args()
    console = Console(stderr=True)
    if shutil.which("prometheus") is None:
        console.print("prometheus: not found; to install it: apt-get install --no-install-recommends prometheus")
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        work_dir = Path(scratch) / "storm"
        spec = LocalClusterSpec(name="dashboards", fast_start=True, plugin_jar=plugin_jar(), work_dir=work_dir)
        folder = Path(scratch) / "monitored"
        console.print("the cluster starts")
        with LocalCluster(spec) as storm, monitored(storm, workloads_jar(), folder) as cluster:
            started = time.time()
            wait_for_a_verified_plan(cluster)
            console.print("the first plan is verified")
            for _ in track(range(int(60 * options.minutes)), description="load goes on", console=console):
                time.sleep(1.0)
            minutes = (time.time() - started) / 60
            if options.page is not None:
                take_page(cluster.page_url, options.page)
            draw(Prometheus(cluster.prometheus.url), minutes, SCRAPE_SECONDS, options.output)
    if options.page is not None:
        take_large(options.page)
    if options.pictures is not None:
        for complaint in take(options.output, list(documents()), options.pictures):
            console.print(f"browser: {complaint}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
