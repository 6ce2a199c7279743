# SPDX-License-Identifier: Apache-2.0
"""A view that is open in a browser, with the links.csv of the same command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Page


@dataclass
class Opened:
    """A view in a browser.

    Attributes:
        page: of the browser.
        rows: of links.csv for the same command line.
        requests: addresses that the page asked for, itself left out.
        complaints: of the page's console.
    """

    page: Page
    rows: list[dict[str, str]]
    requests: list[str]
    complaints: list[str]

    def loads(self) -> list[list[str]]:
        """Return the loads shown: [link][end], in the order of links.csv."""
        loads: list[list[str]] = self.page.evaluate("ibprof.loads()")
        return loads

    def expected(self) -> list[list[str]]:
        """Return the loads in links.csv."""
        return [[row["a_bytes"], row["b_bytes"]] for row in self.rows]

    def point_of_end(self, end: int) -> tuple[float, float]:
        """Where half of a link is in the window."""
        x, y = self.page.evaluate(f"ibprof.locateEnd({end})")
        box = self.page.locator("#picture").bounding_box()
        assert box
        return box["x"] + x, box["y"] + y

    def address(self) -> str:
        """The fragment of the page's address."""
        return str(self.page.evaluate("location.hash"))

    def lit(self) -> set[int]:
        """Count link directions that have a colour."""
        return set(self.page.evaluate("ibprof.lit()"))

    def bytes_of_ends(self) -> list[int]:
        """Return the loads in links.csv by link direction."""
        return [int(each) for ends in self.expected() for each in ends]

    def hottest(self) -> int:
        """Return the link direction at the head of the list."""
        return int(self.page.locator("#hot button").first.get_attribute("data-end") or "")


Open = Callable[..., Opened]
