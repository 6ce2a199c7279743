# SPDX-License-Identifier: Apache-2.0
"""All cases of damage, and a table that shows how often outputs name each kind of damage."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ibprof_converter.routing.synthetic.spec import generate
from ibprof_testing.samples.damage import (
    NAMED,
    SILENT,
    UNCHANGED,
    Answer,
    DamagedFabric,
    DamagedRun,
    ListedFabric,
    answer,
    answer_run,
    copy_to_planes,
    damage_dumps,
    damage_fabric,
    damage_profile,
    damage_run,
    judge_answer,
    record_run,
    write_profile,
    write_run,
)
from ibprof_testing.samples.fabrics import OPENSM
from ibprof_testing.samples.spoilt_dumps import LINK_FILES, OPENSM_TABLES, TABLE_FILES, dump_sample

TREES = ("xgft:2:4,4:1,3", "xgft:3:2,3,3:1,2,2", "xgft:2:2,8:1,6")
CAPTURED = ("testbed44", "quirks-small")
HOSTS = ("host1", "host2", "host3", "host4")
PLANES = "four planes"


@dataclass(frozen=True, slots=True)
class Subject:
    """An undamaged fabric or run, and all its cases of damage.

    Attributes:
        right: the answer for the undamaged fabric or run.
        ask: function that writes a case to a folder and returns the answer.
    """

    right: Answer
    cases: Sequence[DamagedFabric | DamagedRun]
    ask: Callable[[DamagedFabric | DamagedRun, Path], Answer]

    def judge(self, number: int, folder: Path) -> str:
        """Return the outcome of case `number`. The folder with the case's files is removed afterwards."""
        case = self.cases[number]
        try:
            return judge_answer(self.right, self.ask(case, folder), case)
        finally:
            shutil.rmtree(folder)

    def choose(self, most: int, seed: int = 1) -> list[int]:
        """Return the indices of random cases, at most `most` of each kind of damage."""
        kinds: dict[str, list[int]] = {}
        for number, case in enumerate(self.cases):
            kinds.setdefault(case.kind, []).append(number)
        random = np.random.default_rng(seed)
        return [number for numbers in kinds.values() for number in random.permutation(numbers)[:most].tolist()]


def _ask_fabric(case: DamagedFabric | DamagedRun, folder: Path) -> Answer:
    assert isinstance(case, DamagedFabric)
    return answer(case.listed.write(folder))


def make_tree(spec: str, with_tables: bool, folder: Path) -> Subject:
    """Return a tree and all cases of damage to the tree. Dumps have forwarding tables if `with_tables`."""
    made = generate(spec)
    right = ListedFabric.of(made.fabric, made.tables if with_tables else None)
    return Subject(answer(right.write(folder / "right")), [*damage_fabric(right)], _ask_fabric)


def make_planes(folder: Path) -> Subject:
    """Return four planes that share their adapters, with all cases of damage."""
    right = copy_to_planes(ListedFabric.of(generate("xgft:2:2,4:1,3").fabric, None), folder / "plan")
    return Subject(answer(right.write(folder / "right")), [*damage_fabric(right)], _ask_fabric)


def make_dumps(sample: str, links: str, tables: str | None, folder: Path) -> Subject:
    """Return a captured fabric's dumps with all cases of damage.

    Args:
        sample: name of the captured fabric.
        links: format of the list of links.
        tables: format of the forwarding tables; None for dumps without tables.
    """
    right = dump_sample(sample, links, tables)
    return Subject(answer(right.write(folder / "right")), [*damage_dumps(right)], _ask_fabric)


def make_run(folder: Path) -> Subject:
    """Return a recorded run with all its cases of damage."""
    made = generate("xgft:2:2,2:1,2")
    links = ListedFabric.of(made.fabric, made.tables).write(folder / "fabric")
    run = record_run(HOSTS)
    write_run(run, folder / "right.ibprof")
    return _make_subject(folder / "right.ibprof", links, damage_run(run))


def make_profile(folder: Path) -> Subject:
    """Return the archive of a recorded run with all its cases of damage."""
    made = generate("xgft:2:2,2:1,2")
    links = ListedFabric.of(made.fabric, made.tables).write(folder / "fabric")
    write_profile(record_run(HOSTS), folder / "right")
    return _make_subject(folder / "right", links, damage_profile(folder / "right"))


def _make_subject(right: Path, links: Path, cases: Iterable[DamagedRun]) -> Subject:
    answered = answer_run(right, links)
    assert "Nothing is left out: all 4 hosts, all 8 ranks, all 96 kB." in answered.lines

    def ask(case: DamagedFabric | DamagedRun, folder: Path) -> Answer:
        assert isinstance(case, DamagedRun)
        case.write(folder)
        return answer_run(folder, links)

    return Subject(answered, [*cases], ask)


def list_subjects() -> dict[str, Callable[[Path], Subject]]:
    """Return name -> function that makes a `Subject` with its files in a folder."""
    found: dict[str, Callable[[Path], Subject]] = {
        f"{spec} {'with' if with_tables else 'without'} tables": partial(make_tree, spec, with_tables)
        for spec in TREES
        for with_tables in (True, False)
    }
    pairs = [(links, tables) for links in LINK_FILES for tables in (None, OPENSM_TABLES)]
    pairs += [(OPENSM, tables) for tables in TABLE_FILES if tables != OPENSM_TABLES]
    for sample in CAPTURED:
        for links, tables in pairs:
            found[f"{sample} {links} {tables}"] = partial(make_dumps, sample, links, tables)
    return found | {"run": make_run, "profile": make_profile, PLANES: make_planes}


Outcome = tuple[str, str, str]
"""Subject, kind and outcome of a case."""


def tabulate(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Yield the lines of the documentation's table: a row for each kind, and a row for four planes."""
    table: Counter[tuple[str, str]] = Counter()
    for subject, kind, how in outcomes:
        row = f"all of these kinds on {PLANES}" if subject == PLANES else kind
        table.update([(row, how), ("total", how)])
    yield "| damage | tried | named | unchanged | silent |"
    yield "|---|---|---|---|---|"
    rows = dict.fromkeys(row for row, _ in table)
    for row in [*(row for row in rows if row != "total"), "total"]:
        counts = [table[row, how] for how in (NAMED, UNCHANGED, SILENT)]
        yield f"| {row} | {sum(counts)} | {' | '.join(map(str, counts))} |"
