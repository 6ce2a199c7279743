# SPDX-License-Identifier: Apache-2.0
"""With several ranks on each host, a report predicts correctly which order of ranks is best for the hosts' links."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ibprof_converter.cli import place, report
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_testing.samples import many_adapters

FABRIC = "xgft:2:8,4:1,4"
"""32 hosts, eight on each leaf switch; all links have 100 Gb/s."""

RATE = 12.5e9
BYTES = 1_000_000_000

Pairs = Iterable[tuple[int, int]]


def halo(side: int) -> Pairs:
    for rank in range(side * side):
        row, column = divmod(rank, side)
        for step in (-1, 1):
            yield rank, (row + step) % side * side + column
            yield rank, row * side + (column + step) % side


def opposite(ranks: int) -> Pairs:
    return ((rank, (rank + ranks // 2) % ranks) for rank in range(ranks))


def gathers(roots: int, ranks: int) -> Pairs:
    return ((rank, root) for root in range(roots) for rank in range(ranks) if rank != root)


@dataclass(frozen=True)
class Case:
    """Ranks packed on hosts, and the time of the most loaded link, calculated by hand.

    Attributes:
        pairs: pairs of ranks. Each pair sends `BYTES`.
        on_host: number of ranks on a host.
        before: time with ranks packed in their order, s.
        after: time with the best order, s.
    """

    pairs: Callable[[], Pairs]
    ranks: int
    on_host: int
    before: float
    after: float


CASES = {
    # A row of 16 ranks has 32 neighbours on other hosts. A block of 4 by 4 ranks has 16 neighbours on other hosts.
    "halo": Case(lambda: halo(16), 256, 16, 32 * BYTES / RATE, 16 * BYTES / RATE),
    # In the given order, eight hosts of a leaf share its four uplinks. With both ranks of each pair on one host, links
    # carry nothing.
    "pairs": Case(lambda: opposite(64), 64, 2, 4 * BYTES / RATE, 0.0),
    # In the given order, one host has all eight roots. In the best order, each of eight hosts has one root.
    "gather": Case(lambda: gathers(8, 64), 64, 8, 8 * 56 * BYTES / RATE, 56 * BYTES / RATE),
}


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def run(command: Callable[[list[str]], int], *arguments: object) -> Any:
        assert command([*map(str, arguments), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def write_matrix(path: Path, pairs: Pairs) -> Path:
    rows = (f"{source},{destination},{BYTES},1\n" for source, destination in pairs)
    path.write_text("src,dst,bytes,messages\n" + "".join(rows))
    return path


def write_packed(path: Path, hosts: tuple[str, ...], ranks: int, on_host: int) -> Path:
    path.write_text("rank,host\n" + "".join(f"{rank},{hosts[rank // on_host]}\n" for rank in range(ranks)))
    return path


@pytest.mark.parametrize("name", CASES)
def test_another_order_of_ranks_on_the_same_hosts_is_named_and_comes_true(
    name: str, ask: Callable[..., Any], tmp_path: Path
) -> None:
    case = CASES[name]
    matrix = write_matrix(tmp_path / "matrix.csv", case.pairs())
    hosts = find_hosts([generate(FABRIC, 0).fabric]).name
    packed = write_packed(tmp_path / "packed.csv", hosts, case.ranks, case.on_host)
    said = ask(report.main, FABRIC, matrix, "--placement", packed)["diagnosis"]
    first = said["causes"][0]
    assert (first["cause"], first["kind"]) == ("placement", "rank-order")
    assert first["max_time_s"] == pytest.approx(case.before)
    assert first["max_time_after_s"] == pytest.approx(case.after)
    command, *words = shlex.split(first["change"])
    assert command == "ibprof-place"
    better = tmp_path / "better.csv"
    ask(place.main, *words, "--time", 1, "-o", better)  # as it is printed
    assert find_used_hosts(better) == find_used_hosts(packed)
    applied = ask(report.main, FABRIC, matrix, "--placement", better)["diagnosis"]
    assert (applied["max_time_s"] if applied else 0.0) <= 1.05 * case.after


def find_used_hosts(placement: Path) -> set[str]:
    with placement.open() as file:
        return {row["host"] for row in csv.DictReader(file)}


def test_blocks_are_kept_as_they_are(ask: Callable[..., Any], tmp_path: Path) -> None:
    matrix = write_matrix(tmp_path / "matrix.csv", halo(16))
    hosts = find_hosts([generate(FABRIC, 0).fabric]).name
    rows = (f"{rank},{hosts[rank // 64 * 4 + rank % 16 // 4]}\n" for rank in range(256))
    blocks = tmp_path / "blocks.csv"
    blocks.write_text("rank,host\n" + "".join(rows))
    said = ask(report.main, FABRIC, matrix, "--placement", blocks)["diagnosis"]
    assert said["max_time_s"] == pytest.approx(16 * BYTES / RATE)
    assert not said["causes"]
    tried = [each for each in said["tried"] if each["kind"] == "rank-order"]
    assert [each["why_not"] for each in tried] == ["does not help"]


@pytest.mark.parametrize("nic", ["rank", "first", "spread"])
def test_ranks_on_hosts_with_eight_adapters_keep_the_way_they_choose_them(
    nic: str, ask: Callable[..., Any], tmp_path: Path
) -> None:
    """Four hosts have 16 ranks each. Partners are on different hosts, but could be on the same host."""
    fabric = many_adapters.write_dumps(tmp_path)
    matrix = write_matrix(tmp_path / "matrix.csv", opposite(64))
    packed = write_packed(tmp_path / "packed.csv", ("gpu1", "gpu2", "gpu3", "gpu4"), 64, 16)
    said = ask(report.main, fabric, matrix, "--placement", packed, "--nic", nic)["diagnosis"]
    first = said["causes"][0]
    assert (first["cause"], first["kind"], first["max_time_after_s"]) == ("placement", "rank-order", 0.0)
    on_one = {"rank": 2, "first": 16, "spread": 2}[nic]  # number of the host's messages that share one adapter
    assert first["max_time_s"] >= on_one * BYTES / RATE


def test_two_rails_carry_the_ranks_as_before(ask: Callable[..., Any], tmp_path: Path) -> None:
    matrix = write_matrix(tmp_path / "matrix.csv", halo(16))
    hosts = find_hosts([generate(FABRIC, 0).fabric]).name
    packed = write_packed(tmp_path / "packed.csv", hosts, 256, 16)
    said = ask(report.main, FABRIC, FABRIC, matrix, "--placement", packed, "--rails", "first")["diagnosis"]
    tried = {each["kind"]: each["max_time_after_s"] for each in said["tried"] if not each["causes_before"]}
    assert tried["rank-order"] == pytest.approx(16 * BYTES / RATE)  # the unused rail would halve this time
    assert tried["adapters"] == pytest.approx(16 * BYTES / RATE)
