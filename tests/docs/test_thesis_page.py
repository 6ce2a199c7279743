# SPDX-License-Identifier: Apache-2.0
"""The page that holds the thesis's figures against ours says what the results beside it say."""

from __future__ import annotations

import csv
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ibprof_converter.simulation.study.sweep import STORE, find_stored

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "thesis" / "interference.md"


def test_tables_are_those_of_the_results() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "thesis-tables.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("chapter", ["chapter-5", "chapter-6"])
def test_no_claim_is_left_out_or_decided_without_results(chapter: str) -> None:
    table = re.search(rf"<!-- table: {chapter} -->\n(.*?)<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert table
    rows = [line.split("|") for line in table[1].splitlines()[2:]]
    assert len(rows) >= 10
    for row in rows:
        assert (row[4].strip() == "not simulated yet") <= (row[5].strip() == "")


@pytest.fixture(scope="module")
def studies() -> ModuleType:
    spec = importlib.util.spec_from_file_location("thesis_studies", ROOT / "scripts" / "thesis-studies.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("study", ["placement", "servers"])
def test_results_are_those_of_the_stored_outcomes(study: str, studies: ModuleType, tmp_path: Path) -> None:
    studies.unpack(PAGE.parent, tmp_path)
    cells = studies.make_cells(study)
    rows = studies.average(cells, find_stored(cells, tmp_path))
    with (PAGE.parent / f"{study}.csv").open(newline="") as file:
        stored = list(csv.DictReader(file))
    assert [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows] == stored


def test_neither_newer_outcomes_nor_those_of_a_killed_run_are_lost(studies: ModuleType, tmp_path: Path) -> None:
    tables, folder = tmp_path / "tables", tmp_path / "folder"
    cells = studies.make_cells("servers")
    studies.unpack(PAGE.parent, folder)
    store = folder / STORE
    lines = store.read_text().splitlines(keepends=True)
    all_of_them = find_stored(cells, folder)
    tables.mkdir()
    store.write_text("".join(lines[::2]))
    studies.pack(folder, cells, tables)
    store.write_text("".join(lines[1::2]) + lines[0][:100])  # other outcomes, and one that was cut
    studies.unpack(tables, folder)
    studies.pack(folder, cells, tables)
    again = tmp_path / "again"
    studies.unpack(tables, again)
    assert find_stored(cells, again).keys() == all_of_them.keys()


def test_the_page_has_every_fact_and_only_those() -> None:
    page = PAGE.read_text()
    marks = re.findall(r"<!-- (?:table|fact): ([\w-]+) -->\n?(.*?)<!-- end -->", page, re.DOTALL)
    assert all(text.strip() for _, text in marks)
    assert page.count("<!-- end -->") == len(marks) == page.count("<!-- table: ") + page.count("<!-- fact: ")


@pytest.fixture(scope="module")
def results() -> ModuleType:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return importlib.import_module("thesis_results")
    finally:
        sys.path.remove(str(ROOT / "scripts"))


def test_the_rule_of_the_page_by_its_own_examples(results: ModuleType) -> None:
    assert [results.adds_as(ours, 1.9) for ours in (1.71, 1.73, 2.07, 2.09)] == [False, True, True, False]
    assert [results.adds_as(ours, 1.112) for ours in (1.088, 1.091, 1.133, 1.136)] == [False, True, True, False]
    assert [results.is_none(ours) for ours in (0.89, 0.91, 1.09, 1.11)] == [False, True, True, False]
    assert [results.is_some(ours) for ours in (0.5, 1.09, 1.11)] == [False, False, True]


def test_an_order_bears_steps_back_within_their_intervals(results: ModuleType) -> None:
    def grows(*means: float) -> bool:
        return bool(results.grows([{"slowdown": mean, "slowdown_half": 0.1} for mean in means]))

    assert grows(1, 2, 3)
    assert grows(1, 2, 1.9, 3)
    assert not grows(1, 2, 1.7, 3)
    assert not grows(1.1, 1)
