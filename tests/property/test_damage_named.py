# SPDX-License-Identifier: Apache-2.0
"""Outputs name each damage of a right fabric or run, or stay those of the right one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ibprof_converter.routing.synthetic.spec import generate
from ibprof_testing.samples.damage import (
    NAMED,
    SILENT,
    UNCHANGED,
    DamagedFabric,
    DamagedRun,
    ListedFabric,
    answer,
    answer_run,
    copy_to_planes,
    damage_fabric,
    damage_run,
    judge_answer,
    record_run,
    write_run,
)

TREES = ("xgft:2:4,4:1,3", "xgft:3:2,3,3:1,2,2", "xgft:2:2,8:1,6")
HOSTS = ("host1", "host2", "host3", "host4")
SAMPLE = 2
"""Cases of each kind in the short form."""

Table = Counter[tuple[str, str]]


def choose(cases: Sequence[DamagedFabric | DamagedRun], most: int | None, seed: int) -> list[int]:
    """Return all cases, or some of each kind."""
    kinds: dict[str, list[int]] = {}
    for number, case in enumerate(cases):
        kinds.setdefault(case.kind, []).append(number)
    random = np.random.default_rng(seed)
    chosen = [random.permutation(numbers)[:most].tolist() for numbers in kinds.values()]
    return [number for numbers in chosen for number in numbers]


def try_fabric(right: ListedFabric, folder: Path, most: int | None, seed: int = 1, prefix: str = "") -> Table:
    """Return how often each kind of damage was named, unchanged or silent; `prefix` begins the names of kinds."""
    table: Table = Counter()
    expected = answer(right.write(folder / "right"))
    assert expected.loads
    cases = list(damage_fabric(right))
    for number in choose(cases, most, seed):
        found = answer(cases[number].listed.write(folder / f"{number}"))
        table[prefix + cases[number].kind, judge_answer(expected, found, cases[number])] += 1
    return table


def try_planes(folder: Path, most: int | None) -> Table:
    """Return the same of four planes that share their adapters."""
    right = ListedFabric.of(generate("xgft:2:2,4:1,3").fabric, None)
    return try_fabric(copy_to_planes(right, folder / "plan"), folder, most, prefix="planes: ")


def try_run(folder: Path, most: int | None, seed: int = 1) -> Table:
    """Return the same of a recorded run."""
    made = generate("xgft:2:2,2:1,2")
    links = ListedFabric.of(made.fabric, made.tables).write(folder / "fabric")
    run, table = record_run(HOSTS), Counter[tuple[str, str]]()
    write_run(run, folder / "right.ibprof")
    expected = answer_run(folder / "right.ibprof", links)
    assert "Nothing is left out: all 4 hosts, all 8 ranks, all 96 kB." in expected.lines
    cases = list(damage_run(run))
    for number in choose(cases, most, seed):
        cases[number].write(folder / f"{number}.ibprof")
        found = answer_run(folder / f"{number}.ibprof", links)
        table[cases[number].kind, judge_answer(expected, found, cases[number])] += 1
    return table


def print_table(table: Table) -> None:
    """Print the table of the page on damage."""
    print("| damage | tried | named | unchanged | silent |\n|---|---|---|---|---|")
    for kind in dict.fromkeys(kind for kind, _ in table):
        counts = [table[kind, how] for how in (NAMED, UNCHANGED, SILENT)]
        print(f"| {kind} | {sum(counts)} | {' | '.join(map(str, counts))} |")


def silent(table: Table) -> dict[str, int]:
    """Return the kinds of damage that outputs passed over."""
    return {kind: count for (kind, how), count in table.items() if how == SILENT}


@pytest.mark.parametrize("with_tables", [True, False])
def test_a_sample_of_damaged_fabrics_is_named(tmp_path: Path, with_tables: bool) -> None:
    made = generate(TREES[0])
    table = try_fabric(ListedFabric.of(made.fabric, made.tables if with_tables else None), tmp_path, SAMPLE)
    assert not silent(table)
    assert sum(count for (_, how), count in table.items() if how == NAMED) > 30


def test_a_sample_of_damaged_planes_is_named(tmp_path: Path) -> None:
    table = try_planes(tmp_path, 1)
    assert not silent(table)
    assert sum(count for (_, how), count in table.items() if how == NAMED) > 10


def test_a_sample_of_damaged_runs_is_named(tmp_path: Path) -> None:
    table = try_run(tmp_path, SAMPLE)
    assert not silent(table)
    assert sum(count for (_, how), count in table.items() if how == NAMED) > 30


@pytest.mark.full
def test_every_damage_is_named(tmp_path: Path) -> None:
    table: Table = Counter()
    for number, spec in enumerate(TREES):
        made = generate(spec)
        for with_tables in (True, False):
            listed = ListedFabric.of(made.fabric, made.tables if with_tables else None)
            table += try_fabric(listed, tmp_path / f"{number}-{with_tables}", None)
    table += try_planes(tmp_path / "planes", None)
    table += try_run(tmp_path / "runs", None)
    print_table(table)
    assert sum(table.values()) > 5000
    assert not silent(table)
