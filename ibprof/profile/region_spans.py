# SPDX-License-Identifier: Apache-2.0
"""Time of each rank in each region without the regions inside it, from its marks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ibprof.profile.profile_data import Mark, MarkKind, Profile


def measure_spans(run: Profile) -> dict[int, dict[int, int]] | None:
    """Return the nanoseconds of each rank in each region, as `CallTimes` attributes calls: to the innermost region.

    Time while recording was switched off is in no region.

    Returns:
        Region -> ns, by rank; None where marks of a rank are missing, or a rank was killed.
    """
    by_rank: dict[int, list[Mark]] = {rank.rank: [] for rank in run.ranks}
    for mark in run.marks:
        by_rank.setdefault(mark.rank, []).append(mark)
    complete = all(rank.stop_ns is not None and rank.marks_seen <= len(by_rank[rank.rank]) for rank in run.ranks)
    if not complete or not all(marks and marks[-1].kind == MarkKind.STOP for marks in by_rank.values()):
        return None
    return {rank: _sum_spans(marks) for rank, marks in by_rank.items()}


def _sum_spans(marks: Iterable[Mark]) -> dict[int, int]:
    spans: defaultdict[int, int] = defaultdict(int)
    entered: list[int] = []
    open_ns = 0  # of the region that gets its name only when a mark closes it
    since: int | None = None
    for mark in marks:
        if since is not None and entered:
            spans[entered[-1]] += max(mark.time_ns - since, 0)
        elif since is not None:
            open_ns += max(mark.time_ns - since, 0)
        if mark.kind == MarkKind.OFF:
            since = None
        elif since is not None or mark.kind in (MarkKind.START, MarkKind.ON):
            since = mark.time_ns
        if mark.kind in (MarkKind.CLOSE, MarkKind.STOP):
            spans[mark.region] += open_ns
            open_ns = 0
        elif mark.kind == MarkKind.BEGIN:
            entered.append(mark.region)
        elif mark.kind == MarkKind.END and mark.region in entered:
            del entered[len(entered) - 1 - entered[::-1].index(mark.region) :]
    return dict(spans)
