# SPDX-License-Identifier: Apache-2.0
"""The page of a day by `ibprof-site` shows the jobs' loads at any time. Names of jobs are shown as text."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

import ibprof_converter
from ibprof_converter.cli.site import main
from ibprof_converter.site.day_network import _join_pairs, _list_times

FABRIC = "xgft:2:4,4:1,4"
HOSTILE = "<img src=x onerror=alert(1)>'\"/../\n"
PAIRS = ([1, 2, 3], [7, 9, 12], [10**6, 2 * 10**6, 4 * 10**6])
HOUR_S = 3600


def test_the_page_of_a_day_has_the_loads_of_its_jobs(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Job 1 sends evenly from 1 to 2 o'clock. Job 2 sends from 5 to 7 o'clock, a quarter of its bytes before 6."""
    store = tmp_path / "store"
    assert main(["fabric", FABRIC, "--from", "2026-03-01", "--store", str(store)]) == 0
    job = {"ranks": 4, "nodes": 4, "bytes": 7 * 10**6, "user": HOSTILE, "name": HOSTILE, "pair_rail": [0] * 3}
    job |= dict(zip(("pair_source", "pair_destination", "pair_bytes"), PAIRS, strict=True))
    spans: tuple[dict[str, object], ...] = (
        {"job": HOSTILE, "began": "2026-03-01T01:00:00", "ended": "2026-03-01T02:00:00"},
        {"job": "4711", "began": "2026-03-01T05:00:00", "ended": "2026-03-01T07:00:00"}
        | {"bin_s": HOUR_S, "bin_bytes": [1, 3], "bin_mpi_s": [0.0, 0.0], "user": "W" * 64},
    )
    lines = [json.dumps(job | span | {"key": f"{number:016x}"}) for number, span in enumerate(spans)]
    (tmp_path / "jobs.jsonl").write_text("\n".join(lines))
    assert main(["ingest", str(tmp_path / "jobs.jsonl"), "--store", str(store)]) == 0
    html = tmp_path / "day.html"
    assert main(["view", "2026-03-01", "-o", str(html), "--store", str(store)]) == 0
    table = tmp_path / "pairs.csv"
    rows = "".join(f"{source},{destination},{amount}\n" for source, destination, amount in zip(*PAIRS, strict=True))
    table.write_text(f"src_lid,dst_lid,bytes\n{rows}")
    of_one: list[tuple[Any, Any]] = [
        (row["a_bytes"], row["b_bytes"])
        for row in ibprof_converter.load_links(ibprof_converter.read_fabric(FABRIC), table).rows()
    ]
    context = browser.new_context(viewport={"width": 390, "height": 844})
    try:
        page = context.new_page()
        messages: list[str] = []
        page.on("dialog", lambda dialog: messages.append(dialog.message))
        page.on("console", lambda message: messages.append(message.text))
        page.goto(html.as_uri())
        page.wait_for_selector("html[data-ready]")
        found = {1: page.evaluate("ibprof.loads()")}
        found |= {
            part: page.evaluate(f"ibprof.choose({{ time: [{first * HOUR_S}, {last * HOUR_S}] }}) || ibprof.loads()")
            for part, (first, last) in {2: (0, 1), 0: (1, 4), 4: (4, 5)}.items()
        }
        page.click("#tab-time")
        text = page.inner_text("body")
        wide = page.evaluate("document.documentElement.scrollWidth")
        for button in page.query_selector_all("#jobs-key button"):  # a long name is cut to less than 390 px
            button.click(timeout=5000)
            box = button.bounding_box()
            assert box
            assert box["x"] + box["width"] <= 390
    finally:
        context.close()
    assert messages == []
    for part, loads in found.items():
        scale = {1: 2, 2: 1, 0: 0, 4: 0.25}[part]
        assert loads == [[str(int(scale * amount)) for amount in ends] for ends in of_one]
    assert sum(map(sum, of_one)) > 0
    assert "4711" in text
    assert "<img src=x onerror=alert(1)>" in text
    assert "03-01 05:00 to 03-01 06:00" in text
    assert wide == 390


def test_intervals_of_a_job_do_not_exceed_its_run() -> None:
    began = datetime(2026, 3, 1)
    row = {"began": began, "ended": began + timedelta(hours=2), "bytes": 4, "bin_s": 1e15, "bin_bytes": [1, 3]}
    sent = _list_times([row]).sent
    assert (int(sent.end_ns.max()) - int(sent.begin_ns.min())) == 2 * HOUR_S * 10**9


@pytest.mark.parametrize(("column", "value"), [("pair_source", -1), ("pair_destination", 1 << 30), ("pair_rail", 1)])
def test_pairs_that_no_port_can_have_are_left_out_of_the_page(column: str, value: int, tmp_path: Path) -> None:
    pairs = dict(zip(("pair_source", "pair_destination", "pair_bytes"), PAIRS, strict=True)) | {"pair_rail": [0] * 3}
    row = {"key": "0" * 16, "job": None, "user": None, "bytes": 7, "bin_bytes": [], **pairs}
    wrong = row | {column: [value, *pairs[column][1:]], "pair_bytes": [10**6, 2**62, 2**62]}
    traffic = _join_pairs([row, wrong], 1, "jobs")
    assert traffic.bytes.tolist() == [*PAIRS[2], 2**62]
    assert sum(traffic.unmapped.values()) == 10**6 + 2**62
