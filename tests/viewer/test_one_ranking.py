# SPDX-License-Identifier: Apache-2.0
"""Verdict, list of links, JSON report, view and comparison of runs name the link directions in the same order.

In the test's fabric, all links need the same time, so any difference would be in the order of equal links.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ibprof_converter.cli import diff, layout, report
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample
from ibprof_testing.views import Open

TIED = (["xgft:2:4,4:1,4", "pattern:all-to-all:1000"], ["torus:4x4:1", "pattern:shift:1:1000"])
UNTIED = ([str(find_sample("oversub-faulty", IBDIAGNET)), "pattern:shift:7:100000"],)


def describe(spot: dict[str, Any]) -> tuple[str, int]:
    side = spot["link"][spot["end"]]
    return side["name"], side["port"]


@pytest.fixture(params=[*TIED, *UNTIED], ids=lambda arguments: Path(arguments[0]).parent.name or arguments[0])
def arguments(request: pytest.FixtureRequest) -> list[str]:
    found: list[str] = request.param
    return found


def test_all_outputs_name_link_directions_in_one_order(
    open_view: Open, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report.main([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    listed = [describe(spot) for spot in document["hotspots"]]
    name, port = listed[0]
    assert f"{name} port {port} to" in document["verdict"]["text"]

    assert report.main(arguments) == 0
    assert f"{name} port {port}" in capsys.readouterr().out.replace("\n", " ").partition("Most loaded links")[2]

    opened = open_view(arguments)
    ranked = [(opened.rows[end >> 1], "ab"[end & 1]) for end in opened.page.evaluate("ibprof.ranked()")]
    assert [(row[f"{side}_name"], int(row[f"{side}_port"])) for row, side in ranked[: len(listed)]] == listed
    groups = [(*describe(each["busiest"]), each["directions"]) for each in document["link_groups"][:3]]
    numbered = opened.page.locator("#top-links li").all()
    assert len(numbered) == len(groups)
    for (name, port, count), item in zip(groups, numbered, strict=True):
        text = item.inner_text()
        assert text.startswith(f"{name} port {port} to ")
        assert (f"{count:,} links alike" in text) == (count > 1)

    (tmp_path / "report.json").write_text(json.dumps(document))
    assert layout.main([*arguments, "-o", str(tmp_path / "run.csv")]) == 0
    for side in ("report.json", "run.csv"):
        assert diff.main([str(tmp_path / side)] * 2 + ["--json"]) == 0
        change = json.loads(capsys.readouterr().out)["change"]
        found = [(each["sender"], each["port"]) for each in change["most_loaded"]["a"]]
        assert found == listed[: len(found)]


def test_of_equals_a_host_s_own_link_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([*TIED[0], "--json", "--top", "40"]) == 0
    document = json.loads(capsys.readouterr().out)
    spots = document["hotspots"]
    assert len({spot["line_rate_s"] for spot in spots}) > 1 or len({spot["link"]["kind"] for spot in spots}) == 2
    ranks = [(-spot["line_rate_s"], spot["link"]["kind"] != "host") for spot in spots]
    assert ranks == sorted(ranks)
    assert document["verdict"]["kind"] != "switch-links"
