# SPDX-License-Identifier: Apache-2.0
"""Compare a view that is open in a browser with the links.csv of the same command line."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from playwright.sync_api import Page

from ibprof_converter.cli import layout


def wait_for_address(page: Page, part: str) -> None:
    """Wait until the page's URL contains `part` and has stopped changing. The page updates its URL with a delay."""
    page.wait_for_function("part => location.hash.includes(part)", arg=part)
    page.evaluate("""async () => {
        for (let last = ""; last !== location.hash; await new Promise((then) => setTimeout(then, 1000)))
            last = location.hash;
    }""")


@dataclass
class Opened:
    """A view in a browser.

    Attributes:
        page: the page of the browser.
        arguments: the command line without the view's own options.
        folder: folder that contains links.csv.
        requests: URLs that the page requested, without its own URL.
        complaints: messages in the page's console.
    """

    page: Page
    arguments: list[str]
    folder: Path
    requests: list[str]
    complaints: list[str]

    @cached_property
    def rows(self) -> list[dict[str, str]]:
        """Return the rows of links.csv for the same command line."""
        links = self.folder / "links.csv"
        assert layout.main([*self.arguments, "-o", str(links)]) == 0
        with links.open(newline="") as file:
            return list(csv.DictReader(file))

    def loads(self) -> list[list[str]]:
        """Return the loads that the page shows: [link][end], in the order of links.csv."""
        loads: list[list[str]] = self.page.evaluate("ibprof.loads()")
        return loads

    def expected(self) -> list[list[str]]:
        """Return the loads in links.csv: [link][end]."""
        return [[row["a_bytes"], row["b_bytes"]] for row in self.rows]

    def point_of_end(self, end: int) -> tuple[float, float]:
        """Return the position of a link direction in the window."""
        x, y = self.page.evaluate(f"ibprof.locateEnd({end})")
        box = self.page.locator("#picture").bounding_box()
        assert box
        return box["x"] + x, box["y"] + y

    def address(self) -> str:
        """Return the fragment of the page's URL."""
        return str(self.page.evaluate("location.hash"))

    def lit(self) -> set[int]:
        """Return the link directions that the view draws in a colour."""
        return set(self.page.evaluate("ibprof.lit()"))

    def bytes_of_ends(self) -> list[int]:
        """Return the load of each link direction in links.csv."""
        return [int(each) for ends in self.expected() for each in ends]

    def most_loaded(self) -> int:
        """Return the link direction at the top of the list of most loaded links."""
        return int(self.page.locator("#top-links button").first.get_attribute("data-end") or "")


Open = Callable[..., Opened]
