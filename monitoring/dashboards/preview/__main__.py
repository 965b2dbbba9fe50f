"""Draws every panel of every dashboard from a Prometheus into one HTML page, and on demand takes pictures of it."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from dashboards.all_of_them import documents
from dashboards.preview.asking import ask
from dashboards.preview.choices import Looked
from dashboards.preview.page import page
from dashboards.preview.prometheus import Prometheus, QueryError
from dashboards.preview.screenshots import take


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dashboards.preview", description=__doc__)
    parser.add_argument("--prometheus", metavar="URL", required=True, help="for example http://127.0.0.1:9090")
    parser.add_argument("--minutes", type=float, default=60.0, help="how far back to look (60)")
    parser.add_argument("--scrape-seconds", type=float, default=15.0, help="how often it scrapes (15)")
    parser.add_argument("--output", type=Path, default=Path("build/dashboards/index.html"), help="the page")
    parser.add_argument("--pictures", metavar="FOLDER", type=Path, help="also a PNG of each dashboard")
    options = parser.parse_args()
    try:
        draw(Prometheus(options.prometheus), options.minutes, options.scrape_seconds, options.output)
    except QueryError as error:
        print(f"--prometheus: {error}", file=sys.stderr)
        return 1
    if options.pictures is not None:
        for complaint in take(options.output, list(documents()), options.pictures):
            print(f"browser: {complaint}", file=sys.stderr)
    return 0


def draw(prometheus: Prometheus, minutes: float, scrape_seconds: float, output: Path) -> None:
    """Write the page. Raises `QueryError` where the Prometheus cannot be asked at all."""
    now = time.time()
    prometheus.now("1", now)
    looked = Looked(now - 60 * minutes, now, scrape_seconds)
    answered = [ask(document, prometheus, looked) for document in documents().values()]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page(answered), encoding="utf-8")
    print(f"{output}: {sum(len(one.panels) for one in answered)} panels of {len(answered)} dashboards")


if __name__ == "__main__":
    sys.exit(main())
