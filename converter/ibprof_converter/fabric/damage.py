# SPDX-License-Identifier: Apache-2.0
"""Lines of a dump that are not used, and what is lost with them.

Dumps are copied from terminals, cut, and mixed with messages of their tools. Readers use what they can and collect the
rest here: every output mentions it, and `--check` makes findings of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from os import PathLike

from ibprof.errors import InputError, quote_found
from ibprof.text.quantities import count_of

_SHOWN_RANGES = 3
_TOOL_MESSAGE = re.compile(rb"umad|ibwarn|iberror|ibpanic|timed out|query_smp|bad status|mad_rpc", re.IGNORECASE)
_PROGRESS = re.compile(rb"DR path .* -> (?:new|known|processing) ")


class DamageKind(Enum):
    """Kinds of unused lines, by what is lost with them."""

    STRAY = "stray"
    """Text of a terminal or of another program; nothing is lost."""
    NO_ANSWER = "no answer"
    """The tool's message that a node did not answer; the node, or a part of its table, may be missing."""
    LOST = "lost"
    """Links or routes that the dump had, or should have."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Lines of a dump that are not used, or are missing.

    Attributes:
        kind: what is lost with them.
        what: in words, with numbers.
        lines: their numbers, from 1; none for missing ones.
        node_guid: NODE GUID of the switch or adapter that they describe; None if that is unknown.
        file: name of the file among several that are taken together; empty where there is one.
    """

    kind: DamageKind
    what: str
    lines: tuple[int, ...] = ()
    node_guid: int | None = None
    file: str = ""

    @property
    def place(self) -> str:
        """Its lines and file, for people; empty where neither is known."""
        return " of ".join(filter(None, (show_lines(self.lines) if self.lines else "", self.file)))

    @property
    def text(self) -> str:
        """The damage with its place and GUID, for people."""
        return self.describe(0)

    def describe(self, more: int) -> str:
        """Return the damage with its place and GUID, and the number of further places of the same."""
        of = f"{self.node_guid:#018x}: " if self.node_guid is not None else ""
        places = ", ".join(filter(None, (self.place, f"and {more} more alike" if more else "")))
        return f"{of}{self.what}{f' ({places})' if places else ''}"


def describe_damages(damages: Sequence[Damage]) -> Iterator[str]:
    """Yield damages in words, those that differ only in their place as one sentence with their number."""
    alike: dict[tuple[DamageKind, str], list[Damage]] = {}
    for damage in damages:
        alike.setdefault((damage.kind, damage.what), []).append(damage)
    for group in alike.values():
        yield group[0].describe(len(group) - 1)


@dataclass(slots=True)
class DamageLog:
    """Collect the unused lines of one file while it is parsed.

    Attributes:
        path: for messages.
    """

    path: str | PathLike[str]
    _stray: list[int] = field(default_factory=list)
    _wrapped: list[int] = field(default_factory=list)
    _silent: dict[int | None, list[tuple[int, bytes]]] = field(default_factory=dict)
    _lost: dict[int | None, list[InputError]] = field(default_factory=dict)
    _lost_lines: dict[int | None, list[int]] = field(default_factory=dict)
    _missing: list[Damage] = field(default_factory=list)
    _first: InputError | None = None

    def skip(self, line: int, text: bytes, expected: str, node_guid: int | None = None) -> None:
        """Note a line that is no part of the format. A message of the tool can be about a switch."""
        if _TOOL_MESSAGE.search(text) and not _PROGRESS.match(text):
            self._silent.setdefault(node_guid, []).append((line, text))
        else:
            self._stray.append(line)
        self._keep_first(line, expected, text)

    def join(self, line: int) -> None:
        """Note a line that was joined to the ones before it: a terminal or a mail had broken it."""
        self._wrapped.append(line)

    def lose(self, line: int, error: InputError, node_guid: int | None = None) -> None:
        """Note a line that was meant to list a link or a route."""
        self._lost.setdefault(node_guid, []).append(error)
        self._lost_lines.setdefault(node_guid, []).append(line)
        self._first = self._first or error

    def end_within(self, line: int, text: bytes, node_guid: int | None = None) -> None:
        """Note that the file ends within a line: this one and all later ones are missing."""
        what = f"the dump ends within a line, so this one and all later ones are missing: {quote_found(text)}"
        self.miss(what, node_guid, [line])
        self._keep_first(line, "the rest of the line", text)

    def miss(self, what: str, node_guid: int | None = None, lines: Sequence[int] = ()) -> None:
        """Note something that should be there, or that lines contradict each other about."""
        self._missing.append(Damage(DamageKind.LOST, what, tuple(lines), node_guid))

    def _keep_first(self, line: int, expected: str, text: bytes) -> None:
        self._first = self._first or InputError(self.path, line, expected, quote_found(text))

    @property
    def first_error(self) -> InputError | None:
        """The error of the first unused line, for a file of which nothing is left."""
        return self._first

    def report(self) -> tuple[Damage, ...]:
        """Return the damage of the file, what was lost first."""
        return (*self._report_lost(), *self._missing, *self._report_skipped())

    def _report_lost(self) -> Iterator[Damage]:
        for guid, errors in self._lost.items():
            lines = self._lost_lines[guid]
            count = f"{count_of(len(lines), 'line')} could not be used, what they listed is missing"
            why = str(errors[0]).removeprefix(f"{self.path}:")
            yield Damage(DamageKind.LOST, f"{count}; line {why}", tuple(lines), guid)

    def _report_skipped(self) -> Iterator[Damage]:
        for guid, messages in self._silent.items():
            number, text = len(messages), quote_found(messages[0][1].strip(), 120)
            what = f"{count_of(number, 'message')} of the tool that something did not answer: {text}"
            yield Damage(DamageKind.NO_ANSWER, what, tuple(line for line, _ in messages), guid)
        if self._stray:
            number = len(self._stray)
            what = f"{number} line{'s that are' if number > 1 else ' that is'} no part of the dump left out"
            yield Damage(DamageKind.STRAY, what, tuple(self._stray))
        if self._wrapped:
            number = len(self._wrapped)
            what = f"{count_of(number, 'line')} broken by a terminal or a mail, and joined again"
            yield Damage(DamageKind.STRAY, what, tuple(self._wrapped))


def show_lines(lines: Sequence[int]) -> str:
    """Return line numbers in words, neighbouring ones as a range: `lines 1 to 7, 9`."""
    ranges: list[list[int]] = []
    for line in sorted(set(lines)):
        if ranges and line == ranges[-1][1] + 1:
            ranges[-1][1] = line
        else:
            ranges.append([line, line])
    shown = [f"{first} to {last}" if last > first else str(first) for first, last in ranges[:_SHOWN_RANGES]]
    more = ", ..." if len(ranges) > _SHOWN_RANGES else ""
    return f"line{'s' if len(set(lines)) > 1 else ''} {', '.join(shown)}{more}"
