# SPDX-License-Identifier: Apache-2.0
"""Programs, whose ranks compute, send and wait, as steps for the packet engine."""

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
"""Smallest message, in bytes, for whose arrival the sender waits (rendezvous). LogGOPSim has this default."""


@dataclass(slots=True)
class Operation:
    """An operation of a rank.

    Attributes:
        line: line number in the file, for error messages; 0 if there is no file.
        kind: `calc`, `send`, or `recv`, which waits for a message's arrival.
        amount: time in ns for `calc`, bytes for `send` and `recv`.
        peer, tag: the other rank, and the tag, of a message.
        missing: number of operations that this operation still waits for.
        after: operations that wait for this operation, each with a bool: True if it waits only for the beginning.
        needs: sends and receives that this operation waits for, each with a bool: True to wait only for the beginning.
            None if the list would be empty, or after this operation was appended to its rank's order.
        slot: for a `recv`, its index among all `recv`s of its rank.
        is_ordered: True for a `recv` that was appended to its rank's order.
        receive: for a `send`, the matching `recv`.
        sent: for a `send`, a `recv` by which its rank waits for the message's arrival; None if the rank does not wait.
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
        """Let this operation wait for the end, or for the beginning, of another operation of its rank."""
        before.after.append((self, for_beginning))
        self.missing += 1
        if before.kind != "calc":
            self.needs = self.needs or []
            self.needs.append((before, for_beginning))


@dataclass(frozen=True, slots=True)
class RankProgram:
    """A program as clients of the packet engine: a client for each rank, then for each pair of sender and receiver.

    Attributes:
        ranks: number of ranks.
        rank: rank of each client.
        steps: for each client, `STEP` [step]; `host` is a rank, `client` the index of a client, and `pause` is in ns.
        arrivals: number of messages that each client receives in a run, including messages within a host.
        is_simplified: True if a rank uses several processors or adapters, and only one is simulated.
    """

    ranks: int
    rank: tuple[int, ...]
    steps: tuple[npt.NDArray[Any], ...]
    arrivals: tuple[int, ...]
    is_simplified: bool = False


def lay_out_program(ordered: Sequence[Sequence[Operation]]) -> RankProgram:
    """Return the steps of ranks that execute one operation at a time, in the given order.

    A send does not block its rank. A message starts after the previous message from the same sender to the same
    receiver has arrived. The program ends with a barrier of all ranks.
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
    """Return the steps of a rank's client: messages of one byte within the rank's host. These messages mark the begin
    and the end of the run, the start of each send, and the end of waits before computations. A dissemination barrier of
    all ranks follows.
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
    """Return the steps of the client that sends one rank's messages to another rank; the sending rank's client starts
    each step."""
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
