# SPDX-License-Identifier: Apache-2.0
"""User-supplied attributes of ranks and nodes are shown, colour nodes and select traffic.

A click in the grid selects traffic too.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from ibprof_testing.views import Open, Opened

SIDE = 4
FABRIC = "xgft:2:4,4:1,4"


@pytest.fixture
def opened(open_view: Open, tmp_path: Path) -> Opened:
    ranks = range(SIDE * SIDE)
    with (tmp_path / "matrix.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["src", "dst", "bytes", "messages"])
        rows.writerows([rank, (rank + SIDE) % len(ranks), 1000 + rank, 1] for rank in ranks)
    told = "".join(f"{rank},{rank % SIDE},{rank // SIDE},{'ice' if rank < 3 else 'sea'},{rank}\n" for rank in ranks)
    (tmp_path / "ranks.csv").write_text(f"rank,x,y,part,cells\n{told}")
    (tmp_path / "nodes.csv").write_text("host,<b>role</b>\nhost01,storage\nhost02,compute\n")
    options = ["--rank-data", str(tmp_path / "ranks.csv"), "--node-data", str(tmp_path / "nodes.csv")]
    arguments = [FABRIC, str(tmp_path / "matrix.csv"), "--placement", "packed"]
    return open_view(arguments, options=options, address="#panel=domain")


def point_of_cell(opened: Opened, x: int, y: int) -> tuple[float, float]:
    opened.page.locator("#domain").scroll_into_view_if_needed()
    box = opened.page.locator("#domain").bounding_box()
    assert box
    return box["x"] + box["width"] * (x + 0.5) / SIDE, box["y"] + box["height"] * (y + 0.5) / SIDE


def test_a_click_on_the_grid_chooses_a_rank_and_a_frame_several(opened: Opened) -> None:
    mouse = opened.page.mouse
    mouse.click(*point_of_cell(opened, 1, 2))
    assert "ranks=9" in opened.address()
    # Rank 9 sends to 13 and receives from 5. So the links of three hosts, and links between switches, have loads.
    sent = sum(int(ends[0]) for ends, row in zip(opened.loads(), opened.rows, strict=True) if row["a_level"] == "0")
    assert sent == 1009 + 1005
    mouse.move(*point_of_cell(opened, 0, 0))
    mouse.down()
    mouse.move(*point_of_cell(opened, 1, 1), steps=3)
    mouse.up()
    assert "ranks=0,1,4,5" in opened.address()
    opened.page.locator("#domain").focus()
    opened.page.keyboard.press("ArrowRight")
    opened.page.keyboard.press("Enter")
    assert opened.address().endswith("ranks=1") or "ranks=1&" in opened.address()


def test_classes_are_chosen_by_their_names(opened: Opened) -> None:
    page = opened.page
    page.locator("#colour-by").select_option(label="part (rank)")
    assert "colour=0" in opened.address()
    page.get_by_role("button", name="ice", exact=True).click()
    assert "ranks=0,1,2" in opened.address()
    page.get_by_role("button", name="ice", exact=True).click()
    assert "ranks" not in opened.address()
    page.locator("#colour-by").select_option(label="<b>role</b> (node)")
    page.get_by_role("button", name="storage", exact=True).click()
    assert "hosts=0" in opened.address()
    assert not opened.complaints


def test_the_ranks_values_stand_in_the_table(opened: Opened) -> None:
    row = opened.page.locator("#domain-table tbody tr").nth(9)
    assert [cell.strip() for cell in row.locator("th,td").all_text_contents()] == [
        *("9", "(1, 2, 0)", "1,009", "part: sea; cells: 9"),
    ]


def test_nodes_have_the_colours_of_their_classes(opened: Opened) -> None:
    before = opened.page.locator("#picture").screenshot()
    opened.page.locator("#colour-by").select_option(label="part (rank)")
    opened.page.wait_for_timeout(300)
    assert opened.page.locator("#picture").screenshot() != before
