# SPDX-License-Identifier: Apache-2.0
"""Groups of link directions with nearly the same time at line rate agree with links.csv."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from ibprof_converter.cli import layout, report
from ibprof_testing.paths import DATA

FAULTY = str(DATA / "fabrics" / "oversub-faulty" / "ibdiagnet.lst.xz")


def group_rows(path: Path, groups: int) -> list[tuple[float, int]]:
    """Return the time at line rate and the number of link directions of each of the busiest groups in links.csv."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    left = []
    for row in rows:
        levels = int(row["a_level"]), int(row["b_level"])
        for end, kind in (("a", levels), ("b", levels[::-1])):
            if amount := int(row[f"{end}_bytes"]):
                left.append((amount * 8 / (float(row["gbps"]) * 1e9), kind))
    found: list[tuple[float, int]] = []
    while left and len(found) < groups:
        first, kind = max(left)
        # Groups of two kinds may have exactly the same time. The order of these groups does not matter here.
        members = [each for each in left if each[1] == kind and each[0] >= 0.99 * first]
        found.append((first, len(members)))
        left = [each for each in left if each not in members]
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        [FAULTY, "pattern:shift:7:100000"],
        ["xgft:2:4,4:1,2", "pattern:all-to-all:1000"],
        ["torus:4,4:2", "pattern:all-to-all:1000"],
    ],
)
def test_groups_are_those_of_all_link_directions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert layout.main([*arguments, "-o", str(tmp_path / "links.csv")]) == 0
    capsys.readouterr()
    assert report.main([*arguments, "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["link_groups"]
    found = [(each["busiest"]["line_rate_s"], each["directions"]) for each in groups]
    expected = group_rows(tmp_path / "links.csv", len(found))
    assert sorted(count for _, count in found) == sorted(count for _, count in expected)
    assert [seconds for seconds, _ in found] == pytest.approx([seconds for seconds, _ in expected])


def test_text_and_page_number_the_same_links(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([FAULTY, "pattern:shift:7:100000"]) == 0
    brief = [line.split() for line in capsys.readouterr().out.splitlines() if " -> " in line]
    assert report.main([FAULTY, "pattern:shift:7:100000", "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["link_groups"]
    for number, words in enumerate(brief, 1):
        busiest = groups[number - 1]["busiest"]
        side = busiest["link"][busiest["end"]]
        assert words[0] == str(number)
        assert f"{side['name']} port {side['port']} " in " ".join(words)
        assert (f"(+ {groups[number - 1]['directions'] - 1} alike)" in " ".join(words)) == (
            groups[number - 1]["directions"] > 1
        )
