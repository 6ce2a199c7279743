# SPDX-License-Identifier: Apache-2.0
"""Synthetic traces: ranks that compute, and calls that take a known time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ibprof_testing.waits.traces import CALL, INSTANCE, MESSAGE, RECEIVED, SENT, Trace

MS = 1_000_000


class SyntheticRun:
    """A run of ranks with equal clocks. A transfer takes 50 to 100% of the stated time, at random."""

    def __init__(self, ranks: int, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self._now = np.full(ranks, 10**12, np.int64)
        self._calls: list[list[tuple[Any, ...]]] = [[] for _ in range(ranks)]
        self._instances: list[list[tuple[Any, ...]]] = [[] for _ in range(ranks)]
        self._messages: list[list[tuple[Any, ...]]] = [[] for _ in range(ranks)]
        self._number = self._order = 0
        self.compute({})

    def compute(self, nanoseconds: Mapping[int, int]) -> None:
        """Let all ranks compute for a few microseconds, and some ranks longer (rank -> additional ns)."""
        self._now += self.generator.integers(1000, 5000, len(self._now))
        for rank, time in nanoseconds.items():
            self._now[rank] += time

    def _transfer(self, nanoseconds: int) -> int:
        return int(nanoseconds * self.generator.uniform(0.5, 1))

    def _call(self, rank: int, name: str, enter: int, leave: int) -> None:
        self._calls[rank].append((name.encode(), enter, leave))
        self._now[rank] = leave

    def collective(self, name: str, size: int, nanoseconds: int, root: int = -1) -> None:
        """Let all ranks call a collective.

        Each rank waits until the ranks that it needs have entered, then transfers for up to `nanoseconds`. In a Bcast,
        each rank needs the root. In a Reduce, the root needs all ranks. Otherwise, each rank needs all ranks.
        """
        enter = self._now.copy()
        ranks = len(enter)
        needs = np.full(ranks, enter[root] if name == "Bcast" else enter.max())
        if name == "Reduce":
            needs = np.where(np.arange(ranks) == root, enter.max(), enter)
        for rank in range(ranks):
            row = (name.encode(), 1, self._number, ranks, rank, root, size, int(enter[rank]), len(self._calls[rank]))
            self._instances[rank].append(row)
            leave = int(max(enter[rank], needs[rank])) + self._transfer(nanoseconds)
            self._call(rank, name, int(enter[rank]), leave)
        self._number += 1

    def single(self, rank: int, name: str, nanoseconds: int) -> None:
        """Let one rank make a call without the other ranks."""
        begin = int(self._now[rank])
        self._call(rank, name, begin, begin + nanoseconds)

    def exchange(self, size: int, nanoseconds: int) -> None:
        """Let each rank of a ring exchange messages with its two neighbours, by Irecv, Isend and Waitall."""
        ranks = len(self._now)
        starts = []
        for rank in range(ranks):
            posts = []
            for name in ("Irecv", "Irecv", "Isend", "Isend"):
                begin = int(self._now[rank])
                posts.append(begin)
                self._call(rank, name, begin, begin + 200)
            starts.append(posts)
        enter = self._now.copy()
        sides = ((-1, 2, RECEIVED, "Irecv"), (1, 3, RECEIVED, "Irecv"), (1, 2, SENT, "Isend"), (-1, 3, SENT, "Isend"))
        for rank in range(ranks):
            left, right = starts[(rank - 1) % ranks][2], starts[(rank + 1) % ranks][3]
            call = len(self._calls[rank])
            for post, (shift, tag, side, name) in zip(starts[rank], sides, strict=True):
                self._order += 1
                row = (name.encode(), 1, side, (rank + shift) % ranks, tag, size, post, self._order, call)
                self._messages[rank].append(row)
            leave = max(int(enter[rank]), left, right) + self._transfer(nanoseconds)
            self._call(rank, "Waitall", int(enter[rank]), leave)

    def pass_on(self, size: int, nanoseconds: int, send: str = "Send") -> None:
        """Let each rank receive a message from the previous rank, and then send a message to the next rank.

        Args:
            send: the sending call. An Ssend ends after a transfer, which begins when the next rank posts its receive.
        """
        sent = 0
        for rank in range(len(self._now)):
            self._order += 2
            if rank:
                enter = int(self._now[rank])
                row = (b"Recv", 1, RECEIVED, rank - 1, 1, size, enter, self._order, len(self._calls[rank]))
                self._messages[rank].append(row)
                self._call(rank, "Recv", enter, max(enter, sent) + self._transfer(nanoseconds))
            if rank + 1 < len(self._now):
                sent = int(self._now[rank]) + 100
                row = (send.encode(), 1, SENT, rank + 1, 1, size, sent, self._order + 1, len(self._calls[rank]))
                self._messages[rank].append(row)
                posted = int(self._now[rank + 1])
                ends = max(sent, posted) + self._transfer(nanoseconds) if send == "Ssend" else sent + 1000
                self._call(rank, send, sent, ends)

    def traces(self) -> list[Trace]:
        """Return the traces that the tracer would write."""
        return [
            Trace("host", np.array(calls, CALL), np.array(instances, INSTANCE), np.array(messages, MESSAGE))
            for calls, instances, messages in zip(self._calls, self._instances, self._messages, strict=True)
        ]
