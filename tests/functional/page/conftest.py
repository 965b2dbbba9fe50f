"""One browser for all tests of the page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from page_stage import PageStage, Visitor, chromium, words_scenario


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def stage() -> Iterator[PageStage]:
    """Before its first pass, which makes the plan that gathers what Even has spread."""
    with PageStage(words_scenario()).served() as served:
        yield served


@pytest.fixture
def visitor(browser: Browser, stage: PageStage) -> Iterator[Visitor]:
    """A visitor who came after the first pass. No console error is forgiven."""
    stage.passes(1)
    visitor = Visitor(browser, stage.url)
    yield visitor
    troubles = visitor.troubles
    visitor.close()
    assert troubles == []
