# SPDX-License-Identifier: Apache-2.0
"""Programs whose ranks compute, send and wait, as steps for the packet engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_lab.simulation.engine.packet_engine import NOBODY, STEP

_Row = tuple[int, int, int, int, int, int]
_COLUMNS = ("host", "client", "slot", "awaits", "bytes", "pause")

LEAST_RENDEZVOUS = 1 << 16
"""A message of at least this many bytes waits until the receiver is ready (rendezvous), as in MPI libraries. LogGOPSim
has the same default."""


@dataclass(slots=True)
class Operation:
    """An operation of a rank.

    Attributes:
        line: line of the file, for messages; 0 without a file.
        kind: `calc`, `send`, or `recv`, which waits for a message's arrival.
        amount: ns for `calc`, bytes for the others.
        peer, tag: other rank and tag of a message.
        missing: number of unfinished operations that this operation waits for.
        after: operations that wait for this operation; each with True if it waits only for the beginning of this
            operation.
        needs: sends and receives that this operation waits for, as in `after`; None once this operation is in the
            rank's order.
        slot: number of a `recv` among all `recv`s of its rank.
        is_ordered: True for a `recv` in the rank's order.
        receive: counterpart `recv` of a send.
        sent: for a send, a `recv` of the sending rank, which waits until the sent message has arrived.
    """

    rank: int
    line: int
    kind: str
    amount: int
    peer: int = -1
    tag: int = 0
    missing: int = 0
    slot: int = 0
    is_ordered: bool = False
    receive: Operation | None = None
    sent: Operation | None = None
    after: list[tuple[Operation, bool]] = field(default_factory=list)
    needs: list[tuple[Operation, bool]] | None = None

    def wait_for(self, before: Operation, for_beginning: bool) -> None:
        """Make this operation wait for the end or the beginning of another operation of its rank."""
        before.after.append((self, for_beginning))
        self.missing += 1
        if before.kind != "calc":
            self.needs = self.needs or []
            self.needs.append((before, for_beginning))


@dataclass(frozen=True, slots=True)
class RankProgram:
    """A program's ranks as clients of the packet engine: first one client per rank, then the clients that send.

    Attributes:
        ranks: number of ranks.
        rank: rank of each client.
        steps: `STEP` [step] of each client; `host` is a rank, `client` a client, `pause` is in ns.
        arrivals: number of messages to each client, including those that cross no link.
        is_simplified: True if ranks had several processors or adapters, which are not simulated.
    """

    ranks: int
    rank: tuple[int, ...]
    steps: tuple[npt.NDArray[Any], ...]
    arrivals: tuple[int, ...]
    is_simplified: bool = False


def lay_out_program(ordered: Sequence[Sequence[Operation]]) -> RankProgram:
    """Return the steps of ranks that do one operation at a time, in the given order.

    Sends do not block a rank. A rank's messages to one other rank are sent in sequence, each after the arrival of the
    previous message. A rank's messages to several ranks share its link. All ranks end together.
    """
    arrivals = []
    for operations in ordered:
        receives = [each for each in operations if each.kind == "recv"]
        for slot, each in enumerate(receives):
            each.slot = slot
        arrivals.append(len(receives))
    sends: dict[tuple[int, int], list[Operation]] = {}
    for operations in ordered:
        for each in operations:
            if each.kind == "send":
                sends.setdefault((each.rank, each.peer), []).append(each)
    pairs = sorted(sends)
    sender_of = {pair: len(ordered) + number for number, pair in enumerate(pairs)}
    rows = [
        *(_make_processor(rank, each, arrivals, sender_of) for rank, each in enumerate(ordered)),
        *(_make_sender(sends[pair]) for pair in pairs),
    ]
    turns = _count_turns(len(ordered))
    return RankProgram(
        ranks=len(ordered),
        rank=(*range(len(ordered)), *(rank for rank, _ in pairs)),
        steps=tuple(map(_as_steps, rows)),
        arrivals=(*(count + turns for count in arrivals), *(len(sends[pair]) for pair in pairs)),
    )


def _make_processor(
    rank: int, operations: Sequence[Operation], arrivals: list[int], sender_of: dict[tuple[int, int], int]
) -> list[_Row]:
    """Return a rank's own operations, as steps to its own host that cross no link.

    Steps begin the run, begin a sender's message, or begin computing after a message's arrival. The last steps let all
    ranks end together (a dissemination barrier).
    """
    rows: list[_Row] = [(rank, NOBODY, 0, 0, 1, 0)]
    pause = received = awaited = 0
    sent: dict[int, int] = {}
    for each in operations:
        if each.kind == "recv":
            received += 1
            continue
        if each.kind == "send":
            number = sent.get(each.peer, 0)
            rows.append((rank, sender_of[rank, each.peer], number, received, 1, pause))
            sent[each.peer] = number + 1
        elif received > awaited:
            rows.append((rank, NOBODY, 0, received, 1, pause))
        else:
            pause += each.amount
            continue
        pause, awaited = each.amount if each.kind == "calc" else 0, received
    rows.append((rank, NOBODY, 0, received, 1, pause))
    for turn in range(_count_turns(len(arrivals))):
        other = (rank + (1 << turn)) % len(arrivals)
        rows.append((rank, other, arrivals[other] + turn, received + turn, 1, 0))
    return rows


def _make_sender(sends: Sequence[Operation]) -> list[_Row]:
    """Return the messages from one rank to another. Each message waits until the sending rank begins the message."""
    rows: list[_Row] = []
    for number, each in enumerate(sends, start=1):
        rows.append((each.peer, each.peer, each.receive.slot if each.receive else 0, number, each.amount, 0))
        if each.sent:
            rows.append((each.rank, each.rank, each.sent.slot, number, 1, 0))
    return rows


def _count_turns(ranks: int) -> int:
    return (ranks - 1).bit_length()


def _as_steps(rows: list[_Row]) -> npt.NDArray[Any]:
    steps = np.zeros(len(rows), STEP)
    for name, column in zip(_COLUMNS, zip(*rows, strict=True), strict=True):
        steps[name] = column
    return steps
