"""Makes docs/images/page: screenshots of the operator's page over a simulated cluster, in headless Chromium."""

from __future__ import annotations

import argparse
from pathlib import Path

from page_stage import PageStage, Visitor, chromium, large_scenario
from storm_operator.console.site import PageAddress, SinglePage
from storm_operator.core.settings import Mode
from storm_operator.demo.scenario import durations
from storm_operator.demo.simulated import play, simulated_demo

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs/images/page"
SETTLED_MS = 700.0
"""The page draws what it has got at once; this is for the browser itself."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--output", type=Path, default=PICTURES)
    folder = options.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        page = SinglePage("demo", may_approve=False)
        demo = simulated_demo(audience=page.watcher)
        play(demo, durations(6.0))
        server, where = page.open(PageAddress(0))
        visitor = Visitor(browser, where.url, color_scheme="light")
        take(visitor, folder / "map.png", "1")
        visitor.page.get_by_label("Time", exact=True).focus()
        visitor.page.keyboard.press("Home")
        take(visitor, folder / "map-before.png", "1")
        visitor.page.keyboard.press("l")
        visitor.page.keyboard.press("2")
        visitor.page.locator(".plans li button").last.click()  # the first plan: from Even's spread to one machine
        for name, key in (("plan", "2"), ("forecast", "3"), ("decisions", "4")):
            take(visitor, folder / f"{name}.png", key)
        visitor.close()
        dark = Visitor(browser, where.url, color_scheme="dark")
        dark.page.get_by_label("Time", exact=True).focus()
        dark.page.keyboard.press("Home")
        take(dark, folder / "map-dark.png", "1")
        dark.close()
        server.shutdown()
        stage = PageStage(large_scenario(2000, 50), Mode.OBSERVE)
        stage.passes(6)
        with stage.served():
            large = Visitor(browser, stage.url, color_scheme="light")
            take(large, folder / "map-2000.png", "1")
            large.close()
    print(f"pictures: {folder}")


def take(visitor: Visitor, file: Path, key: str) -> None:
    visitor.page.keyboard.press(key)
    visitor.page.wait_for_timeout(SETTLED_MS)
    visitor.page.screenshot(path=file)


if __name__ == "__main__":
    main()
