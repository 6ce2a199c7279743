# SPDX-License-Identifier: Apache-2.0
"""A view or diff compares jobs with other placements of these jobs, or with other traffic."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ibprof.errors import UsageError
from ibprof_converter.analysis.pipeline_options import TrafficOptions, list_compared, parse_columns
from ibprof_converter.reports.compared_run import pair_runs

OWN = TrafficOptions(("a",), ("packed",), "split", counters=("before.txt",), flows_limit=5)
JOBS = TrafficOptions(("a", "b"), ("packed", "spread"))


@pytest.mark.parametrize(
    ("own", "names", "placements", "expected"),
    [
        (OWN, (), (), []),
        # The compared run is the view's job, with another placement instead of the job's own.
        (OWN, (), ("x", "y"), [(("a",), ("x",), False), (("a",), ("y",), False)]),
        (JOBS, (), ("x", "y"), [(("a", "b"), ("x", "y"), False)]),
        # Compared traffic gets the placement of the view's own job, or no placement if there are several own jobs.
        (OWN, ("c", "d"), (), [(("c",), ("packed",), True), (("d",), ("packed",), True)]),
        (JOBS, ("c",), (), [(("c",), (), True)]),
        (OWN, ("c", "d"), ("x", "y"), [(("c",), ("x",), False), (("d",), ("y",), False)]),
    ],
)
def test_runs_to_compare_with(
    own: TrafficOptions, names: Sequence[str], placements: Sequence[str], expected: list[object]
) -> None:
    found = list_compared(own, names, placements)
    assert [(each.names, each.placements, each.inherited) for each in found] == expected
    for each in found:
        assert (each.rails, each.flows_limit, each.counters) == (own.rails, own.flows_limit, ())


@pytest.mark.parametrize(
    ("own", "names", "placements", "said"),
    [
        (JOBS, (), ("x",), r"expected 2 placements \(one for each job\) for each compared run, found 1"),
        (OWN, ("c",), ("x", "y"), "expected one for each of 1 --compare, found 2"),
    ],
)
def test_placements_that_do_not_fit_are_refused(
    own: TrafficOptions, names: Sequence[str], placements: Sequence[str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        list_compared(own, names, placements)


@pytest.mark.parametrize(
    ("placements", "of_a", "of_b"),
    [
        ((), (), ()),
        (("x",), ("x",), ("x",)),
        (("x", "y"), ("x",), ("y",)),
        ((None, "y"), (), ("y",)),
        (("x", None), ("x",), ()),
    ],
)
def test_two_runs_are_read_alike_but_for_their_placements(
    placements: Sequence[str | None], of_a: Sequence[str], of_b: Sequence[str]
) -> None:
    a, b = pair_runs("a", "b", placements, "round-robin", strict=True)
    assert (a.names, a.placements, b.names, b.placements) == (("a",), of_a, ("b",), of_b)
    assert a.rails == b.rails == "round-robin"
    assert a.strict
    assert b.strict


def test_two_runs_have_no_three_placements() -> None:
    with pytest.raises(UsageError, match="expected one for both runs, or one for each"):
        pair_runs("a", "b", ("x", "y", "z"))


def test_loads_distinguish_regions_and_operations_alone() -> None:
    assert parse_columns("operation, region") == ("operation", "region")
    with pytest.raises(UsageError, match="expected some of region, operation and site, found 'job, ranks'"):
        parse_columns("ranks,region,job")
