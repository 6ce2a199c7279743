# SPDX-License-Identifier: Apache-2.0
"""GOAL files: what each rank of a program computes, sends and receives, and which operation waits for which.

Source: T. Hoefler, T. Schneider and A. Lumsdaine, "LogGOPSim - simulating large-scale applications in the LogGOPS
model", Proc. 19th ACM International Symposium on High Performance Distributed Computing, 2010; the text format is that
of its schedule generator.
"""

from __future__ import annotations

import heapq
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_converter.simulation.engine.packet_engine import NOBODY, STEP

OPERATIONS_MOST = 1 << 22
"""Operations of a file, all ranks together."""

_RANKS = re.compile(r"num_ranks (\d{1,7})")
_RANK = re.compile(r"rank (\d{1,7}) ?\{")
_OPERATION = re.compile(
    r"(?:(?P<label>\w+) ?: ?)?"
    r"(?:calc (?P<ns>\d{1,18})"
    r"|(?P<kind>send|recv) (?P<bytes>\d{1,18})b (?:to|from) (?P<peer>\d{1,7})(?: tag (?P<tag>\d{1,18}))?)"
    r"(?: cpu \d+)?(?: nic \d+)?"
)
_ORDER = re.compile(r"(?P<after>\w+) (?P<kind>i?requires) (?P<before>\w+)")

_Row = tuple[int, int, int, int, int, int]
_COLUMNS = ("host", "client", "slot", "awaits", "bytes", "pause")

_FORMS = "num_ranks N, rank R {, LABEL: calc NS, send Bb to R tag T or recv Bb from R tag T, LABEL requires LABEL, or }"


