# SPDX-License-Identifier: Apache-2.0
"""A program has the same recorded traffic with each MPI, network layer and language."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof_testing.mpi import conformance
from ibprof_testing.mpi.conformance import KINDS, TARGETS, Kind, Target
from ibprof_testing.mpi.mpis import Build
from ibprof_testing.paths import ROOT

PAGE = ROOT / "docs" / "conformance.md"

CELLS = [
    pytest.param(
        target,
        kind,
        id=f"{target.label}-{kind.language}-{kind.title}".replace(" ", "_"),
        marks=[] if target.quick else [pytest.mark.full],
    )
    for target in TARGETS
    for kind in KINDS
    if conformance.has(target, kind)
]


@pytest.mark.parametrize(("target", "kind"), CELLS)
def test_cell(target: Target, kind: Kind, build: Build, tmp_path: Path) -> None:
    profile, expected = conformance.record(target, kind, build, tmp_path)
    assert {rank.source.name for rank in profile.ranks} == {target.source}
    assert expected
    assert conformance.found(profile, expected) == expected


def test_the_page_prints_the_matrix() -> None:
    assert conformance.render() in PAGE.read_text()
