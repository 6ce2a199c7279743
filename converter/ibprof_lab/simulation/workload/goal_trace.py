# SPDX-License-Identifier: Apache-2.0
"""Reader of GOAL files, which contain the computations, sends and receives of each rank of a program.

Source: T. Hoefler, T. Schneider and A. Lumsdaine, "LogGOPSim - simulating large-scale applications in the LogGOPS
model", Proc. 19th ACM International Symposium on High Performance Distributed Computing, 2010; the text format of its
schedule generator.

The reader replaces the dependencies of a rank's operations by one order: the order in a run without network delays. As
in MPI, a receive matches the earliest message with its source and tag.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ibprof.errors import InputError, quote_found
from ibprof_lab.simulation.workload.program_steps import LEAST_RENDEZVOUS, Operation, RankProgram, lay_out_program

OPERATIONS_MOST = 1 << 22
"""Largest number of operations in a file, over all ranks."""

_LARGEST = 1 << 50
"""Largest size of a message in bytes, and largest time of a rank's computations in ns (the clock's range)."""

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

ANY = -1
"""Wildcard for the source or the tag of a receive."""

_Waiting = dict[tuple[int, int], deque[tuple[int, Operation]]]
"""Unmatched messages to a rank, or unmatched receives of a rank: (source, tag) -> (sequence number, operation)."""


@lru_cache(maxsize=4)
def load_goal(path: Path) -> RankProgram:
    """Read a GOAL file as steps for the packet engine.

    Each rank executes one operation at a time, in the order of `order_operations`.

    Raises:
        InputError: the file is not GOAL, a send has no receive or a receive no send, or operations wait for each other.
    """
    ranks, is_simplified = _read(path)
    _count_messages(path, ranks)
    ordered, left = order_operations(ranks)
    if left:
        raise InputError(path, left.line, "operations that do not wait for each other", left.kind)
    return replace(lay_out_program(ordered), is_simplified=is_simplified)


def _read(path: Path) -> tuple[list[list[Operation]], bool]:
    """Return the operations of each rank, and `RankProgram.is_simplified`."""
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
                raise InputError(path, number, f"at most {_LARGEST} ns of computing per rank", str(computed[rank]))
            is_simplified |= any(int(each or 0) for each in found.group("cpu", "nic"))
            total += 1
            if total > OPERATIONS_MOST:
                raise InputError(path, number, f"at most {OPERATIONS_MOST} operations", "more")
        else:
            _add_order(path, number, line, labels)
    if not ranks or rank is not None:
        raise InputError(path, None, "a GOAL file: num_ranks N, and rank R { ... } of each", "the end of the file")
    if not total:
        raise InputError(path, None, "operations of a rank", "none")
    return ranks, is_simplified


def _list_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line number and text of each line that is not empty, without comments; adjacent spaces become one."""
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
            raise InputError(path, line, f"a message of at most {_LARGEST} bytes", found["bytes"])
        made = Operation(rank, line, found["kind"], int(found["bytes"]), peer, tag)
    ranks[rank].append(made)
    if label:
        labels[label] = made


def _add_order(path: Path, number: int, line: str, labels: dict[str, Operation]) -> None:
    """Add the dependency in a line: an operation waits for the end, or for the beginning, of another operation."""
    found = _ORDER.fullmatch(line)
    if not found or found["after"] not in labels or found["before"] not in labels:
        raise InputError(path, number, _FORMS, quote_found(line))
    labels[found["after"]].wait_for(labels[found["before"]], for_beginning=found["kind"] == "irequires")


def _count_messages(path: Path, ranks: Sequence[Sequence[Operation]]) -> None:
    """Check that a rank has as many receives as incoming messages: by source and tag; with wildcards, in total."""
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
                expected = f"{len(receives)} messages to rank {rank}, one per receive"
                raise InputError(path, line, expected, str(len(sent)))
            continue
        counts = Counter((each.rank, each.tag) for each in sent)
        for each in receives:
            counts[each.peer, each.tag] -= 1
            if counts[each.peer, each.tag] < 0:
                raise InputError(path, each.line, f"a message from rank {each.peer} with tag {each.tag}", "none")
        for each in sent:
            if counts[each.rank, each.tag] > 0:
                raise InputError(path, each.line, f"a receive on rank {rank} with tag {each.tag}", "none")


def order_operations(ranks: Sequence[Sequence[Operation]]) -> tuple[list[list[Operation]], Operation | None]:
    """Return each rank's operations in order, and an operation that waits forever, or None.

    The function sets `Operation.receive` and `Operation.sent` of sends. In the order, a receive is just before the
    first operation that depends on its message, so that ranks cannot deadlock.
    """
    run = _Run(len(ranks))
    for operations in ranks:
        for each in operations:
            if not each.missing:
                run.begin_at(0, each)
    run.finish()
    for operations in ranks:
        for each in operations:
            if each.missing or (each.kind == "recv" and not run.is_received(each)):
                return run.ordered, each
            if wait := each if each.kind == "recv" else each.sent:
                run.append_wait(wait)
    return run.ordered, None


