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
from functools import lru_cache
from pathlib import Path

from ibprof.errors import InputError, quote_found
from ibprof_converter.simulation.workload.program_steps import Operation, RankProgram, lay_out_program

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

_FORMS = "num_ranks N, rank R {, LABEL: calc NS, send Bb to R tag T or recv Bb from R tag T, LABEL requires LABEL, or }"


@lru_cache(maxsize=4)
def load_goal(path: Path) -> RankProgram:
    """Read a GOAL file as steps that the packet engine runs.

    A rank does one thing at a time, in an order that its dependencies allow: that of a network without delays. See
    `lay_out_program`.

    Raises:
        InputError: it is no GOAL file, a message has no counterpart, or operations wait for each other.
    """
    ranks = _read(path)
    _match(path, ranks)
    return lay_out_program(_order(path, ranks))


def _read(path: Path) -> list[list[Operation]]:
    """Read the operations of each rank, which know those that wait for them."""
    ranks: list[list[Operation]] = []
    rank: int | None = None
    labels: dict[str, Operation] = {}
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
    path: Path, number: int, line: str, rank: int, ranks: list[list[Operation]], labels: dict[str, Operation]
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


def _make_operation(path: Path, line: int, rank: int, found: re.Match[str], ranks: int) -> Operation:
    if found["ns"]:
        return Operation(rank, line, "calc", int(found["ns"]))
    peer = int(found["peer"])
    if peer >= ranks:
        raise InputError(path, line, f"a rank below {ranks}", quote_found(found["peer"]))
    return Operation(rank, line, found["kind"], int(found["bytes"]), peer, int(found["tag"] or 0))


def _match(path: Path, ranks: list[list[Operation]]) -> None:
    """Let each receive wait for its send: those of two ranks and a tag, in the order of the file."""
    sent: dict[tuple[int, int, int], deque[Operation]] = {}
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


def _order(path: Path, ranks: list[list[Operation]]) -> list[list[Operation]]:
    """Return the operations of each rank in an order that no two ranks can block each other by."""
    ordered: list[list[Operation]] = [[] for _ in ranks]
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
