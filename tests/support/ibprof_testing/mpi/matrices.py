# SPDX-License-Identifier: Apache-2.0
"""Matrices of bytes and messages from rank to rank, for comparisons of recordings with independent counts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ibprof.load import load_profile
from ibprof.profile.profile_data import Direction, Kind, Profile

Matrix = dict[tuple[int, int], tuple[int, int]]
"""(sender, receiver) -> (bytes, messages); pairs without messages are left out."""


def add_up(rows: Iterable[tuple[int, int, int, int]]) -> Matrix:
    """Sum rows of (sender, receiver, bytes, messages) to a Matrix."""
    matrix: Matrix = {}
    for sender, receiver, size, messages in rows:
        before = matrix.get((sender, receiver), (0, 0))
        matrix[sender, receiver] = (before[0] + size, before[1] + messages)
    return {pair: total for pair, total in sorted(matrix.items()) if total[1]}


def recorded(
    profile: Profile,
    *,
    operation: str | None = None,
    region: str | None = None,
    kinds: Iterable[Kind] = (Kind.USER,),
    directions: Iterable[Direction] = (Direction.SENT, Direction.FETCHED),
) -> Matrix:
    """Return the matrix of a profile; None selects all operations or all regions."""
    counters = profile.counters
    mask = np.isin(counters.kind, list(kinds)) & np.isin(counters.direction, list(directions))
    for names, column, wanted in (
        (profile.operations, counters.operation, operation),
        (profile.regions, counters.region, region),
    ):
        if wanted is not None:
            mask &= column == (names.index(wanted) if wanted in names else -1)
    rows: list[tuple[int, int, int, int]] = []
    for row in np.flatnonzero(mask):
        pair = [int(counters.rank[row]), int(counters.peer[row])]
        if counters.direction[row] != Direction.SENT:
            pair.reverse()
        rows.append((pair[0], pair[1], int(counters.bytes[row]), int(counters.messages[row])))
    return add_up(rows)


def received(profile: Profile) -> Matrix:
    """Return the matrix that receivers counted, including MPI's own messages."""
    return recorded(profile, kinds=Kind, directions=[Direction.RECEIVED])


def operations_sent(profile: Profile) -> set[str]:
    """Return the operations that sent or fetched bytes."""
    sent = np.isin(profile.counters.direction, [Direction.SENT, Direction.FETCHED])
    used = np.unique(profile.counters.operation[sent & (profile.counters.messages > 0)])
    return {profile.operations[operation] for operation in used}


def read_tally(folder: Path) -> dict[str, Matrix]:
    """Return operation -> traffic, from the files that a program wrote with programs/tally.h."""
    rows: dict[str, list[tuple[int, int, int, int]]] = {}
    for file in folder.iterdir():
        for line in file.read_text().splitlines():
            operation, *numbers = line.split()
            sender, receiver, size, messages = map(int, numbers)
            rows.setdefault(operation, []).append((sender, receiver, size, messages))
    return {operation: add_up(of_operation) for operation, of_operation in rows.items()}


def load_complete(recording: Path, ranks: int) -> Profile:
    """Load a profile, and check that each rank reached MPI_Finalize and lost no bytes."""
    profile = load_profile(recording)
    assert profile.world_size == ranks
    assert [rank.rank for rank in profile.ranks] == list(range(ranks))
    assert all(rank.finalized and not rank.lost_bytes and not rank.lost_messages for rank in profile.ranks)
    return profile
