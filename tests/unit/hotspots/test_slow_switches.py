# SPDX-License-Identifier: Apache-2.0
"""The causes and the check name a switch whose links are slower or fewer than the links of its peers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ibprof_converter.cli import layout, report
from ibprof_testing.paths import DATA

SLOW_SPINE = DATA / "cases" / "slow-spine.txt"
"""Links of spine1 run at 54.5 Gb/s, links of other spines at 100 Gb/s."""


def report_on(links: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    assert report.main([str(links), "pattern:all-to-all:1000000", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def slow_leaf(folder: Path) -> Path:
    """Write the same fabric, but with slow uplinks of leaf1 instead of slow links of spine1."""
    lines, node = [], ""
    for line in SLOW_SPINE.read_text().splitlines():
        if head := re.match(r'(?:Switch|Ca).*# "([^"]+)"', line):
            node = head[1]
        peer = re.search(r'"S-[0-9a-f]+"\[\d+\].*"(\w+)"', line)
        ends = {node, peer[1] if peer else ""}
        is_slow = "leaf1" in ends and any(end.startswith("spine") for end in ends)
        lines.append(re.sub(r"4x\w+", "4xFDR" if is_slow else "4xEDR", line))
    path = folder / "slow-leaf.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_slow_spine_is_the_cause(capsys: pytest.CaptureFixture[str]) -> None:
    (cause,) = report_on(SLOW_SPINE, capsys)["diagnosis"]["causes"]
    assert (cause["cause"], cause["kind"], cause["at"]) == ("slow-link", "repair", ["spine1"])
    assert cause["evidence"][0].startswith(
        "all 8 links of spine1 to switches run at 54.5455 Gb/s, those of 2 others at"
    )
    assert "the switch is an older model, or cables, firmware or port settings limit the links" in cause["evidence"][0]
    assert [round(cause[name] * 1e3, 2) for name in ("max_time_s", "max_time_after_s")] == [2.64, 1.84]


def test_a_leaf_with_slow_uplinks_lacks_no_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cause,) = report_on(slow_leaf(tmp_path), capsys)["diagnosis"]["causes"]
    assert (cause["cause"], cause["at"]) == ("slow-link", ["leaf1"])
    assert cause["evidence"][0].startswith("all 6 links of leaf1 to switches run at 54.5455 Gb/s, those of 3 others at")


def test_narrow_links_of_a_switch_say_their_width(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "narrow.txt"
    path.write_text(slow_leaf(tmp_path).read_text().replace("4xFDR", "1xEDR"))
    (cause,) = report_on(path, capsys)["diagnosis"]["causes"]
    assert "run at 25 Gb/s on 1 of 4 lanes, those of 3 others at 100 Gb/s" in cause["evidence"][0]


def test_the_check_finds_the_slow_spine(capsys: pytest.CaptureFixture[str]) -> None:
    layout.main(["--check", str(SLOW_SPINE), "--json"])
    names = {each["name"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
    assert set(names) == {"no-tables", "slow-switch"}
    assert names["slow-switch"]["places"] == [
        "all 8 links of spine1 to switches run at 54.5455 Gb/s, those of 2 others at 100 Gb/s"
    ]


def test_one_of_two_spines_that_is_slow_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of the links are slow. ibprof assumes that the rate of the faster half is the usual rate."""
    path = tmp_path / "two.lst"
    ends = {}
    for number, name in enumerate(("spine0", "spine1", "leaf0", "leaf1", *(f"h{host} hca" for host in range(4)))):
        kind = "CA" if name.startswith("h") else "SW"
        guid = f"{0x10 * (number + 1):016x}"
        ends[name.split()[0]] = (
            f"{{ {kind} Ports:08 SystemGUID:{guid} NodeGUID:{guid} PortGUID:{guid} VenID:000002C9 DevID:00000000 "
            f"Rev:00000000 {{{name}}} LID:{number + 1:04x} PN:%02x }}"
        )
    cables = [(f"h{host}", 1, f"leaf{host // 2}", 1 + host % 2, "25") for host in range(4)] + [
        (f"leaf{leaf}", 3 + 2 * spine + cable, f"spine{spine}", 1 + 2 * leaf + cable, "14" if spine else "25")
        for leaf in range(2)
        for spine in range(2)
        for cable in range(2)
    ]
    path.write_text(
        "".join(f"{ends[a] % p} {ends[b] % q} PHY=4x LOG=ACT SPD={speed}\n" for a, p, b, q, speed in cables)
    )
    layout.main(["--check", str(path), "--json"])
    names = {each["name"]: each["places"] for each in json.loads(capsys.readouterr().out)["findings"]}
    assert names["slow-switch"] == [
        "all 4 links of spine1 to switches run at 54.5455 Gb/s, those of another one at 100 Gb/s"
    ]


def test_a_spine_with_half_the_links_of_its_peers_has_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """spine1 has one cable to each leaf; the other spines have two."""
    lines, node = [], ""
    for line in SLOW_SPINE.read_text().replace("4xFDR", "4xEDR").splitlines():
        if head := re.match(r'(?:Switch|Ca).*# "([^"]+)"', line):
            node = head[1]
        port, peer = re.match(r"\[(\d+)\]", line), re.search(r'"S-[0-9a-f]+"\[(\d+)\].*"(\w+)"', line)
        of_spine = peer and "spine1" in (node, peer[2])
        if not (of_spine and port and peer and int(port[1] if node == "spine1" else peer[1]) % 2 == 0):
            lines.append(line)
    path = tmp_path / "few.txt"
    path.write_text("\n".join(lines) + "\n")
    diagnosis = report_on(path, capsys)["diagnosis"]
    (cause,) = diagnosis["causes"]
    assert (cause["cause"], cause["kind"], cause["at"]) == ("few-links", "repair", ["spine1"])
    assert cause["evidence"][0] == (
        "spine1 has 4 links to switches; most switches of its level have 8: the fabric was built so, or each switch "
        "below lacks a cable"
    )
    assert [cause["change"].count(f"leaf{leaf} ") for leaf in range(4)] == [1] * 4
    assert cause["max_time_after_s"] < 0.7 * cause["max_time_s"]
    layout.main(["--check", str(path), "--json"])
    assert "few-links" in {each["name"] for each in json.loads(capsys.readouterr().out)["findings"]}
