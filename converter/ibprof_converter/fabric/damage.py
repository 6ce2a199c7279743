# SPDX-License-Identifier: Apache-2.0
"""Collect unusable lines of a dump, and describe the lost links or routes.

Dumps may be copied from terminals, cut, or mixed with messages of tools. Readers use the valid lines, and note all
other lines as damage. Each output mentions the damage, and `--check` lists it as findings.
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
    """Kinds of unused or missing lines, by what is lost."""

    STRAY = "stray"
    """The lines are from a terminal or another program: nothing is lost."""
    NO_ANSWER = "no answer"
    """The dumping tool reports nodes that did not answer: a node, or a part of its table, may be missing."""
    LOST = "lost"
    """Lines of links or routes are damaged or missing: these links or routes are lost."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Unused or missing lines of a dump.

    Attributes:
        kind: the kind of loss.
        what: description of the loss, with numbers.
        lines: line numbers, from 1; empty for missing lines.
        node_guid: NODE GUID of the described switch or adapter; None if unknown.
        file: name of the damaged file, if several files describe one fabric; else empty.
    """

    kind: DamageKind
    what: str
    lines: tuple[int, ...] = ()
    node_guid: int | None = None
    file: str = ""

    @property
    def place(self) -> str:
        """Text with line numbers and file of the damage; empty if both are unknown."""
        return " of ".join(filter(None, (show_lines(self.lines) if self.lines else "", self.file)))

    @property
    def text(self) -> str:
        """Text with the damage, its lines, file and GUID."""
        return self.describe(0)

    def describe(self, more: int) -> str:
        """Return text with damage, lines, file and GUID; `more` is the number of other places with equal damage."""
        of = f"{self.node_guid:#018x}: " if self.node_guid is not None else ""
        places = ", ".join(filter(None, (self.place, f"and {more} more alike" if more else "")))
        return f"{of}{self.what}{f' ({places})' if places else ''}"


def describe_damages(damages: Sequence[Damage]) -> Iterator[str]:
    """Yield a sentence for each group of equal damage: the first place, and the number of other places."""
    alike: dict[tuple[DamageKind, str], list[Damage]] = {}
    for damage in damages:
        alike.setdefault((damage.kind, damage.what), []).append(damage)
    for group in alike.values():
        yield group[0].describe(len(group) - 1)


@dataclass(slots=True)
class DamageLog:
    """Collects the unused lines of one file while the file is parsed."""

    path: str | PathLike[str]
    _stray: list[int] = field(default_factory=list)
    _wrapped: list[int] = field(default_factory=list)
    _silent: dict[int | None, list[tuple[int, bytes]]] = field(default_factory=dict)
    _lost: dict[int | None, list[InputError]] = field(default_factory=dict)
    _lost_lines: dict[int | None, list[int]] = field(default_factory=dict)
    _missing: list[Damage] = field(default_factory=list)
    _first: InputError | None = None

    def skip(self, line: int, text: bytes, expected: str, node_guid: int | None = None) -> None:
        """Note a line in another format, such as the tool's message that a node did not answer."""
        if _TOOL_MESSAGE.search(text) and not _PROGRESS.match(text):
            self._silent.setdefault(node_guid, []).append((line, text))
        else:
            self._stray.append(line)
        self._keep_first(line, expected, text)

    def join(self, line: int) -> None:
        """Note that a line was joined to the line before: a terminal or a mail had broken this line."""
        self._wrapped.append(line)

    def lose(self, line: int, error: InputError, node_guid: int | None = None) -> None:
        """Note an unusable line of a link or a route."""
        self._lost.setdefault(node_guid, []).append(error)
        self._lost_lines.setdefault(node_guid, []).append(line)
        self._first = self._first or error

    def end_within(self, line: int, text: bytes, node_guid: int | None = None) -> None:
        """Note that the file ends within a line: the rest of this line, and all later lines, are missing."""
        what = f"the dump ends within a line, so this line and all later lines are missing: {quote_found(text)}"
        self.miss(what, node_guid, [line])
        self._keep_first(line, "the rest of the line", text)

    def miss(self, what: str, node_guid: int | None = None, lines: Sequence[int] = ()) -> None:
        """Note missing data, or lines that contradict each other."""
        self._missing.append(Damage(DamageKind.LOST, what, tuple(lines), node_guid))

    def _keep_first(self, line: int, expected: str, text: bytes) -> None:
        self._first = self._first or InputError(self.path, line, expected, quote_found(text))

    @property
    def first_error(self) -> InputError | None:
        """Error of the first unused line, for files without a valid line; None without unused lines."""
        return self._first

    def report(self) -> tuple[Damage, ...]:
        """Return the damage of the file: first lost lines, then missing data, then skipped lines."""
        return (*self._report_lost(), *self._missing, *self._report_skipped())

    def _report_lost(self) -> Iterator[Damage]:
        for guid, errors in self._lost.items():
            lines = self._lost_lines[guid]
            count = f"{count_of(len(lines), 'line')} could not be used, so links or routes are missing"
            why = str(errors[0]).removeprefix(f"{self.path}:")
            yield Damage(DamageKind.LOST, f"{count}; line {why}", tuple(lines), guid)

    def _report_skipped(self) -> Iterator[Damage]:
        for guid, messages in self._silent.items():
            number, text = len(messages), quote_found(messages[0][1].strip(), 120)
            what = f"{count_of(number, 'message')} of the tool about missing answers: {text}"
            yield Damage(DamageKind.NO_ANSWER, what, tuple(line for line, _ in messages), guid)
        if self._stray:
            number = len(self._stray)
            what = f"{count_of(number, 'line')} left out: {'they are' if number > 1 else 'it is'} no part of the dump"
            yield Damage(DamageKind.STRAY, what, tuple(self._stray))
        if self._wrapped:
            number = len(self._wrapped)
            what = f"joined {count_of(number, 'line')} that a terminal or a mail program had broken"
            yield Damage(DamageKind.STRAY, what, tuple(self._wrapped))


def show_lines(lines: Sequence[int]) -> str:
    """Return line numbers as text, with consecutive numbers as a range: `lines 1 to 7, 9`."""
    ranges: list[list[int]] = []
    for line in sorted(set(lines)):
        if ranges and line == ranges[-1][1] + 1:
            ranges[-1][1] = line
        else:
            ranges.append([line, line])
    shown = [f"{first} to {last}" if last > first else str(first) for first, last in ranges[:_SHOWN_RANGES]]
    more = ", ..." if len(ranges) > _SHOWN_RANGES else ""
    return f"line{'s' if len(set(lines)) > 1 else ''} {', '.join(shown)}{more}"
