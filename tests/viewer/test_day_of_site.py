# SPDX-License-Identifier: Apache-2.0
"""The page of a day of `ibprof-site` shows the loads of its jobs, whose names are text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import ibprof_converter
from ibprof_converter.cli.site import main

FABRIC = "xgft:2:4,4:1,4"
HOSTILE = "<img src=x onerror=alert(1)>'\"/../\n"
PAIRS = ([1, 2, 3], [7, 9, 12], [10**6, 2 * 10**6, 3 * 10**6])


def test_the_page_of_a_day_has_the_loads_of_its_jobs(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    assert main(["fabric", FABRIC, "--from", "2026-03-01", "--store", str(store)]) == 0
    job = {"began": "2026-03-01T01:00:00", "ended": "2026-03-01T02:00:00", "ranks": 4, "nodes": 4, "bytes": 6 * 10**6}
    job |= dict(zip(("pair_source", "pair_destination", "pair_bytes"), PAIRS, strict=True))
    job |= {"pair_rail": [0] * 3, "user": HOSTILE, "name": HOSTILE}
    names = (HOSTILE, "4711")
    lines = [json.dumps(job | {"key": f"{number:016x}", "job": name}) for number, name in enumerate(names)]
    (tmp_path / "jobs.jsonl").write_text("\n".join(lines))
    assert main(["ingest", str(tmp_path / "jobs.jsonl"), "--store", str(store)]) == 0
    html = tmp_path / "day.html"
    assert main(["view", "2026-03-01", "-o", str(html), "--store", str(store)]) == 0
    table = tmp_path / "pairs.csv"
    rows = "".join(f"{source},{destination},{2 * amount}\n" for source, destination, amount in zip(*PAIRS, strict=True))
    table.write_text(f"src_lid,dst_lid,bytes\n{rows}")
    expected = ibprof_converter.load_links(ibprof_converter.read_fabric(FABRIC), table).rows()
    context = browser.new_context()
    try:
        page = context.new_page()
        messages: list[str] = []
        page.on("dialog", lambda dialog: messages.append(dialog.message))
        page.on("console", lambda message: messages.append(message.text))
        page.goto(html.as_uri())
        page.wait_for_selector("html[data-ready]")
        loads = page.evaluate("ibprof.loads()")
        text = page.inner_text("body")
    finally:
        context.close()
    assert messages == []
    assert loads == [[str(row["a_bytes"]), str(row["b_bytes"])] for row in expected]
    assert sum(int(amount) for ends in loads for amount in ends) > 0
    assert "4711-" in text
    assert "_img_src_x_onerror" in text
