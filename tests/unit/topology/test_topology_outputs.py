# SPDX-License-Identifier: Apache-2.0
"""The suffix of a file selects the format of an inferred topology. Positions are computed once for all files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ibprof_lab.cli.topology import main
from ibprof_lab.lab_choices import GAMMA, POSITION_METHODS
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.outputs import vertex_positions
from ibprof_lab.topology.outputs.topology_outputs import TopologyOutputs, write_inferred
from ibprof_lab.topology.outputs.vertex_positions import VertexPositions, position_vertices

# Three hosts on one switch.
STAR = InferredTopology(
    method="made",
    hosts=("a", "b", "c"),
    switches=("s",),
    edge=np.array([(0, 3), (1, 3), (2, 3)], np.int32),
    latency_seconds=np.array([1e-6, 2e-6, 2e-6]),
    support=np.full(3, np.nan),
    probability=np.ones(3),
)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """Return a list, to which each search for positions appends the search's method and gamma."""
    made: list[tuple[str, float]] = []

    def search(topology: InferredTopology, method: str, gamma: float) -> VertexPositions:
        made.append((method, gamma))
        return position_vertices(topology, method, gamma)

    monkeypatch.setattr(vertex_positions, "position_vertices", search)
    return made


def write(folder: Path, *names: str) -> list[str]:
    outputs = TopologyOutputs(tuple(folder / name for name in names), False, POSITION_METHODS[0], GAMMA, None)
    return list(write_inferred(outputs, STAR, "inferred from delays.nc"))


def test_positions_are_found_once_for_all_files_that_show_them(
    tmp_path: Path, searches: list[tuple[str, float]]
) -> None:
    notes = write(tmp_path, "a.html", "a.csv", "a.tgf", "a.lst")
    assert searches == [(POSITION_METHODS[0], GAMMA)]
    assert {path.name for path in tmp_path.iterdir()} == {"a.html", "a.csv", "a.tgf", "a.lst", "a.fdbs"}
    routes, positions = notes
    assert routes == f"{tmp_path / 'a.lst'}: routes in {tmp_path / 'a.fdbs'} are modelled as shortest paths"
    assert positions.startswith("positions by the method fast make links about as long as their delays: ")
    assert positions.endswith(" s")
    assert (tmp_path / "a.csv").read_text().startswith("node,x,y,z\n")
    assert "inferred from delays.nc" in (tmp_path / "a.lst").read_text()
    assert (tmp_path / "a.html").stat().st_size > 10_000


def test_no_positions_are_found_for_files_without_them(tmp_path: Path, searches: list[tuple[str, float]]) -> None:
    assert write(tmp_path, "a.tgf", "a.json") == []
    assert searches == []


FILES = {
    # Four hosts on a switch. n4 is not measured, one delay is 0, and one is too long.
    "star.csv": ",n0,n1,n2,n3,n4\nn0,,2,2,2,\nn1,0,,2,2,\nn2,2,2,,9,\nn3,2,2,2,,\nn4,,,,,\n",
    # Twenty hosts on a switch; the delay between n0 and n1 is twice all other delays.
    "slow.csv": "".join(
        [*(f",n{host}" for host in range(20)), "\n"]
        + [f"n{a}{''.join(f',{0 if a == b else 4 if a + b == 1 else 2}' for b in range(20))}\n" for a in range(20)]
    ),
    "pair.csv": "a,b,bytes,latency\na,b,1,2\n",
    "plan.dot": "graph { a -- b }",
}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("infer star.csv --bootstrap 0", "4 hosts, 1 switch, 1 level, 4 links by"),
        ("infer star.csv --bootstrap 0", "note: 1 host is left out, since"),
        ("infer star.csv --bootstrap 0", "note: not measured: 1 delay of 0, since"),
        ("infer star.csv --bootstrap 0", "note: the shorter delay counts for 1 pair, because"),
        ("infer slow.csv --bootstrap 0", "note: 1 outlying pair with over 3.5 times the usual deviation\n"),
        ("infer pair.csv", "2 hosts, 0 switches, 1 link by method none, median delays of 1 byte\n"),
        ("regress plan.dot pair.csv", "1 link, 1 path, R2"),
    ],
)
def test_a_number_of_one_has_a_singular_noun(
    command: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    main(command.split())
    out = capsys.readouterr().out
    assert expected in out
    assert not re.search(r"(?<![\d,.])1 (more )?[a-z]+(?<![aeiu])s\b", out)
