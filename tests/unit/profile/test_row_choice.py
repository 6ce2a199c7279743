# SPDX-License-Identifier: Apache-2.0
"""Operations, regions and sites select rows by name. An unknown name is an error that lists the known names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ibprof.errors import UsageError
from ibprof.profile.call_report import sum_calls
from ibprof.profile.communication_matrix import Selection, build_matrix
from ibprof.profile.profile_data import Profile, Site
from ibprof.profile.profile_rows import RowChoice, find_sites
from ibprof_testing.samples.profiles import Count, make_profile, make_rank

SITES = (
    Site("/src/ocean/util.c", 7, "a", "app", name="ocean/util.c:7"),
    Site("/src/ice/util.c", 7, "b", "app", name="ice/util.c:7"),
    Site("/src/solver.c", 212, "c", "app", name="solver.c:212"),
    Site("/src/solver.c", 212, "c", "other", name="solver.c:212"),
    Site("", 0, "main", "app", name="main+0x1f"),
)


def make_run() -> Profile:
    counts = [Count(0, 1, 1 << site, operation=site % 2) for site in range(6)]
    run = make_profile(counts, [make_rank(0), make_rank(1)], operations=("SEND", "BCAST"))
    return replace(run, sites=SITES, counters=replace(run.counters, site=np.arange(6, dtype=np.int32)))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("ocean/util.c:7", {1}),
        ("/src/ice/util.c:7", {2}),
        ("solver.c:212", {3, 4}),
        ("src/solver.c:212", {3, 4}),
        ("main+0x1f", {5}),
        ("(unknown)", {0}),
    ],
)
def test_sites_by_name_and_by_path(text: str, numbers: set[int]) -> None:
    run = make_run()
    assert find_sites(run, text) == numbers
    matrix = build_matrix(run, "rank", Selection(site=text))
    assert matrix.bytes.tolist() == [sum(1 << number for number in numbers)]
    assert sum(row.bytes for row in sum_calls(run, ("rank",), RowChoice(site=text))) == matrix.bytes[0]


def test_filters_combine() -> None:
    rows = sum_calls(make_run(), ("site",), RowChoice(operation="MPI_Bcast", site="solver.c:212"))
    assert [(row.key, row.bytes) for row in rows] == [(("solver.c:212",), 8)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("util.c:7", "choose one of ice/util.c:7, ocean/util.c:7"),
        ("solver.c:21", "it has ice/util.c:7, main\\+0x1f, ocean/util.c:7, solver.c:212"),
        ("r.c:212", "has no site"),
    ],
)
def test_unknown_and_ambiguous(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_sites(make_run(), text)


def test_without_sites() -> None:
    with pytest.raises(UsageError, match="IBPROF_SITES=0"):
        find_sites(replace(make_run(), sites=()), "solver.c:212")


def test_a_profile_of_the_chosen_rows() -> None:
    run = make_run()
    chosen = RowChoice(operation="bcast", site="solver.c:212").restrict(run)
    assert chosen.counters.bytes.tolist() == [8]
    assert chosen.sites == run.sites
    assert not len(chosen.transfers.bytes)
    assert RowChoice().restrict(run) is run
    assert [bool(each) for each in (RowChoice(), RowChoice(region=""), RowChoice(site="x"))] == [False, True, True]
    assert str(RowChoice("SEND", site="a.c:1")) == "--operation SEND --site a.c:1"


def test_callers_are_part_of_a_name_and_choose_what_they_called() -> None:
    library, halo, main = (
        Site(f"/src/{file}", line, "f", "app", name=f"{file}:{line}")
        for file, line in (("lib.c", 3), ("halo.c", 20), ("solver.c", 212))
    )
    sites = (library, replace(library, callers=(halo,)), replace(library, callers=(halo, main)), halo, main)
    run = replace(make_run(), sites=sites)
    assert run.sites[2].label == "lib.c:3 < halo.c:20 < solver.c:212"
    for text, numbers in {
        "lib.c:3": {1, 2, 3},
        "src/halo.c:20": {2, 3, 4},
        "solver.c:212": {3, 5},
        "lib.c:3 < halo.c:20": {2},
        "lib.c:3 < halo.c:20 < solver.c:212": {3},
    }.items():
        assert find_sites(run, text) == numbers, text
    assert [row.key for row in sum_calls(run, ("site",), RowChoice(site="solver.c:212"))] == [
        ("solver.c:212",),
        ("lib.c:3 < halo.c:20 < solver.c:212",),
    ]
