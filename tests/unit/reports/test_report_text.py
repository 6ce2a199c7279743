# SPDX-License-Identifier: Apache-2.0
"""A report as text has at most fifteen lines of 80 columns, which name the busiest links and what loads them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ibprof.text.quantities import format_bytes
from ibprof_converter.cli import report
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.reports.report_text import LINES, _choose_sentences
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_lab.topology.outputs.inferred_fabric import write_fdbs, write_lst
from ibprof_testing.paths import DATA

FAULTY = str(DATA / "fabrics" / "oversub-faulty" / "ibdiagnet.lst.xz")


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize(
    "arguments",
    [
        [FAULTY, "pattern:all-to-all:4096"],
        ["xgft:2:4,4:1,2", "pattern:shift:5:1000000"],
        ["torus:4,4:2", "pattern:all-to-all:1000"],
        ["matrix.csv"],
    ],
)
def test_fifteen_lines_of_eighty_columns(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    columns: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(columns))
    (tmp_path / "matrix.csv").write_text("src,dst,bytes,messages\n0,1,10,1\n1,0,30,1\n")
    assert report.main([*arguments, "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)["verdict"]["text"]
    assert report.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= columns
    shown = " ".join(lines[: lines.index("")])
    kept, is_cut, _ = shown.partition(" (More: --full.)")
    assert verdict.startswith(f"{kept} ") if is_cut else shown == verdict
    assert kept.endswith(".")


def test_what_most_bytes_of_a_link_have_in_common_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report names the pair, host or call that causes most bytes of a link. It names none of 56 equal pairs."""

    def lines(rows: str) -> list[str]:
        (tmp_path / "matrix.csv").write_text("src,dst,bytes,messages\n" + rows)
        arguments = ["xgft:2:4,4:1,1", str(tmp_path / "matrix.csv"), "--placement", "packed"]
        assert report.main(arguments) == 0
        return [line for line in capsys.readouterr().out.splitlines() if "->" in line]

    everyone = "".join(f"{a},{b},1000,1\n" for a in range(16) for b in range(16) if a != b)
    assert not any(" by " in line or "%" in line for line in lines(everyone))
    assert lines("0,4,900000,1\n1,8,100000,1\n")[0].endswith(", 90% by rank 0 -> 4")
    fan = "".join(f"0,{b},1000000,1\n" for b in range(4, 16)) + "1,4,1000000,1\n2,5,1000000,1\n"
    up = next(line for line in lines(fan) if "L1-1 port 5" in line)
    assert up.endswith(", 86% from host01 HCA-1")


def test_both_ends_of_a_link_with_long_names_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Node descriptions that differ only in the last letters stay different after shortening."""
    made = generate("xgft:2:2,2:1,2")
    names = [
        f"Voltaire 4036 - 36 QDR ports switch (..{number})" if kind == NodeKind.SWITCH else name
        for number, (kind, name) in enumerate(zip(made.fabric.node_kind, made.fabric.node_name, strict=True), 1000)
    ]
    with (tmp_path / "ibdiagnet.lst").open("w") as file:
        write_lst(file, replace(made.fabric, node_name=tuple(names)), "synthetic")
    with (tmp_path / "ibdiagnet.fdbs").open("w") as file:
        write_fdbs(file, made.tables)
    assert report.main([str(tmp_path / "ibdiagnet.lst"), "pattern:shift:2:1000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    link = next(line for line in lines if re.search(r"->.*\(\.\.", line))
    assert re.findall(r"Voltair\S* *\S*….*?\(\.\.\d+\)", link), link
    assert max(map(len, lines)) <= 80


def test_links_of_several_rails_are_named_with_theirs(capsys: pytest.CaptureFixture[str]) -> None:
    """Both rails have the same cabling and the same node names, so the rail must be named."""
    rails = ["xgft:2:4,4:1,2", "xgft:2:4,4:1,2"]
    assert report.main([*rails, "pattern:shift:5:1000000"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"The most loaded link, L1-\d port \d+ to L2-\d on rail 0,", " ".join(text.split())), text
    assert re.search(r"^ +1 .* rail 0: L1-\d port \d+ -> L2-\d", text, re.MULTILINE), text


def test_the_busiest_link_is_first(capsys: pytest.CaptureFixture[str]) -> None:
    """Links with more bytes than the busiest link are faster. Text, list and verdict name the busiest link."""
    assert report.main([FAULTY, "pattern:shift:7:100000", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    times = [spot["line_rate_s"] for spot in document["hotspots"]]
    assert times == sorted(times, reverse=True)
    assert times[0] == document["verdict"]["line_rate_s"] == document["diagnosis"]["max_time_s"]
    assert max(spot["bytes"] for spot in document["hotspots"]) > document["hotspots"][0]["bytes"]


def test_links_are_ranked_by_bytes_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """In the order of bytes, faster links precede the busiest link. The verdict names the busiest, not the first."""
    arguments = [FAULTY, "pattern:shift:7:100000"]
    assert report.main([*arguments, "--rank-by", "bytes", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    amounts = [spot["bytes"] for spot in document["hotspots"]]
    assert amounts == sorted(amounts, reverse=True)
    assert (document["ranked_by"], amounts[0]) == ("bytes", document["max_link"])
    assert document["verdict"]["line_rate_s"] > document["hotspots"][0]["line_rate_s"]
    assert report.main([*arguments, "--rank-by", "bytes"]) == 0
    text = capsys.readouterr().out
    assert "Most loaded links, bytes:" in text
    assert text.split("bytes:")[1].split()[:3] == ["1", *format_bytes(amounts[0]).split()]


def test_the_whole_report_fits_the_columns_that_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines of piped output have the requested width too. Only commands are longer, since users copy them."""
    monkeypatch.setenv("COLUMNS", "80")
    assert report.main([FAULTY, "pattern:shift:7:100000", "--full"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80 and "$ ibprof" not in line] == []


def test_sections_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([FAULTY, "pattern:shift:1", "--section", "hot", "--section", "reproduce"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Most loaded links")
    assert "Reproduce" in text
    assert "Coverage" not in text
    assert report.main([FAULTY, "pattern:shift:1", "--section", "hots"]) == 2
    assert "--section hots: expected a section of this report: " in capsys.readouterr().err


def test_a_cut_verdict_keeps_its_advice() -> None:
    """A long verdict loses sentences of evidence first. If the rest is too long, only the first sentence remains."""
    sentences = [
        "Ranks wait for rank 2.",
        "Transfer is small, and takes little time.",
        "What to do: give rank 2 less to do.",
    ]
    assert _choose_sentences(sentences, 80, 1) == [
        "Ranks wait for rank 2. (More: --full.) What to do: give rank 2 less to do."
    ]
    assert _choose_sentences(sentences, 40, 1) == ["Ranks wait for rank 2. (More: --full.)"]
