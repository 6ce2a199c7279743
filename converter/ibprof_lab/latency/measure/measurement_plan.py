# SPDX-License-Identifier: Apache-2.0
"""The plan of a measurement (lengths, mode, noise, limits), and schedules: the pairs of each round.

A round is an int32 array [p, 2] of pairs measured at the same time. In rounds of `sequential`, `round_robin`, `halving`
and `color_pairs`, no process is in two pairs; each pair is measured in both directions. Each of the first three
schedules contains each unordered pair once. In a round of `shifts`, each process sends to one process and receives from
one. The rounds of `shifts` contain each ordered pair once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, zip_longest
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof_lab.lab_choices import ALL_TO_ALL, BANDWIDTH, ONE_TO_ONE, SCHEDULES
from ibprof_lab.latency.measure.timed_loops import Sampling
from ibprof_lab.latency.model.delays import Attribute

AGAIN_MORE = 3
"""A pair that is measured again is measured with this many times the usual number of batches."""

SYNCHRONISING_S = 3e-4
"""Assumed time of the synchronisation after a round, in seconds."""

Round: TypeAlias = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class BackgroundNoise:
    """Messages between other processes during a pair's measurement, as in network_tests2.

    Attributes:
        processes: number of processes that exchange noise messages; each measurement draws new random pairs of
            processes.
        messages: number of messages in one burst.
        length: bytes of each message.
    """

    processes: int = 0
    messages: int = 1
    length: int = 0


@dataclass(frozen=True, slots=True)
class MeasurementPlan:
    """The plan of a measurement; the same on every process.

    Attributes:
        lengths: message lengths in bytes, int64 [L], ascending.
        mode: name from `MODES`.
        schedule: name from `SCHEDULES`.
        sampling: number and duration of batches per pair and length.
        one_way: True to measure each direction separately: the receiver answers with an empty message.
        window: number of messages in flight, for mode bandwidth.
        noise: messages between processes that do not measure.
        save_every_s: interval between saves, seconds.
        limit_s: time limit, seconds; None for no limit.
        again: largest fraction of the pairs that may be measured again.
        again_s: approximate time limit for measuring pairs again, seconds; if not None, `again` is ignored.
    """

    lengths: npt.NDArray[np.int64]
    mode: str = ONE_TO_ONE
    schedule: str = "rounds"
    sampling: Sampling = field(default_factory=Sampling)
    one_way: bool = False
    window: int = 64
    noise: BackgroundNoise = field(default_factory=BackgroundNoise)
    seed: int = 0
    save_every_s: float = 30.0
    limit_s: float | None = None
    again: float = 0.05
    again_s: float | None = None

    def check(self, processes: int) -> None:
        """Raise an error if the plan is invalid for this number of processes.

        Raises:
            UsageError: the plan is invalid; the message has the option.
        """
        at_once = self.mode == ALL_TO_ALL or self.schedule == "shift"
        if self.schedule == "shift" and self.mode != ONE_TO_ONE:
            raise UsageError(f"--schedule shift: expected --mode {ONE_TO_ONE}, found {self.mode}")
        if self.one_way and (at_once or self.mode != ONE_TO_ONE):
            raise UsageError(f"--one-way: expected --mode {ONE_TO_ONE} and a schedule of pairs")
        if self.noise.processes and self.schedule != "sequential":
            raise UsageError(f"--noise-processes: expected --schedule sequential, found {self.schedule}")
        if self.noise.processes and at_once:
            raise UsageError(f"--noise-processes: expected a mode of pairs, found {self.mode}")
        if self.noise.processes % 2 or self.noise.processes > max(processes - 2, 0):
            raise UsageError(
                f"--noise-processes: expected an even number of at most {max(processes - 2, 0) // 2 * 2}, since pairs "
                f"exchange noise and two of the {processes} processes measure; found {self.noise.processes}"
            )

    @property
    def is_directed(self) -> bool:
        """Return True if the two directions of a pair have separate delays, False if they share one delay."""
        return self.one_way or self.mode == BANDWIDTH

    @property
    def seconds_of_pair_again(self) -> float:
        """Estimated largest time to measure one pair again at one length, in a separate round, seconds."""
        return 2 * (AGAIN_MORE * self.sampling.repetitions + 1.5) * self.sampling.batch_s + SYNCHRONISING_S

    def describe(self) -> dict[str, Attribute]:
        """Return the plan's attributes for a delay file."""
        known: dict[str, Attribute] = {
            "mode": self.mode,
            "schedule": ALL_TO_ALL if self.mode == ALL_TO_ALL else self.schedule,
            "repetitions_planned": self.sampling.repetitions,
            "batch_s": self.sampling.batch_s,
            "one_way": int(self.one_way),
            "noise_mes_length": self.noise.length if self.noise.processes else 0,
            "num_noise_mes": self.noise.messages if self.noise.processes else 0,
            "num_noise_proc": self.noise.processes,
            "seed": self.seed,
        }
        return known | ({"window": self.window} if self.mode == BANDWIDTH else {})


def sequential(processes: int) -> Iterator[Round]:
    """Yield n (n - 1) / 2 rounds of one pair each."""
    for pair in combinations(range(processes), 2):
        yield np.array([pair], np.int32)


def round_robin(processes: int) -> Iterator[Round]:
    """Yield the fewest possible rounds by the circle method for tournaments: n - 1 for even n, n for odd n.

    For odd n, one process is in no pair of a round.
    """
    if processes < 2:
        return
    players = processes + processes % 2  # for odd n, the last player is virtual, and its partner is in no pair
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
    """Yield Bufe's rounds: all pairs between two halves, then Bufe's rounds within both halves at the same time.

    There are T(n) = T(ceil(n/2)) + ceil(n/2) rounds, T(1) = 0. For ten processes `halving` yields 11 rounds, and
    `round_robin` 9.

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
    """Yield n - 1 rounds; in round k all processes send at the same time, process i to process (i + k) mod n."""
    sender = np.arange(processes)
    for distance in range(1, processes):
        yield np.column_stack((sender, (sender + distance) % processes)).astype(np.int32)


def color_pairs(pairs: npt.ArrayLike, alone: bool = False) -> list[Round]:
    """Return rounds of unordered pairs: each pair is put into the first round in which both processes are free.

    Args:
        pairs: integers [p, 2]; duplicates in either order count once.
        alone: True for one pair per round.

    Returns:
        The rounds, at most 2 k - 1 if `alone` is False, where k is the largest number of pairs of a process.
    """
    unordered = np.unique(np.sort(np.asarray(pairs, np.int64).reshape(-1, 2), axis=1), axis=0)
    if alone:
        return list(unordered[:, None].astype(np.int32))
    busy: dict[int, int] = {}  # process -> bit mask of the rounds in which the process has a pair
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


ROUNDS_OF: dict[str, Callable[[int], Iterator[Round]]] = dict(
    zip(SCHEDULES, (round_robin, sequential, halving, shifts), strict=True)
)
"""Schedules by `--schedule` name."""


def count_rounds(schedule: str, processes: int) -> int:
    """Return the number of rounds of a schedule without creating them."""
    if schedule == "sequential":
        return processes * (processes - 1) // 2
    if schedule == "halving":
        return 0 if processes < 2 else count_rounds(schedule, (processes + 1) // 2) + (processes + 1) // 2
    return max(processes - 1 + (processes % 2 if schedule == "rounds" and processes > 1 else 0), 0)
