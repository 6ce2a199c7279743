# SPDX-License-Identifier: Apache-2.0
"""Collective operations as the messages that they consist of.

Source: R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of collective communication operations in MPICH",
International Journal of High Performance Computing Applications 19(1), 2005, sections 3 to 4.5; the dissemination
barrier of D. Hensgen, R. Finkel and U. Manber, International Journal of Parallel Programming 17(1), 1988.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_lab.simulation.engine.packet_engine import STEP


@dataclass(frozen=True, slots=True)
class Part:
    """The part of one rank in a collective.

    Attributes:
        steps: `STEP` [message]; `client` is the rank that it goes to, host and times are 0.
        arrivals: messages that come to it.
    """

    steps: npt.NDArray[Any]
    arrivals: int


def _part(to: Any, size: int, slot: Any, awaits: Any, arrivals: int) -> Part:
    steps = np.zeros(len(to), STEP)
    steps["client"], steps["bytes"], steps["slot"], steps["awaits"] = to, size, slot, awaits
    return Part(steps, arrivals)


def send_to_neighbour(rank: int, ranks: int, size: int) -> Part:
    """Each sends to the next one."""
    return _part([(rank + 1) % ranks], size, 0, 0, 1)


def broadcast(rank: int, ranks: int, size: int) -> Part:
    """Binomial tree from rank 0: each hands on to ever nearer ranks, the largest subtree first."""
    reach = rank & -rank if rank else 1 << (ranks - 1).bit_length()
    children = [rank + (1 << bit) for bit in reversed(range(reach.bit_length() - 1)) if rank + (1 << bit) < ranks]
    return _part(children, size, 0, int(rank > 0), int(rank > 0))


def all_gather(rank: int, ranks: int, size: int) -> Part:
    """Ring: each hands on what came from the one before, until all have all. `size` is one rank's share."""
    turn = np.arange(ranks - 1)
    return _part(np.full(ranks - 1, (rank + 1) % ranks), size, turn, turn, ranks - 1)


def all_to_all(rank: int, ranks: int, size: int) -> Part:
    """Pairwise: in turn k each sends to the rank k further on, and waits for the one k before."""
    turn = np.arange(ranks - 1)
    return _part((rank + 1 + turn) % ranks, size, turn, turn, ranks - 1)


def all_reduce(rank: int, ranks: int, size: int) -> Part:
    """Recursive doubling; the ranks beyond a power of two take part through a neighbour."""
    rounds = ranks.bit_length() - 1
    beyond = ranks - (1 << rounds)
    if rank < 2 * beyond and rank % 2 == 0:
        return _part([rank + 1], size, 0, 0, 1)
    through = int(rank < 2 * beyond)
    number = rank // 2 if through else rank - beyond
    partners = [number ^ 1 << turn for turn in range(rounds)]
    to = [2 * partner + 1 if partner < beyond else partner + beyond for partner in partners]
    # What comes from the neighbour has slot 0, where there is one: a partner's slots are later by that.
    slot = [turn + int(partner < beyond) for turn, partner in enumerate(partners)]
    awaits = [turn + through for turn in range(rounds)]
    if through:
        to, slot, awaits = [*to, rank - 1], [*slot, 0], [*awaits, rounds + 1]
    return _part(to, size, slot, awaits, rounds + through)


def barrier(rank: int, ranks: int, size: int) -> Part:
    """Dissemination: in turn k each sends to the rank 2**k further on."""
    rounds = (ranks - 1).bit_length()
    turn = np.arange(rounds)
    return _part([(rank + (1 << k)) % ranks for k in range(rounds)], size, turn, turn, rounds)


Schedule = Callable[[int, int, int], Part]
"""Rank, number of ranks, bytes of a message."""
