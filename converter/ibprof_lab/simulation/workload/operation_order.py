# SPDX-License-Identifier: Apache-2.0
"""The order of a traced program's operations: that of a run on a network without delays.

Messages meet receives as MPI lets them: a receive takes the earliest message that fits its source and tag.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence

from ibprof_lab.simulation.workload.program_steps import LEAST_RENDEZVOUS, Operation

ANY = -1
"""Source or tag of a receive that takes any."""

_Waiting = dict[tuple[int, int], deque[tuple[int, Operation]]]
"""Messages or receives of a rank that have no counterpart yet, by source and tag, with their numbers."""


def order_operations(ranks: Sequence[Sequence[Operation]]) -> tuple[list[list[Operation]], Operation | None]:
    """Return what each rank does in its order, and an operation that waits forever; None without any.

    Sends know their `receive` then, and large ones that others wait for their `sent`. A receive comes next before the
    first operation that requires its message: a rank waits for nothing that it does not need. No two ranks can block
    each other by this order.
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
    """A run without network delays. Times in ns."""

    def __init__(self, ranks: int) -> None:
        self.ordered: list[list[Operation]] = [[] for _ in range(ranks)]
        self._busy_until = [0] * ranks
        self._due: list[tuple[int, int, Operation, bool]] = []
        self._count = 0
        self._sent: list[_Waiting] = [{} for _ in range(ranks)]
        self._posted: list[_Waiting] = [{} for _ in range(ranks)]
        self._received: set[int] = set()

    def begin_at(self, time: int, operation: Operation, is_leaving: bool = False) -> None:
        """Have an operation begin at a time, or a send's message leave."""
        heapq.heappush(self._due, (time, self._number(), operation, is_leaving))

    def finish(self) -> None:
        """Run until nothing is due."""
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
        """Return whether a receive has its message."""
        return id(receive) in self._received

    def append_wait(self, receive: Operation) -> None:
        """Let its rank wait for a message next, unless it has."""
        if not receive.is_ordered:
            receive.is_ordered = True
            self.ordered[receive.rank].append(receive)

    def _begin(self, now: int, operation: Operation) -> None:
        """Begin to compute, or have a message leave, when the rank has computed."""
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
        """Append an operation to its rank's order, after the waits for all that it requires."""
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
    """Take out the earliest operation that fits a source and a tag, each of which may be `ANY`."""
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
