# SPDX-License-Identifier: Apache-2.0
"""Sentences on a study's results: simulations, the files that are there, means that did not settle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ibprof_lab.simulation.reports.simulated_run import describe_results
from ibprof_lab.simulation.study.study_results import StudyOutput, StudyResults

ROWS: list[Mapping[str, object]] = [
    {"is_settled": True, "note": "the interval is narrow enough"},
    *[{"is_settled": False, "note": "still changes"}] * 2,
    {"is_settled": False, "note": "no message"},
]


@pytest.mark.parametrize(("stored", "shown"), [(False, ", links.csv, view.html"), (True, "")])
def test_files_and_unsettled_means_are_named(stored: bool, shown: str, tmp_path: Path) -> None:
    for name in ("view.html", "links.csv", "of-the-user.txt"):
        (tmp_path / name).touch()
    results = StudyResults({}, ROWS)  # type: ignore[arg-type]
    assert list(describe_results(results, StudyOutput(tmp_path, stored))) == [
        f"4 simulations in {tmp_path}: results.csv, means.csv, summary.json{shown}",
        "2 of them have no settled mean, and empty cells: still changes",
        "1 of them have no settled mean, and empty cells: no message",
    ]
