# SPDX-License-Identifier: Apache-2.0
"""Folded stacks of the most loaded link direction agree with links.csv."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof_converter.cli import layout
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

FABRIC = str(find_sample("testbed44", IBDIAGNET))

RUN = make_profile(
    [
        Count(0, 2, 600, region=0, operation=0),
        Count(1, 2, 300, region=1, operation=0),
        Count(1, 2, 100, region=1, operation=1),
        Count(0, 1, 50, region=0, operation=1),
    ],
    [make_rank(0, 0), make_rank(1, 1), make_rank(2, 2)],
    [make_host("host01"), make_host("host02"), make_host("host42")],
    regions=("main", "ha;lo"),
    operations=("SEND", "BCAST"),
)


def test_stacks_are_the_bytes_of_the_busiest_link(tmp_path: Path) -> None:
    write_archive(RUN, tmp_path / "profile.otf2")
    arguments = [FABRIC, str(tmp_path / "profile.otf2"), "--by", "region,operation"]
    links, folded = tmp_path / "links.csv", tmp_path / "link.folded"
    assert layout.main([*arguments, "-o", str(links), "--folded", str(folded)]) == 0
    with links.open(newline="") as file:
        rows = list(csv.DictReader(file))
    by_call: dict[tuple[str, str, str], int] = {}
    for row in rows:
        for end in "ab":
            name = f"{row[f'{end}_name']} port {row[f'{end}_port']}"
            if row["region"] != "*" and int(row[f"{end}_bytes"]):
                by_call[name, row["region"], f"MPI_{row['operation'].capitalize()}"] = int(row[f"{end}_bytes"])
    stacks = [line.rpartition(" ") for line in folded.read_text().splitlines()]
    found = {tuple(stack.split(";")): int(weight) for stack, _, weight in stacks}
    assert len(found) == 3
    assert sum(found.values()) == 1000
    for (link, region, operation), weight in found.items():
        port = link.partition(" -> ")[0]
        assert by_call[port, region.replace(",", ";"), operation] == weight
    assert list(found.values()) == [600, 300, 100]


def test_without_traffic_on_links_there_are_no_stacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_archive(make_profile([], [make_rank(0)], [make_host("host01")]), tmp_path / "profile.otf2")
    arguments = [FABRIC, str(tmp_path / "profile.otf2"), "-o", "/dev/null", "--folded", str(tmp_path / "f")]
    assert layout.main(arguments) == 2
    assert "no link carries bytes" in capsys.readouterr().err
