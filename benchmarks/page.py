"""The operator's page in headless Chromium: first view, live updates, memory; the last line is JSON.

Measured on the demo's simulated cluster and on 2,000 executors. First view: from the navigation's start until the map
is drawn, by the browser's own clock, with an empty cache. Update: from the end of a pass until the browser knows it.
Memory: the renderer process' own pages (USS), and of those the JavaScript heap, after as many passes as history keeps
densely and every view looked at once.
"""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

import psutil
import typer
from playwright.sync_api import Browser
from rich.console import Console
from rich.table import Table

from page_stage import PageStage, Visitor, chromium, large_scenario, words_scenario
from storm_operator.core.settings import Mode

ASKED = {"first view, ms": 1000.0, "update, ms": 2000.0, "renderer memory, MB": 150.0}
MEGABYTE = 1024.0 * 1024.0
SETTLING_SECONDS = 2.0


def first_views(browser: Browser, url: str, repeats: int) -> list[float]:
    """Milliseconds, each in a fresh profile."""
    found = []
    for _ in range(repeats):
        visitor = Visitor(browser, url)
        found.append(float(visitor.page.evaluate("() => performance.getEntriesByName('first-view')[0].startTime")))
        visitor.close()
    return found


def updates(stage: PageStage, visitor: Visitor, repeats: int) -> list[float]:
    """Milliseconds from the end of a pass until the page has it."""
    found = []
    for _ in range(repeats):
        stage.passes(1)
        ended, number = time.monotonic(), stage.page.watcher.seen.passes
        while visitor.seen("state.passes") < number:
            time.sleep(0.02)
        found.append(1000.0 * (time.monotonic() - ended))
    return found


def memory(visitor: Visitor) -> dict[str, float]:
    """Megabytes, when every view has been looked at and garbage is collected."""
    for key in "23451":
        visitor.page.keyboard.press(key)
        time.sleep(SETTLING_SECONDS / 4.0)
    session = visitor.context.new_cdp_session(visitor.page)
    session.send("HeapProfiler.collectGarbage")
    time.sleep(SETTLING_SECONDS)
    heap = visitor.page.evaluate("() => performance.memory.usedJSHeapSize")
    processes = [child for child in psutil.Process().children(recursive=True) if "chrom" in child.name()]
    renderers = [process for process in processes if "--type=renderer" in process.cmdline()]
    return {
        "renderer_mb": max(map(_uss_mb, renderers)),
        "heap_mb": float(heap) / MEGABYTE,
        "whole_browser_mb": sum(map(_uss_mb, processes)),
    }


def _uss_mb(process: psutil.Process) -> float:
    return float(process.memory_full_info().uss) / MEGABYTE


def measured(browser: Browser, stage: PageStage, passes: int, repeats: int) -> dict[str, Any]:
    stage.passes(passes)
    with stage.served():
        views = first_views(browser, stage.url, repeats)
        visitor = Visitor(browser, stage.url)
        waits = updates(stage, visitor, repeats)
        found = memory(visitor)
        kept = stage.page.watcher.seen.history
        troubles = visitor.troubles
        visitor.close()
    return {
        "executors": len(stage.page.watcher.seen.view.executors),
        "first_view_ms": views,
        "update_ms": waits,
        **found,
        "view_kb": len(kept.passes[-1].view) / 1024.0,
        "history_mb": kept.size_bytes / MEGABYTE,
        "passes_kept": len(kept.passes),
        "troubles": troubles,
    }


def main(passes: int = 90, large_passes: int = 20, repeats: int = 7) -> None:
    """Both clusters, `repeats` times each."""
    console = Console()
    with chromium("--enable-precise-memory-info") as browser:
        found = {
            "demo": measured(browser, PageStage(words_scenario()), passes, repeats),
            "large": measured(browser, PageStage(large_scenario(2000, 50), Mode.OBSERVE), large_passes, repeats),
        }
    table = Table(title="The operator's page", title_justify="left", box=None)
    for heading in ("cluster", "executors", "first view, ms", "update, ms", "renderer, MB", "heap, MB", "view, kB"):
        table.add_column(heading, justify="right")
    for name, one in found.items():
        figures = (_spread(one["first_view_ms"]), _spread(one["update_ms"]), f"{one['renderer_mb']:.0f}")
        table.add_row(name, str(one["executors"]), *figures, f"{one['heap_mb']:.1f}", f"{one['view_kb']:.1f}")
    console.print(table)
    console.print(f"asked: {', '.join(f'{name} under {most:.0f}' for name, most in ASKED.items())}")
    print(json.dumps(found))


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


if __name__ == "__main__":
    typer.run(main)
