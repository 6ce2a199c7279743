# SPDX-License-Identifier: Apache-2.0
"""Selections, filters and tabs, but not drags and zooms, are entries of the browser's history (Back and Forward)."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from ibprof_testing.samples.traffic import write_matrix
from ibprof_testing.views import Open, Opened, wait_for_address

TREE = "xgft:2:4,4:1,4"  # 16 hosts


@pytest.fixture
def opened(open_view: Open, tmp_path: Path) -> Opened:
    return open_view([TREE, write_matrix(tmp_path / "matrix.csv", 16), "--placement", "packed"])


def count_entries(opened: Opened) -> int:
    return int(opened.page.evaluate("history.length"))


def wait_for_state(page: Page, left: str) -> None:
    """Wait until the page shows the state of another URL than `left`."""
    page.wait_for_function("left => location.hash !== left", arg=left)
    page.wait_for_timeout(100)  # the browser sends the event after it has changed the URL


def test_back_and_forward_restore_selections_filters_and_tabs(opened: Opened) -> None:
    page = opened.page
    seen = [(opened.loads(), opened.lit(), "what")]
    page.locator("#tab-ranks").click()
    seen.append((opened.loads(), opened.lit(), "ranks"))
    page.locator("#ranks button").filter(has_text="5 on ").first.click()
    seen.append((opened.loads(), opened.lit(), "ranks"))
    page.locator("#levels").select_option("1")
    seen.append((opened.loads(), opened.lit(), "ranks"))
    assert len({(str(loads), str(lit), panel) for loads, lit, panel in seen}) == len(seen)

    def shown() -> tuple[list[list[str]], set[int], str]:
        panel = page.locator("#tabs [aria-selected=true]").get_attribute("id") or ""
        return opened.loads(), opened.lit(), panel.removeprefix("tab-")

    assert shown() == seen[3]
    for before in (seen[2], seen[1], seen[0]):
        address = opened.address()
        page.go_back()
        wait_for_state(page, address)
        assert shown() == before
    for after in seen[1:]:
        address = opened.address()
        page.go_forward()
        wait_for_state(page, address)
        assert shown() == after
    assert opened.complaints == []


def test_a_drag_is_one_entry_and_zoom_is_none(opened: Opened) -> None:
    page = opened.page
    before = count_entries(opened)
    box = page.locator("#colours").bounding_box()
    assert box
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.4 * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.8 * box["width"], y, steps=25)
    page.mouse.up()
    assert "load=" in opened.address()
    assert count_entries(opened) == before + 1
    page.locator("#picture").hover()
    page.mouse.wheel(0, -600)
    wait_for_address(page, "at=")
    page.keyboard.press("d")
    assert count_entries(opened) == before + 1
    address = opened.address()
    page.go_back()
    wait_for_state(page, address)
    assert "load=" not in opened.address()
    assert opened.lit() == {end for end, amount in enumerate(opened.bytes_of_ends()) if amount}


def test_a_key_that_is_held_down_is_one_entry(opened: Opened) -> None:
    handle = opened.page.get_by_role("slider", name="Load of link directions, from")
    handle.focus()
    before = count_entries(opened)
    for _ in range(5):
        opened.page.keyboard.down("ArrowRight")  # the key repeats until it is released
    opened.page.keyboard.up("ArrowRight")
    assert float(handle.get_attribute("aria-valuenow") or 0) == pytest.approx(10)
    assert count_entries(opened) == before + 1


def test_what_changes_nothing_is_no_entry(opened: Opened) -> None:
    before = count_entries(opened)
    opened.page.keyboard.press("Escape")
    opened.page.locator("#tab-what").click()
    assert count_entries(opened) == before
