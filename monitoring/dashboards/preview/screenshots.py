"""Each dashboard of the page as a PNG, by headless Chromium."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
INSTALL = "apt-get install --no-install-recommends chromium"
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
PATIENCE_MS = 180_000.0
"""All dashboards are one page of several megabytes: on a busy machine it has taken more than a browser's usual 30 s."""


def take(page: Path, uids: Sequence[str], folder: Path) -> list[str]:
    """Write `folder`/<uid>.png for each; says what the browser complained of. `FileNotFoundError` without Chromium."""
    if not CHROMIUM.exists():
        raise FileNotFoundError(f"{CHROMIUM} is not there; to install it: {INSTALL}")
    folder.mkdir(parents=True, exist_ok=True)
    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        tab = browser.new_page(viewport={"width": 1520, "height": 1000})
        tab.set_default_timeout(PATIENCE_MS)
        tab.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.goto(page.resolve().as_uri())
        for uid in uids:
            tab.locator(f"#{uid}").screenshot(path=str(folder / f"{uid}.png"))
        browser.close()
    return complaints
