# SPDX-License-Identifier: Apache-2.0
"""Outputs for a damaged fabric or run name the damage, or equal the outputs for the undamaged fabric or run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ibprof_testing.samples.damage import NAMED, SILENT
from ibprof_testing.samples.damage_table import (
    PLANES,
    TREES,
    Subject,
    list_subjects,
    make_dumps,
    make_planes,
    make_profile,
    make_run,
    make_tree,
    tabulate,
)
from ibprof_testing.samples.fabrics import IBNETDISCOVER, LFTS_DUMP


def try_sample(subject: Subject, folder: Path, most: int, least_named: int) -> None:
    """Try at most `most` cases of each kind.

    Check that each changed output names the damage, and that more than `least_named` outputs are changed.
    """
    assert subject.right.head
    found = {number: subject.judge(number, folder / "case") for number in subject.choose(most)}
    assert not [subject.cases[number].kind for number, how in found.items() if how == SILENT]
    assert Counter(found.values())[NAMED] > least_named


@pytest.mark.parametrize("with_tables", [True, False])
def test_a_sample_of_damaged_fabrics_is_named(tmp_path: Path, with_tables: bool) -> None:
    try_sample(make_tree(TREES[0], with_tables, tmp_path), tmp_path, 2, 30)


@pytest.mark.parametrize("tables", [LFTS_DUMP, None])
def test_a_sample_of_damaged_dumps_is_named(tmp_path: Path, tables: str | None) -> None:
    try_sample(make_dumps("testbed44", IBNETDISCOVER, tables, tmp_path), tmp_path, 1, 4)


def test_a_sample_of_damaged_planes_is_named(tmp_path: Path) -> None:
    try_sample(make_planes(tmp_path), tmp_path, 1, 10)


def test_a_sample_of_damaged_runs_is_named(tmp_path: Path) -> None:
    try_sample(make_run(tmp_path), tmp_path, 2, 30)


def test_a_sample_of_damaged_profiles_is_named(tmp_path: Path) -> None:
    try_sample(make_profile(tmp_path), tmp_path, 15, 30)


@pytest.mark.full
@pytest.mark.parametrize("name", [*list_subjects()])
def test_every_damage_is_named(tmp_path: Path, name: str) -> None:
    subject = list_subjects()[name](tmp_path / "subject")
    found = [(name, case.kind, subject.judge(at, tmp_path / "case")) for at, case in enumerate(subject.cases)]
    print("\n".join(tabulate(found)))
    assert not [kind for _, kind, how in found if how == SILENT]
    assert len(found) > (500 if name == PLANES else 30)