class _Run:
    """A run of the ranks' operations on a network without delays. Times are in ns."""

    def __init__(self, ranks: int) -> None:
        self.ordered: list[list[Operation]] = [[] for _ in range(ranks)]
        self._busy_until = [0] * ranks
        self._due: list[tuple[int, int, Operation, bool]] = []
        self._count = 0
        self._sent: list[_Waiting] = [{} for _ in range(ranks)]
        self._posted: list[_Waiting] = [{} for _ in range(ranks)]
        self._received: set[int] = set()

    def begin_at(self, time: int, operation: Operation, is_leaving: bool = False) -> None:
        """Schedule the start of an operation or, if `is_leaving`, the departure of a send's message."""
        heapq.heappush(self._due, (time, self._number(), operation, is_leaving))

    def finish(self) -> None:
        """Run until no event is scheduled."""
        while self._due:
            now, _, operation, is_leaving = heapq.heappop(self._due)
            if is_leaving:
                self._send(now, operation)
            elif operation.kind == "recv":
                self._release(operation, now, at_beginning=True)
                self._receive(now, operation)
            else:
                self._begin(now, operation)

    def is_received(self, receive: Operation) -> bool:
        """Return True if a receive is matched with a message."""
        return id(receive) in self._received

    def append_wait(self, receive: Operation) -> None:
        """Append a wait for a message to the receiving rank's order, unless the order already has this wait."""
        if not receive.is_ordered:
            receive.is_ordered = True
            self.ordered[receive.rank].append(receive)

    def _begin(self, now: int, operation: Operation) -> None:
        """Begin a computation, or schedule the departure of a message, after the rank's current computation."""
        rank = operation.rank
        self._append(operation)
        begin = max(now, self._busy_until[rank])
        if operation.kind == "send":
            is_required = not all(for_beginning for _, for_beginning in operation.after)
            if operation.amount >= LEAST_RENDEZVOUS and operation.peer != rank and is_required:
                operation.sent = Operation(rank, operation.line, "recv", 1, rank)
            self.begin_at(begin, operation, is_leaving=True)
            return
        self._busy_until[rank] = begin + operation.amount
        self._release(operation, begin, at_beginning=True)
        self._release(operation, begin + operation.amount, at_beginning=False)

    def _append(self, operation: Operation) -> None:
        """Append to the order of the rank: waits for the messages that an operation depends on, then the operation."""
        todo, operation.needs = list(operation.needs or ()), None
        while todo:
            before, for_beginning = todo.pop()
            if before.kind == "recv" and before.needs:
                todo += before.needs
                before.needs = None
            wait = before if before.kind == "recv" else before.sent
            if wait and not for_beginning:
                self.append_wait(wait)
        self.ordered[operation.rank].append(operation)

    def _send(self, now: int, send: Operation) -> None:
        self._release(send, now, at_beginning=True)
        if not send.sent:
            self._release(send, now, at_beginning=False)
        receive = _take(self._posted[send.peer], send.rank, send.tag)
        if receive:
            self._meet(now, send, receive)
        else:
            self._keep(self._sent[send.peer], send.rank, send)

    def _receive(self, now: int, receive: Operation) -> None:
        send = _take(self._sent[receive.rank], receive.peer, receive.tag)
        if send:
            self._meet(now, send, receive)
        else:
            self._keep(self._posted[receive.rank], receive.peer, receive)

    def _meet(self, now: int, send: Operation, receive: Operation) -> None:
        send.receive = receive
        self._received.add(id(receive))
        self._release(receive, now, at_beginning=False)
        if send.sent:
            self._release(send, now, at_beginning=False)

    def _keep(self, waiting: _Waiting, source: int, operation: Operation) -> None:
        waiting.setdefault((source, operation.tag), deque()).append((self._number(), operation))

    def _release(self, operation: Operation, now: int, at_beginning: bool) -> None:
        for each, for_beginning in operation.after:
            if for_beginning is at_beginning:
                each.missing -= 1
                if not each.missing:
                    self.begin_at(now, each)

    def _number(self) -> int:
        self._count += 1
        return self._count


def _take(waiting: _Waiting, source: int, tag: int) -> Operation | None:
    """Remove and return the earliest operation that matches a source and a tag (or `ANY`); None without match."""
    likely = waiting if ANY in (source, tag) else ((source, tag), (ANY, tag), (source, ANY), (ANY, ANY))
    fitting = [
        (waiting[key][0][0], key)
        for key in likely
        if key in waiting and (key[0] == source or ANY in (key[0], source)) and (key[1] == tag or ANY in (key[1], tag))
    ]
    if not fitting:
        return None
    _, key = min(fitting)
    _, found = waiting[key].popleft()
    if not waiting[key]:
        del waiting[key]
    return found
