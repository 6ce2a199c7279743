# SPDX-License-Identifier: Apache-2.0
"""When each rank was in which region: visits by its marks, of the innermost region at each moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import Mark, MarkKind, Profile
from ibprof.profile.row_arrays import RowArrays

_ROW_LIMIT = 1 << 18
"""The largest number of visits. With more, the shortest are left out: no picture could show them."""

_FINEST = 2048
"""Part of the run that a visit must last, once visits must be left out."""

_UNNAMED = -1
"""The region that gets its name only when a mark closes it."""


@dataclass(frozen=True, slots=True)
class RegionVisits(RowArrays):
    """Visits of ranks to regions; arrays of one length.

    Attributes:
        rank, region: int32.
        begin_ns, end_ns: uint64, Unix times.
    """

    rank: npt.NDArray[np.int32]
    region: npt.NDArray[np.int32]
    begin_ns: npt.NDArray[np.uint64]
    end_ns: npt.NDArray[np.uint64]


def list_visits(run: Profile) -> RegionVisits:
    """Return the visits that the run's marks record, in the order of ranks.

    A process keeps its first marks only: after its last one nothing is known. Time while recording was switched off is
    in no region.
    """
    by_rank: dict[int, list[Mark]] = {}
    for mark in run.marks:
        by_rank.setdefault(mark.rank, []).append(mark)
    rows = [(rank, *visit) for rank, marks in by_rank.items() for visit in _follow(marks)]
    columns = zip(*rows, strict=True) if rows else [()] * 4
    types = RegionVisits.column_types()
    visits = RegionVisits(**{name: np.array(each, types[name]) for name, each in zip(types, columns, strict=True)})
    return _leave_out_short(visits)


def _follow(marks: Iterable[Mark]) -> Sequence[tuple[int, int, int]]:
    """Return region, begin and end of each visit of one rank."""
    visits: list[tuple[int, int, int]] = []
    entered: list[int] = []
    since: int | None = None
    first_unnamed = 0
    for mark in marks:
        if since is not None and mark.time_ns > since:
            visits.append((entered[-1] if entered else _UNNAMED, since, mark.time_ns))
        if mark.kind == MarkKind.OFF:
            since = None
        elif since is not None or mark.kind in (MarkKind.START, MarkKind.ON):
            since = mark.time_ns
        if mark.kind in (MarkKind.CLOSE, MarkKind.STOP):
            visits[first_unnamed:] = [
                (mark.region if region == _UNNAMED else region, begin, end)
                for region, begin, end in visits[first_unnamed:]
            ]
            first_unnamed = len(visits)
        elif mark.kind == MarkKind.BEGIN:
            entered.append(mark.region)
        elif mark.kind == MarkKind.END and mark.region in entered:
            del entered[len(entered) - 1 - entered[::-1].index(mark.region) :]
    return [visit for visit in visits if visit[0] != _UNNAMED]


def _leave_out_short(visits: RegionVisits) -> RegionVisits:
    rows = len(visits.rank)
    if rows <= _ROW_LIMIT:
        return visits
    seconds = (visits.end_ns - visits.begin_ns).astype(np.float64)
    whole = float(visits.end_ns.max() - visits.begin_ns.min())
    least = max(whole / _FINEST, float(np.partition(seconds, rows - _ROW_LIMIT)[rows - _ROW_LIMIT]))
    kept = np.flatnonzero(seconds >= least)[:_ROW_LIMIT]
    return RegionVisits(**{name: column[kept] for name, column in visits.columns().items()})