@dataclass(slots=True)
class _Operation:
    """Kind is `calc`, `send` or `recv`; amount is in ns or bytes; `receive` is a send's counterpart."""

    rank: int
    line: int
    kind: str
    amount: int
    peer: int = -1
    tag: int = 0
    missing: int = 0
    ready: int = 0
    slot: int = 0
    receive: _Operation | None = None
    after: list[_Operation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GoalTrace:
    """A program's ranks as clients of the packet engine: first what each rank does, then what those send that do.

    Attributes:
        ranks: number of ranks.
        rank: of each client.
        steps: `STEP` [step] of each client; `host` is a rank, `client` a client, `pause` is in ns.
        arrivals: messages that come to each client, with those that cross no link.
    """

    ranks: int
    rank: tuple[int, ...]
    steps: tuple[npt.NDArray[Any], ...]
    arrivals: tuple[int, ...]


@lru_cache(maxsize=4)
def load_goal(path: Path) -> GoalTrace:
    """Read a GOAL file as steps that the packet engine runs.

    A rank does one thing at a time, in an order that its dependencies allow: that of a network without delays. Sends
    do not hold it up; they leave one after the other, each when the one before has arrived. All ranks end together.

    Raises:
        InputError: it is no GOAL file, a message has no counterpart, or operations wait for each other.
    """
    ranks = _read(path)
    _match(path, ranks)
    ordered = _order(path, ranks)
    arrivals = [_number_slots(operations) for operations in ordered]
    sends = [[each for each in operations if each.kind == "send"] for operations in ordered]
    senders = [rank for rank, messages in enumerate(sends) if messages]
    number_of = {rank: len(ranks) + number for number, rank in enumerate(senders)}
    rows = [
        *(_make_processor(rank, each, arrivals, number_of.get(rank, NOBODY)) for rank, each in enumerate(ordered)),
        *(_make_sender(sends[rank]) for rank in senders),
    ]
    turns = _count_turns(len(ranks))
    return GoalTrace(
        ranks=len(ranks),
        rank=(*range(len(ranks)), *senders),
        steps=tuple(map(_as_steps, rows)),
        arrivals=(*(count + turns for count in arrivals), *(len(sends[rank]) for rank in senders)),
    )


def _read(path: Path) -> list[list[_Operation]]:
    """Read the operations of each rank, which know those that wait for them."""
    ranks: list[list[_Operation]] = []
    rank: int | None = None
    labels: dict[str, _Operation] = {}
    total = 0
    for number, line in _list_lines(path):
        if not ranks:
            ranks = [[] for _ in range(_read_number(path, number, line, _RANKS, "num_ranks N", OPERATIONS_MOST + 1))]
        elif rank is None:
            rank, labels = _read_number(path, number, line, _RANK, "rank R {", len(ranks)), {}
        elif line == "}":
            rank = None
        else:
            total += _read_line(path, number, line, rank, ranks, labels)
            if total > OPERATIONS_MOST:
                raise InputError(path, number, f"at most {OPERATIONS_MOST} operations", "more")
    if not ranks or rank is not None:
        raise InputError(path, None, "a GOAL file: num_ranks N, and rank R { ... } of each", "its end")
    return ranks


def _list_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, with one space between words, and their numbers."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, text in enumerate(file, start=1):
            if line := " ".join(text.split("//")[0].replace(";", " ").split()):
                yield number, line


def _read_number(path: Path, number: int, line: str, form: re.Pattern[str], expected: str, below: int) -> int:
    found = form.fullmatch(line)
    if not found or int(found[1]) >= below:
        raise InputError(path, number, f"{expected}, below {below}", quote_found(line))
    return int(found[1])


def _read_line(
    path: Path, number: int, line: str, rank: int, ranks: list[list[_Operation]], labels: dict[str, _Operation]
) -> bool:
    """Read an operation, or which one waits for another; return whether it is an operation."""
    if found := _OPERATION.fullmatch(line):
        made = _make_operation(path, number, rank, found, len(ranks))
        ranks[rank].append(made)
        if found["label"]:
            labels[found["label"]] = made
        return True
    found = _ORDER.fullmatch(line)
    if not found or not {found["after"], found["before"]} <= set(labels):
        raise InputError(path, number, _FORMS, quote_found(line))
    labels[found["before"]].after.append(labels[found["after"]])
    labels[found["after"]].missing += 1
    return False


def _make_operation(path: Path, line: int, rank: int, found: re.Match[str], ranks: int) -> _Operation:
    if found["ns"]:
        return _Operation(rank, line, "calc", int(found["ns"]))
    peer = int(found["peer"])
    if peer >= ranks:
        raise InputError(path, line, f"a rank below {ranks}", quote_found(found["peer"]))
    return _Operation(rank, line, found["kind"], int(found["bytes"]), peer, int(found["tag"] or 0))


def _match(path: Path, ranks: list[list[_Operation]]) -> None:
    """Let each receive wait for its send: those of two ranks and a tag, in the order of the file."""
    sent: dict[tuple[int, int, int], deque[_Operation]] = {}
    for operations in ranks:
        for each in operations:
            if each.kind == "send":
                sent.setdefault((each.rank, each.peer, each.tag), deque()).append(each)
    for operations in ranks:
        for each in operations:
            if each.kind == "recv":
                waiting = sent.get((each.peer, each.rank, each.tag))
                if not waiting:
                    raise InputError(path, each.line, f"a message of rank {each.peer} with tag {each.tag}", "none")
                send = waiting.popleft()
                send.receive = each
                send.after.append(each)
                each.missing += 1
    if left := [each for waiting in sent.values() for each in waiting]:
        raise InputError(path, left[0].line, f"a receive of rank {left[0].peer} with tag {left[0].tag}", "none")


def _order(path: Path, ranks: list[list[_Operation]]) -> list[list[_Operation]]:
    """Return the operations of each rank in an order that no two ranks can block each other by."""
    ordered: list[list[_Operation]] = [[] for _ in ranks]
    everything = [each for operations in ranks for each in operations]
    due = [(0, number, each) for number, each in enumerate(everything) if not each.missing]
    count = len(everything)
    while due:
        now, _, operation = heapq.heappop(due)
        ordered[operation.rank].append(operation)
        end = now + (operation.amount if operation.kind == "calc" else 0)
        for each in operation.after:
            each.missing -= 1
            each.ready = max(each.ready, end)
            if not each.missing:
                heapq.heappush(due, (each.ready, count, each))
                count += 1
    if left := [each for each in everything if each.missing]:
        raise InputError(path, left[0].line, "operations that do not wait for each other", left[0].kind)
    return ordered


def _number_slots(operations: list[_Operation]) -> int:
    """Number the receives of a rank in their order, and return how many there are."""
    receives = [each for each in operations if each.kind == "recv"]
    for slot, each in enumerate(receives):
        each.slot = slot
    return len(receives)


def _make_processor(rank: int, operations: list[_Operation], arrivals: list[int], sender: int) -> list[_Row]:
    """Return what a rank does, in steps to its own host that cross no link.

    A step begins the run, one lets its sender begin a message, one lets computation begin when a message has come. The
    last ones let all ranks end together (a dissemination barrier).
    """
    rows: list[_Row] = [(rank, NOBODY, 0, 0, 1, 0)]
    pause = received = awaited = sent = 0
    for each in operations:
        if each.kind == "recv":
            received += 1
            continue
        if each.kind == "send":
            rows.append((rank, sender, sent, received, 1, pause))
            sent += 1
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


def _make_sender(sends: list[_Operation]) -> list[_Row]:
    """Return the messages of a rank, each of which waits for its rank to begin it."""
    slots = [each.receive.slot if each.receive else 0 for each in sends]
    return [
        (each.peer, each.peer, slot, number, each.amount, 0)
        for number, (each, slot) in enumerate(zip(sends, slots, strict=True), start=1)
    ]


def _count_turns(ranks: int) -> int:
    return (ranks - 1).bit_length()


def _as_steps(rows: list[_Row]) -> npt.NDArray[Any]:
    steps = np.zeros(len(rows), STEP)
    for name, column in zip(_COLUMNS, zip(*rows, strict=True), strict=True):
        steps[name] = column
    return steps
