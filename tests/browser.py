"""A real browser for pages: the machine's own; where there is none, such tests cannot run (`.ci/run` installs one)."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.run.gate import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATH = next((path for path in map(shutil.which, BROWSERS) if path), None)
needs_browser = pytest.mark.skipif(PATH is None, reason="there is no Chromium on this machine")


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PATH, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def watch(page: "Page") -> tuple[list[str], list[str]]:
    """What the page complains of and what it fetches, from now on."""
    complaints: list[str] = []
    fetched: list[str] = []
    page.set_default_timeout(1000 * PATIENCE)
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith("data:") else fetched.append(request.url))
    return complaints, fetched
