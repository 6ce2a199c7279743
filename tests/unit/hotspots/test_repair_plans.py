# SPDX-License-Identifier: Apache-2.0
"""Repair plans name the right cables, ports and numbers of links."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ibprof_converter.cli import report
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_testing.paths import DATA
from ibprof_testing.samples.damage import ListedFabric, is_trunk

ALL_TO_ALL = "pattern:all-to-all:1000000"


def read_report(capsys: pytest.CaptureFixture[str], links: Path) -> str:
    report.main([str(links), ALL_TO_ALL])
    return " ".join(capsys.readouterr().out.split())


def test_islands_need_links_for_the_bytes_within_them(capsys: pytest.CaptureFixture[str]) -> None:
    """16 MB cross a link and 11 MB reach a host: 16/11 = 1.45 times the links suffice."""
    assert "Add links: 1.45 times as many" in read_report(capsys, DATA / "cases" / "two-islands.txt")


def test_two_swapped_cables_are_put_right_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = ListedFabric.of(generate("xgft:2:4,6:1,4").fabric, None)
    one = next(link for link in right.links if is_trunk(right, link))
    other = next(
        link
        for link in right.links
        if is_trunk(right, link) and not {one.a.node, one.b.node} & {link.a.node, link.b.node}
    )
    ends = {(right.name(end.node), end.port) for link in (one, other) for end in (link.a, link.b)}
    links = [link for link in right.links if link not in (one, other)]
    swapped = [replace(one, b=other.b), replace(other, b=one.b)]
    text = read_report(capsys, replace(right, links=(*links, *swapped)).write(tmp_path))
    assert "Cause: wrong-cable. Unplug the cable between" in text
    assert "any free port" not in text
    assert all(f"{name} (port {port})" in text for name, port in ends)


def test_a_cable_between_groups_takes_no_port_of_the_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Port 20 + n of a switch leads to the group's switch n. On switch n, port 20 + n must stay free."""
    right = ListedFabric.of(generate("dragonfly:3,2,1").fabric, None)
    group, number = zip(*(name.split("-s") for name in right.fabric.node_name if "-s" in name), strict=True)
    links = []
    for link in right.links:
        a, b = link.a, link.b
        if is_trunk(right, link) and group[a.node] == group[b.node]:
            a, b = replace(a, port=20 + int(number[b.node])), replace(b, port=20 + int(number[a.node]))
        links.append(replace(link, a=a, b=b))
    gone = next(link for link in links if is_trunk(right, link) and group[link.a.node] != group[link.b.node])
    links.remove(gone)
    text = read_report(capsys, replace(right, links=tuple(links)).write(tmp_path))
    names = " and ".join(f"{right.name(end.node)} (any free port)" for end in (gone.a, gone.b))
    assert f"Repair or plug the cable between {names}" in text
