# SPDX-License-Identifier: Apache-2.0
"""The browser that opens views and reports in tests. This browser also takes the screenshots of the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from ibprof_testing.machine import find_program

_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage")


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Open the installed Chromium without a window.

    Raises:
        MissingError: Chromium is not installed.
    """
    found = find_program("chromium", "chromium-browser", "google-chrome", package="chromium")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=list(_FLAGS))
        yield opened
        opened.close()
