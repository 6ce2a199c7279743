# SPDX-License-Identifier: Apache-2.0
"""Each stage of an analysis states the bytes that this stage received, kept and left out.

If many bytes are left out, the text first states how many.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from ibprof.cli import collect, info
from ibprof.profile.missing_data import StageAccount, describe_losses
from ibprof_converter.cli import layout, place, report, routes, view
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_lab.cli import sim
from ibprof_testing.samples.damage import ListedFabric, record_run, write_run

LOST = 9000
"""Bytes that rank 2 lost because its recording was full."""

Captured = pytest.CaptureFixture[str]
Main = Callable[[Sequence[str]], int]

COMMANDS: dict[str, tuple[Main, list[str]]] = {
    "info": (info.main, ["RUN", "--json"]),
    "list": (collect.main, ["RUN", "--list", "--json"]),
    "collect": (collect.main, ["RUN", "--json"]),
    "report": (report.main, ["LST", "RUN", "--max-unrouted", "100", "--json"]),
    "report without a fabric": (report.main, ["RUN", "--json"]),
    "place": (place.main, ["LST", "RUN", "--slots", "2", "--time", "0.02", "--json"]),
    "check": (layout.main, ["--check", "LST", "--json"]),
    "patterns": (layout.main, ["--patterns", "LST", "--samples", "1", "--json"]),
    "layout": (layout.main, ["LST", "RUN", "--max-unrouted", "100", "-o", "links.csv", "--yaml", "-"]),
    "routes": (routes.main, ["compare", "LST", "RUN", "--engines", "minhop", "--json"]),
    "threshold": (sim.main, ["threshold", "--fabric", "LST", "--servers", "1", "--quick", "--seeds", "1", "--json"]),
    "study": (sim.main, ["run", "study.yaml", "-o", "results"]),
}

STUDY = """\
fabric: xgft:2:4,4:1,2
servers: 0
effort: {messages: 2, background: 1}
jobs:
  - {name: app, role: profile, profile: RUN, interval: 1 ms, share: 1}
"""


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return a run without rank 7 and with lost bytes of rank 2, and the run's fabric."""
    monkeypatch.chdir(tmp_path)
    made = generate("xgft:2:2,2:1,2")
    links = ListedFabric.of(made.fabric, made.tables).write(tmp_path / "fabric")
    run = record_run(("host1", "host2", "host3", "host4"))
    full = run["host2"][0]
    run["host2"][0] = dataclasses.replace(full, fields={**full.fields, "lost_bytes": LOST, "lost_messages": 3})
    del run["host4"][1]
    write_run(run, tmp_path / "run.ibprof")
    (tmp_path / "study.yaml").write_text(STUDY.replace("RUN", "run.ibprof"))
    return {"RUN": "run.ibprof", "LST": str(links)}


def coverages(document: Any) -> list[list[dict[str, Any]]]:
    """Return each `accounts` list in a document."""
    if isinstance(document, list):
        return [found for each in document for found in coverages(each)]
    if not isinstance(document, dict):
        return []
    own = [document["coverage"]["accounts"]] if "coverage" in document else []
    return own + [found for name, each in document.items() if name != "coverage" for found in coverages(each)]


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_stage_received_is_kept_or_left_out(inputs: dict[str, str], capsys: Captured, name: str) -> None:
    main, words = COMMANDS[name]
    assert main([inputs.get(word, word) for word in words]) == 0
    text = Path("results/summary.json").read_text() if name == "study" else capsys.readouterr().out
    found = coverages(yaml.safe_load(text) if name == "layout" else json.loads(text))
    assert found
    for accounts in found:
        for each in accounts:
            assert each["total"] == each["kept"] + sum(each["left_out"].values()), each
            assert all(each["left_out"].values()), each
        of_bytes = [each for each in accounts if each["noun"] == "bytes" and each["stage"] != "report"]
        for before, after in pairwise(of_bytes):
            # The route stage also receives the bytes that the place stage left out.
            kept = before["total"] if before["stage"] == "place" else before["kept"]
            assert after["total"] == kept, (before, after)
    if "RUN" in words or name == "study":
        record = next(each for each in found[0] if each["stage"] == "record")
        assert record == {"stage": "record", "noun": "ranks", "total": 8, "kept": 7, "left_out": {"not recorded": 1}}


@pytest.mark.parametrize("name", ["info", "collect", "report", "report without a fabric", "place", "layout"])
def test_first_lines_name_large_losses(inputs: dict[str, str], capsys: Captured, name: str) -> None:
    main, words = COMMANDS[name]
    assert main([inputs.get(word, word) for word in words if word not in {"--json", "--yaml", "-"}]) == 0
    said = capsys.readouterr()
    lines = (said.out or said.err).splitlines()[:12]
    assert any("1 of 8 ranks" in line for line in lines), lines
    assert any("9 kB of 93 kB (9.7%): the recording could not grow" in line for line in lines), lines


def test_the_page_names_large_losses(inputs: dict[str, str]) -> None:
    assert report.main([inputs["LST"], inputs["RUN"], "--max-unrouted", "100", "--html", "page.html"]) == 0
    page = Path("page.html").read_text()
    verdict = page[page.index('id="verdict"') :]
    assert "9 kB of 93 kB (9.7%): the recording could not grow" in verdict[: verdict.index("</section>")]


def test_the_view_names_large_losses(inputs: dict[str, str], capsys: Captured) -> None:
    assert view.main([inputs["LST"], inputs["RUN"], "--max-unrouted", "100", "-o", "view.html"]) == 0
    assert "9 kB of 93 kB (9.7%): the recording could not grow" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("accounts", "complete", "said"),
    [
        ([StageAccount("read", "hosts", 4, 4)], True, ["Nothing is left out: all 4 hosts."]),
        ([StageAccount("read", "hosts", 4, 4)], False, []),
        ([StageAccount("read", "links", 4, 1, {"not active": 3})], True, []),
        (
            [StageAccount("record", "bytes", 1000, 990, {"a": 10})],
            True,
            ["Less than 1% is left out: 10 B of 1 kB (1%): a."],
        ),
        (
            # 1,000 of the 2,500 B are counted twice, by sender and receiver. So 500 of 1,500 B were lost.
            [
                StageAccount("record", "bytes", 2500, 2000, {"full": 500}),
                StageAccount("collect", "bytes", 2000, 1000, {"received": 1000}),
            ],
            True,
            ["Left out: 500 B of 1.5 kB (33.3%): full."],
        ),
    ],
)
def test_losses_are_named_from_one_percent_on(accounts: list[StageAccount], complete: bool, said: list[str]) -> None:
    assert list(describe_losses(accounts, complete)) == said


def test_an_account_that_does_not_add_up_is_refused() -> None:
    with pytest.raises(ArithmeticError, match="do not add up"):
        StageAccount("read", "hosts", 4, 3)


def test_the_loss_of_each_run_is_a_share_of_its_own_bytes() -> None:
    few = [
        StageAccount("record", "bytes", 1000, 980, {"full": 20}),
        StageAccount("collect", "bytes", 980, 490, {"received": 490}),
    ]
    many = [StageAccount("record", "bytes", 510, 510), StageAccount("collect", "bytes", 510, 0, {"received": 510})]
    sentence = "Left out: 20 B of 510 B (3.9%): full."
    assert list(describe_losses(few))[:1] == list(describe_losses([*few, *many]))[:1] == [sentence]
