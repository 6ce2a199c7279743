# SPDX-License-Identifier: Apache-2.0
"""GOAL files: what each rank of a program computes, sends and receives, and which operation waits for which.

Source: T. Hoefler, T. Schneider and A. Lumsdaine, "LogGOPSim - simulating large-scale applications in the LogGOPS
model", Proc. 19th ACM International Symposium on High Performance Distributed Computing, 2010; the text format is that
of its schedule generator.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ibprof.errors import InputError, quote_found
from ibprof_lab.simulation.workload.operation_order import ANY, order_operations
from ibprof_lab.simulation.workload.program_steps import Operation, RankProgram, lay_out_program

OPERATIONS_MOST = 1 << 22
"""Operations of a file, all ranks together."""

_LARGEST = 1 << 50
"""Bytes of a message, and ns that a rank computes, at most: the engine's clock counts more."""

_RANKS = re.compile(r"num_ranks (\d{1,7})")
_RANK = re.compile(r"rank (\d{1,7}) ?\{")
_OPERATION = re.compile(
    r"(?:(?P<label>\w+) ?: ?)?"
    r"(?:calc (?P<ns>\d{1,18})"
    r"|(?P<kind>send|recv) (?P<bytes>\d{1,18})b (?:to|from) (?P<peer>-1|\d{1,7})(?: tag (?P<tag>-1|\d{1,18}))?)"
    r"(?: cpu (?P<cpu>\d+))?(?: nic (?P<nic>\d+))?"
)
_ORDER = re.compile(r"(?P<after>\w+) (?P<kind>i?requires) (?P<before>\w+)")

_COMMENT = re.compile(r"/\*.*?\*/")

_FORMS = "num_ranks N, rank R {, LABEL: calc NS, send Bb to R tag T or recv Bb from R tag T, LABEL requires LABEL, or }"


@lru_cache(maxsize=4)
def load_goal(path: Path) -> RankProgram:
    """Read a GOAL file as steps that the packet engine runs.

    A rank does one thing at a time, in the order of a network without delays; see `order_operations`.

    Raises:
        InputError: it is no GOAL file, a message has no counterpart, or operations wait for each other.
    """
    ranks, is_simplified = _read(path)
    _count_messages(path, ranks)
    ordered, left = order_operations(ranks)
    if left:
        raise InputError(path, left.line, "operations that do not wait for each other", left.kind)
    return replace(lay_out_program(ordered), is_simplified=is_simplified)


def _read(path: Path) -> tuple[list[list[Operation]], bool]:
    """Read the operations of each rank, and whether any is for a second processor or adapter."""
    ranks: list[list[Operation]] = []
    rank: int | None = None
    labels: dict[str, Operation] = {}
    total, is_simplified = 0, False
    computed: Counter[int] = Counter()
    for number, line in _list_lines(path):
        if not ranks:
            ranks = [[] for _ in range(_read_number(path, number, line, _RANKS, "num_ranks N", OPERATIONS_MOST + 1))]
        elif rank is None:
            rank, labels = _read_number(path, number, line, _RANK, "rank R {", len(ranks)), {}
        elif line == "}":
            rank = None
        elif found := _OPERATION.fullmatch(line):
            _add_operation(path, number, found, rank, ranks, labels)
            computed[rank] += int(found["ns"] or 0)
            if computed[rank] > _LARGEST:
                raise InputError(path, number, f"at most {_LARGEST} ns of computing a rank", str(computed[rank]))
            is_simplified |= any(int(each or 0) for each in found.group("cpu", "nic"))
            total += 1
            if total > OPERATIONS_MOST:
                raise InputError(path, number, f"at most {OPERATIONS_MOST} operations", "more")
        else:
            _add_order(path, number, line, labels)
    if not ranks or rank is not None:
        raise InputError(path, None, "a GOAL file: num_ranks N, and rank R { ... } of each", "its end")
    if not total:
        raise InputError(path, None, "operations of a rank", "none")
    return ranks, is_simplified


def _list_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, with one space between words and without comments, and their numbers."""
    within = False
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if "\0" in line:
                raise InputError(path, None, "a GOAL file as text", "the binary form, which txt2bin writes")
            text = f"/*{line}" if within else line
            text = _COMMENT.sub(" ", text)
            text, opening, _ = text.partition("/*")
            within = bool(opening)
            if said := " ".join(text.split("//")[0].replace(";", " ").split()):
                yield number, said


def _read_number(path: Path, number: int, line: str, form: re.Pattern[str], expected: str, below: int) -> int:
    found = form.fullmatch(line)
    if not found or int(found[1]) >= below:
        raise InputError(path, number, f"{expected}, below {below}", quote_found(line))
    return int(found[1])


def _add_operation(
    path: Path,
    line: int,
    found: re.Match[str],
    rank: int,
    ranks: Sequence[list[Operation]],
    labels: dict[str, Operation],
) -> None:
    """Add an operation to its rank, and to the labels."""
    label = found["label"]
    if label in labels:
        raise InputError(path, line, "a label of one operation", quote_found(label))
    if found["ns"]:
        made = Operation(rank, line, "calc", int(found["ns"]))
    else:
        peer, tag = int(found["peer"]), int(found["tag"] or 0)
        if peer >= len(ranks) or (peer == ANY and found["kind"] == "send"):
            raise InputError(path, line, f"a rank below {len(ranks)}", quote_found(found["peer"]))
        if int(found["bytes"]) > _LARGEST:
            raise InputError(path, line, f"at most {_LARGEST} bytes of a message", found["bytes"])
        made = Operation(rank, line, found["kind"], int(found["bytes"]), peer, tag)
    ranks[rank].append(made)
    if label:
        labels[label] = made


def _add_order(path: Path, number: int, line: str, labels: dict[str, Operation]) -> None:
    """Let an operation wait for another, or for its beginning."""
    found = _ORDER.fullmatch(line)
    if not found or found["after"] not in labels or found["before"] not in labels:
        raise InputError(path, number, _FORMS, quote_found(line))
    labels[found["after"]].wait_for(labels[found["before"]], for_beginning=found["kind"] == "irequires")


def _count_messages(path: Path, ranks: Sequence[Sequence[Operation]]) -> None:
    """Check that each rank is sent what it receives: by source and tag, in number where it takes any."""
    sends: dict[int, list[Operation]] = {}
    for operations in ranks:
        for each in operations:
            if each.kind == "send":
                sends.setdefault(each.peer, []).append(each)
    for rank, operations in enumerate(ranks):
        receives, sent = [each for each in operations if each.kind == "recv"], sends.get(rank, [])
        if any(ANY in (each.peer, each.tag) for each in (*receives, *sent)):
            if len(sent) != len(receives):
                line = (receives or sent)[-1].line
                expected = f"as many messages to rank {rank} as receives ({len(receives)})"
                raise InputError(path, line, expected, str(len(sent)))
            continue
        counts = Counter((each.rank, each.tag) for each in sent)
        for each in receives:
            counts[each.peer, each.tag] -= 1
            if counts[each.peer, each.tag] < 0:
                raise InputError(path, each.line, f"a message of rank {each.peer} with tag {each.tag}", "none")
        for each in sent:
            if counts[each.rank, each.tag] > 0:
                raise InputError(path, each.line, f"a receive of rank {rank} with tag {each.tag}", "none")
