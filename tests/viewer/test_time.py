# SPDX-License-Identifier: Apache-2.0
"""The time axis has a row for each rank, with regions and time in MPI. A brush filters all parts of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof_testing.samples.timed_profiles import write_regions_profile
from ibprof_testing.views import Open, Opened

TREE = "xgft:2:4,4:1,4"  # 16 hosts
RANKS = 8
STEPS = 10
SENT = 1000 * STEPS


@pytest.fixture
def opened(open_view: Open, tmp_path: Path) -> Opened:
    inputs = [TREE, write_regions_profile(tmp_path, RANKS, STEPS), "--placement", "packed"]
    return open_view(inputs, address="#panel=time")


def drag(opened: Opened, begin: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag over the rows between two positions, which are fractions of the rows' width and height."""
    canvas = opened.page.locator("#time-rows")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (begin, end)]
    opened.page.mouse.move(*points[0])
    opened.page.mouse.down()
    opened.page.mouse.move(*points[1], steps=5)
    opened.page.mouse.up()


def row(number: int) -> float:
    return (number + 0.5) / RANKS


def test_a_brush_over_one_row_is_a_time_range_and_filters_links_and_lists(opened: Opened) -> None:
    assert opened.loads() == opened.expected()
    drag(opened, (0.25, row(3)), (0.5, row(3)))
    assert "time=" in opened.address()
    assert "ranks=" not in opened.address()
    # The axis begins with the first bytes, at 60 ms, and lasts 940 ms. The brush selects 295 to 530 ms. This range has
    # all bytes of two steps, and an eighth of the bytes of the third step.
    amounts = {int(each) for ends in opened.loads() for each in ends} - {0}
    assert max(amounts) == pytest.approx(2125, abs=100)
    opened.page.locator("#tab-ranks").click()
    sent = opened.page.locator("#ranks tbody td").first.inner_text()
    assert int(sent.replace(",", "")) == pytest.approx(2125, abs=100)
    opened.page.locator("#tab-what").click()
    assert "halo" in opened.page.locator("#regions").inner_text()
    opened.page.go_back()
    opened.page.go_back()
    opened.page.go_back()
    opened.page.wait_for_function("() => !location.hash.includes('time=')")
    assert opened.complaints == []


def test_a_brush_over_several_rows_selects_their_ranks_too(opened: Opened) -> None:
    drag(opened, (0.3, row(2)), (0.9, row(4)))
    assert "ranks=2,3,4" in opened.address()
    assert "time=" in opened.address()
    opened.page.keyboard.press("Escape")
    drag(opened, (0.5, row(6)), (0.5, row(6)))  # a click
    assert "ranks=6" in opened.address()
    assert "time=" not in opened.address()
    drag(opened, (0.5, row(6)), (0.5, row(6)))
    assert opened.loads() == opened.expected()


def test_a_cell_says_what_its_rank_did(opened: Opened) -> None:
    canvas = opened.page.locator("#time-rows")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box
    # 20 ms after the first bytes, the last rank is in region `halo` and inside MPI all the time.
    opened.page.mouse.move(box["x"] + box["width"] * 20 / 940, box["y"] + row(RANKS - 1) * box["height"])
    said = opened.page.locator("#panel-time .note").inner_text()
    for part in ("rank 7", "100% in MPI", "region halo"):
        assert part in said
    opened.page.mouse.move(box["x"] + box["width"] * 70 / 940, box["y"] + row(0) * box["height"])
    said = opened.page.locator("#panel-time .note").inner_text()
    for part in ("rank 0", "0 B sent", "0% in MPI", "region solve"):
        assert part in said


def test_the_legend_filters_by_region_and_the_menu_changes_the_rows(opened: Opened) -> None:
    page = opened.page
    legend = page.locator("#time-legend")
    assert [each.strip() for each in legend.locator("> span").all_inner_texts()] == ["solve", "halo"]
    legend.locator("button", has_text="halo").click()
    assert "region=" in opened.address()
    legend.locator("button", has_text="halo").click()
    assert "region=" not in opened.address()

    def pixels() -> str:
        return str(page.locator("#time-rows").evaluate("canvas => canvas.toDataURL()"))

    seen = {pixels()}
    for kind in ("mpi", "bytes"):
        page.locator("#time-kind").select_option(kind)
        seen.add(pixels())
    assert len(seen) == 3


def test_the_axis_has_round_moments_and_the_table_time_in_mpi(opened: Opened) -> None:
    ticks = opened.page.locator("#panel-time .axis span").all_inner_texts()
    assert ticks[:3] == ["0 s", "200 ms", "400 ms"]
    head = opened.page.locator("#spans thead").inner_text()
    assert "time in MPI" in head


def test_many_ranks_are_grouped(open_view: Open, tmp_path: Path) -> None:
    inputs = ["xgft:2:16,16:1,8", write_regions_profile(tmp_path, 200, 2), "--placement", "packed"]
    opened = open_view(inputs, address="#panel=time")
    assert opened.page.locator("#panel-time .row-label").first.inner_text() == "0-4"
    opened.page.locator("#time-rows").click(position={"x": 50, "y": 3})
    assert "ranks=0,1,2,3,4&" in opened.address() + "&"
