"""One browser for all tests of the page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from page_stage import PATIENCE_MS, PageStage, Visitor, chromium, words_scenario


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with chromium() as started:
        yield started


@pytest.fixture
def stage() -> Iterator[PageStage]:
    """Before its first pass."""
    with PageStage(words_scenario()).served() as served:
        yield served


@pytest.fixture
def visitor(browser: Browser, stage: PageStage) -> Iterator[Visitor]:
    """A visitor who came when the first plan had just been made. No console error is forgiven."""
    stage.until_planned()
    visitor = Visitor(browser, stage.url)
    yield visitor
    troubles = visitor.troubles
    visitor.close()
    assert troubles == []
