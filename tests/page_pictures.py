"""Screenshots of the operator's page: of one that is beside a real cluster, and of a large simulated one."""

from __future__ import annotations

from pathlib import Path

from page_stage import PageStage, Visitor, chromium, large_scenario
from storm_operator.core.settings import Mode

SETTLED_MS = 700.0
"""The page draws what it has got at once; this is for the browser itself."""
AT_FIRST_PLAN = """async () => {
  const { goTo, state } = await import("/js/state.js"), plan = state.plans.at(-1);
  state.plan = plan.id;
  await goTo(plan.created_at_seconds);
}"""
"""As the cluster was when the first plan was made, which is the plan that is chosen then."""
LATEST = """async () => (await import("/js/state.js")).goTo(null)"""
LARGE = {"width": 1280, "height": 800}


def take_page(url: str, folder: Path) -> None:
    """Of the page at `url`, whose operator has made a plan: every tab, before that plan and now, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        visitor = Visitor(browser, url, color_scheme="light")
        visitor.page.wait_for_function("() => window.stormOperator.state.plans.length > 0")
        take(visitor, folder / "map.png", "1")
        visitor.page.evaluate(AT_FIRST_PLAN)
        take(visitor, folder / "map-before.png", "1")
        take(visitor, folder / "plan.png", "2")
        visitor.page.evaluate(LATEST)
        for name, key in (("forecast", "3"), ("decisions", "4")):
            take(visitor, folder / f"{name}.png", key)
        visitor.close()
        dark = Visitor(browser, url, color_scheme="dark")
        dark.page.wait_for_function("() => window.stormOperator.state.plans.length > 0")
        dark.page.evaluate(AT_FIRST_PLAN)
        take(dark, folder / "map-dark.png", "1")
        dark.close()


def take_large(folder: Path) -> None:
    """Of 2,000 executors, which no single machine runs: simulated, and said so where the picture is shown."""
    folder.mkdir(parents=True, exist_ok=True)
    stage = PageStage(large_scenario(2000, 50), Mode.OBSERVE)
    stage.passes(6)
    with chromium() as browser, stage.served():
        visitor = Visitor(browser, stage.url, color_scheme="light", viewport=LARGE)
        take(visitor, folder / "map-2000.png", "1")
        visitor.close()


def take(visitor: Visitor, file: Path, key: str) -> None:
    visitor.page.keyboard.press(key)
    visitor.page.wait_for_timeout(SETTLED_MS)
    visitor.page.screenshot(path=file)
