# SPDX-License-Identifier: Apache-2.0
"""Collective operations as a whole: from the first message that begins to the last one that arrives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_lab.simulation.engine.packet_engine import Simulation

Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Open:
    """An operation some of whose messages have not arrived."""

    missing: int
    begin: int
    end: int = 0


def count_turns(client: Ints, done: Ints) -> Ints:
    """Return the number of messages that its client sent before each, in order of completion.

    Args:
        client: int64 [message].
        done: int64 [client], messages of each before these; goes on with them.
    """
    order = np.argsort(client, kind="stable")
    which, first, count = np.unique(client[order], return_index=True, return_counts=True)
    turn = np.empty(len(client), np.int64)
    turn[order] = np.arange(len(client)) - np.repeat(first, count) + np.repeat(done[which], count)
    done[which] += count
    return turn


class Operations:
    """Finds the operations of a job among its messages, while it runs; keeps those alone that are under way.

    Args:
        simulation: that has not run yet.
        job: by number; its messages are sampled from the first on.
    """

    def __init__(self, simulation: Simulation, job: int) -> None:
        self._clients = simulation.job_of_client == job
        self._steps = simulation.steps_of_client
        self._messages = int(self._steps[self._clients].sum())
        self._done = np.zeros(simulation.clients, np.int64)
        self._open: dict[int, _Open] = {}

    def note(self, samples: npt.NDArray[Any]) -> tuple[Ints, Ints]:
        """Take note of the next messages.

        Args:
            samples: in order of completion; those of other jobs are passed over.

        Returns:
            The tick at which each operation began that is complete by them, and the ticks that it took.
        """
        samples = samples[self._clients[samples["client"]]]
        if not len(samples):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        client = samples["client"].astype(np.int64)
        turn = count_turns(client, self._done)
        number = turn // self._steps[client]
        start = samples["start"].astype(np.int64)
        end = start + samples["ticks"].astype(np.int64)
        ended = [each for each in np.unique(number).tolist() if self._add(each, start, end, number == each)]
        closed = [self._open.pop(each) for each in ended]
        begin = np.array([each.begin for each in closed], np.int64)
        return begin, np.array([each.end for each in closed], np.int64) - begin

    def _add(self, number: int, start: Ints, end: Ints, chosen: npt.NDArray[np.bool_]) -> bool:
        """Return whether the operation is complete with these messages."""
        begin = int(start[chosen].min())
        found = self._open.setdefault(number, _Open(self._messages, begin))
        found.missing -= int(chosen.sum())
        found.begin, found.end = min(found.begin, begin), max(found.end, int(end[chosen].max()))
        return not found.missing
