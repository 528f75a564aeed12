from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


# Not longer than a module: as long as it lives, its event loop is the running one of this thread, and no async test can run.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium: that of the machine, which `make packages` installs on Debian."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (on Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()
