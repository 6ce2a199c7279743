# SPDX-License-Identifier: Apache-2.0
"""The table of placements states a gain only if the same number of bytes is left out of both times."""

from __future__ import annotations

import io

import numpy as np
from rich.console import Console

from ibprof_converter.placement.candidates import CandidateRow, PlacementComparison, print_placements
from ibprof_converter.placement.placement_problem import PlacementScore
from ibprof_converter.placement.swap_search import SearchResult, TimeBounds


def test_a_gain_is_of_times_that_leave_out_the_same_bytes() -> None:
    rows = (
        CandidateRow("best", 2e-6, 2e-6, 1e-6, 10),
        CandidateRow("packed", 1e-6, 1e-6, 1e-6, 20),
        CandidateRow("spread", 4e-6, 4e-6, 1e-6, 10),
    )
    found = SearchResult(np.arange(2, dtype=np.uint32), PlacementScore(10, 2e-6, 2e-6, 1.0), 1, 5, 4, False, 0.1)
    file = io.StringIO()
    print_placements(
        Console(file=file, width=200, markup=False),
        PlacementComparison(rows, TimeBounds(), found, ("a", "b"), 2, 2, ()),
    )
    _, _, best, packed, spread, *_ = (line.rstrip() for line in file.getvalue().splitlines())
    assert [name in line for name, line in (("best found", best), ("packed", packed), ("spread", spread))] == [True] * 3
    assert [line.count("%") for line in (best, packed, spread)] == [0, 0, 1]
    assert "50%" in spread
