# SPDX-License-Identifier: Apache-2.0
"""Schedules: the pairs that measure in each round.

A round is an int32 array [p, 2] of pairs that measure at the same time. In those of `sequential`, `round_robin`,
`halving` and `color_pairs` no process is in two pairs, and each unordered pair comes once; both directions are measured
then. In those of `shifts` each process sends to one process and receives from another, and each ordered pair comes
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, zip_longest
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Round: TypeAlias = npt.NDArray[np.int32]


def sequential(processes: int) -> Iterator[Round]:
    """Yield n (n - 1) / 2 rounds of one pair: no other process uses the network."""
    for pair in combinations(range(processes), 2):
        yield np.array([pair], np.int32)


def round_robin(processes: int) -> Iterator[Round]:
    """Yield the rounds of a tournament by the circle method: n - 1 for even n, n for odd n, the fewest possible.

    With an odd number one process rests in each round.
    """
    if processes < 2:
        return
    players = processes + processes % 2  # a player that rests makes the number even
    circle = players - 1
    steps = np.arange(1, players // 2)
    for turn in range(circle):
        pairs = np.empty((players // 2, 2), np.int32)
        pairs[0] = turn, circle
        pairs[1:, 0] = (turn + steps) % circle
        pairs[1:, 1] = (turn - steps) % circle
        pairs.sort(axis=1)
        yield pairs[pairs[:, 1] < processes]


def halving(processes: int) -> Iterator[Round]:
    """Yield Bufe's rounds: the two halves with each other, then each half likewise, both at the same time.

    There are T(n) = T(ceil(n/2)) + ceil(n/2) rounds, T(1) = 0: 11 for ten processes, where a tournament needs 9.

    Source: Bufe 2014, section 2.3.2, equation (2.3).
    """
    for pairs in _halve(list(range(processes))):
        yield np.array(pairs, np.int32)


def _halve(group: list[int]) -> Iterator[list[tuple[int, int]]]:
    if len(group) < 2:
        return
    left, right = group[: len(group) // 2], group[len(group) // 2 :]
    for turn in range(len(right)):
        yield [(each, right[(place + turn) % len(right)]) for place, each in enumerate(left)]
    nobody: list[tuple[int, int]] = []
    for one, other in zip_longest(_halve(left), _halve(right), fillvalue=nobody):
        yield one + other


def shifts(processes: int) -> Iterator[Round]:
    """Yield n - 1 rounds; in round k each process i sends to (i + k) mod n: the network is full."""
    sender = np.arange(processes)
    for distance in range(1, processes):
        yield np.column_stack((sender, (sender + distance) % processes)).astype(np.int32)


def color_pairs(pairs: npt.ArrayLike, alone: bool = False) -> list[Round]:
    """Put some unordered pairs into rounds, each pair into the first in which both processes are free.

    Args:
        pairs: integers [p, 2]; the same pair twice, in either order, counts once.
        alone: one pair a round.

    Returns:
        The rounds: at most twice as many, less one, as the busiest process has pairs.
    """
    unordered = np.unique(np.sort(np.asarray(pairs, np.int64).reshape(-1, 2), axis=1), axis=0)
    if alone:
        return list(unordered[:, None].astype(np.int32))
    busy: dict[int, int] = {}  # process -> a bit for each round that it is in
    rounds: list[list[tuple[int, int]]] = []
    for one, other in unordered.tolist():
        taken = busy.get(one, 0) | busy.get(other, 0)
        first = (~taken & (taken + 1)).bit_length() - 1
        busy[one] = busy.get(one, 0) | 1 << first
        busy[other] = busy.get(other, 0) | 1 << first
        if first == len(rounds):
            rounds.append([])
        rounds[first].append((one, other))
    return [np.array(each, np.int32) for each in rounds]


SCHEDULES: dict[str, Callable[[int], Iterator[Round]]] = {
    "rounds": round_robin,
    "sequential": sequential,
    "halving": halving,
    "shift": shifts,
}
"""By the name that `--schedule` takes."""


def count_rounds(schedule: str, processes: int) -> int:
    """Return the number of rounds of a schedule, without making them."""
    if schedule == "sequential":
        return processes * (processes - 1) // 2
    if schedule == "halving":
        return 0 if processes < 2 else count_rounds(schedule, (processes + 1) // 2) + (processes + 1) // 2
    return max(processes - 1 + (processes % 2 if schedule == "rounds" and processes > 1 else 0), 0)
