# SPDX-License-Identifier: Apache-2.0
"""Read `ibdiagnet2.far` of ibdiagnet 2: forwarding tables, and groups of ports from which adaptive switches choose.

    File version: 1

    Switch 0x0002c90200f00010
    (text of any form)
    Groups Definition:
      Group  Sub Group  WHBF  Ports
    ---------------------------------
      1       0       0     3, 4, 7,

    LFT Definition:
    PLFT_NUM: 0, top: 0x91
      LID     Static Port    Lid State    Group
    ---------------------------------------------
    0x0001          3           Free          1
    0x0002          9         Static          0

LIDs are hexadecimal, all other numbers decimal. A comma follows each port of a group, with or without blanks between
ports. A group may be empty. States are Static, Free and HBF (hash-based forwarding). If a switch has several tables
(pLFT), only table 0 is read.

Source: the grammar in a public parser of `.far` files. No file of a real fabric was available for testing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof.text.quantities import count_of
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.dump_files import peek_dump, read_dump
from ibprof_converter.fabric.listing import LAST_UNICAST_LID
from ibprof_converter.fabric.node_names import show_some
from ibprof_converter.routing.tables import NO_GROUP, UNREACHABLE, AdaptiveRouting, ForwardingTables, LidState, SubGroup

_STATES = {
    b"static": LidState.STATIC,
    b"free": LidState.FREE,
    b"bounded": LidState.FREE,  # like Free, but the order of packets is kept
    b"hbf": LidState.HASHED,
}

_SWITCH = re.compile(rb"^[ \t]*(?:\w{1,32}:[ \t]*)?Switch\b[^\n]*", re.MULTILINE | re.IGNORECASE)
_GUID = re.compile(rb"\bSwitch[ \t]+0x([0-9A-Fa-f]{1,16})\b", re.IGNORECASE)
_LID_COLUMNS = re.compile(rb"^[ \t|]*LID[ \t|:]+Static ?Port\b.*\bGroup\b.*", re.IGNORECASE | re.MULTILINE)
_GROUP_COLUMNS = re.compile(rb"^[ \t|]*Group[ \t|:]+Sub ?Group\b.*", re.IGNORECASE | re.MULTILINE)
_SIGN = re.compile(rb"^[ \t]*(?:Groups Definition:|LFT Definition:)", re.IGNORECASE | re.MULTILINE)
_PART = re.compile(rb"^[ \t]*(?:(Groups) Definition:|(LFT) Definition:|PLFT_NUM:[ \t]*(\d{1,3})\b)[^\n]*", re.M | re.I)
_COLUMNS = re.compile(rb"(?:" + _LID_COLUMNS.pattern + rb"|" + _GROUP_COLUMNS.pattern + rb")", re.M | re.I)
_ENTRY = re.compile(
    rb"^[ \t|]*0[xX]([0-9A-Fa-f]{1,4})[ \t|]+(\d{1,3})[ \t|]+([A-Za-z]{1,16})[ \t|]+(\d{1,5})[ \t|]*$", re.MULTILINE
)
_GROUP = re.compile(rb"[ \t|]*(\d{1,5})[ \t|]+(\d{1,5})[ \t|]+(\d{1,5})(?:[ \t|]+([\d, \t]*))?")
_MORE_PORTS = re.compile(rb"[ \t]*\d{1,3},[\d, \t]*")
_NOTHING = re.compile(rb"\s*(?:#.*|-{3,}|File version:.*|)\s*", re.IGNORECASE)

_ENTRY_FORM = "`0x<LID> <port> <Static, Free or HBF> <group>`"
_GROUP_FORM = "`<group> <sub-group> <WHBF> <port>, <port>, ..`"


def looks_like_far(head: bytes) -> bool:
    """Return true if the beginning of a file is a `.far`."""
    lower = head.lower()
    if b" definition:" not in lower and b"static" not in lower:  # 100 times as fast as a regular expression
        return False
    return bool(_SWITCH.search(head) and (_SIGN.search(head) or _LID_COLUMNS.search(head)))


def is_far_of(path: str | PathLike[str], switches: Collection[int]) -> bool:
    """Return true if a `.far` contains any of the NODE GUIDs in `switches`; false if the file cannot be read.

    If the beginning of the file contains none of these NODE GUIDs, the whole file is read.
    """
    if _has_any(peek_dump(path), switches):
        return True
    try:
        return _has_any(read_dump(path), switches)
    except InputError:
        return False


def _has_any(data: bytes, switches: Collection[int]) -> bool:
    return any(int(guid, 16) in switches for guid in _GUID.findall(data))


def read_far(path: str | PathLike[str]) -> AdaptiveRouting:
    """Read a `.far`.

    Raises:
        InputError: the file cannot be read, or has no tables.
    """
    return parse_far(path, read_dump(path))


def parse_far_tables(path: str | PathLike[str], data: bytes) -> ForwardingTables:
    """Parse the forwarding tables of a `.far`.

    Raises:
        InputError: the file has no tables.
    """
    return parse_far(path, data).tables


def parse_far(path: str | PathLike[str], data: bytes) -> AdaptiveRouting:
    """Parse a `.far`.

    Raises:
        InputError: the file has no tables. The error names the first unused line, if any.
    """
    reading = _Reading(DamageLog(path), data)
    heads = list(_SWITCH.finditer(data))
    reading.skip_lines(0, heads[0].start() if heads else len(data), None)
    for head, end in zip(heads, [*(each.start() for each in heads), len(data)][1:], strict=True):
        reading.read_switch(head, end)
    if not reading.parts:
        raise reading.log.first_error or InputError(path, None, "a switch's `LFT Definition:` with entries", "none")
    return _assemble(reading)


@dataclass(frozen=True, slots=True)
class _Part:
    """Entries of one switch: its NODE GUID; LID, port, state and group of each entry, int64 [entry] each."""

    guid: int
    lid: npt.NDArray[np.int64]
    port: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64]


@dataclass(slots=True)
class _Reading:
    """Content of the part of a file that has been read.

    Attributes:
        log: unused lines.
        parts: entries of each section of a switch that has entries.
        groups: (switch, group, sub-group) -> WHBF and ports.
        private: switches with private tables (number 1 and above).
        strange: unknown state -> number of entries with this state.
    """

    log: DamageLog
    data: bytes
    parts: list[_Part] = field(default_factory=list)
    groups: dict[tuple[int, int, int], tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    private: set[int] = field(default_factory=set)
    strange: dict[str, int] = field(default_factory=dict)

    def read_switch(self, head: re.Match[bytes], end: int) -> None:
        """Read a switch's section of the file."""
        guid = _GUID.search(head[0])
        if guid is None:
            line = self._line_of(head.start())
            error = InputError(self.log.path, line, "`Switch 0x<NODE GUID>`", quote_found(head[0]))
            self.log.lose(line, error)
            entries = len(_ENTRY.findall(self.data, head.end(), end))
            self.log.miss(f"the switch of {count_of(entries, 'entry')} after a damaged header is unknown")
            return
        switch = int(guid[1], 16)
        sections = list(_PART.finditer(self.data, head.end(), end))
        # Ignore the text between a switch's header and its groups, which has no fixed form.
        before = len(self.parts)
        for section, until in zip(sections, [*(each.start() for each in sections), end][1:], strict=True):
            if section[1]:
                self._read_groups(switch, section.end(), until)
                continue
            number = int(section[3]) if section[3] else 0
            if number:
                self.private.add(switch)
            else:
                self._read_entries(switch, section.end(), until)
        if not sections:
            found = _LID_COLUMNS.search(self.data, head.end(), end)
            if found:
                self._read_entries(switch, found.end(), end)
        if len(self.parts) == before and switch not in self.private:
            self.log.miss("no entries of its forwarding table", switch, [self._line_of(head.start())])

    def skip_lines(self, begin: int, end: int, switch: int | None, form: str = "`Switch 0x<NODE GUID>`") -> None:
        """Note lines from `begin` to `end` as unused, without empty lines, comments and column names."""
        for line, text in self._lines(begin, end):
            if not _is_known(text):
                self.log.skip(line, text, form, switch)

    def _read_groups(self, switch: int, begin: int, end: int) -> None:
        last: tuple[int, int, int] | None = None
        for line, text in self._lines(begin, end):
            if _is_known(text):
                continue
            row = _GROUP.fullmatch(text)
            if row is None and last is not None and _MORE_PORTS.fullmatch(text):
                weight, ports = self.groups[last]
                more = _read_ports(text)
                if more is not None:
                    self.groups[last] = weight, (*ports, *more)
                    continue
            ports_here = _read_ports(row[4] or b"") if row else None
            if row is None or ports_here is None:
                self._lose(line, text, switch, _GROUP_FORM)
                continue
            last = switch, int(row[1]), int(row[2])
            weight, before = self.groups.get(last, (0, ()))
            self.groups[last] = max(weight, int(row[3])), (*before, *ports_here)

    def _read_entries(self, switch: int, begin: int, end: int) -> None:
        piece = self.data[begin:end]
        rows = _ENTRY.findall(piece)
        if any(not _is_known(line) for line in _ENTRY.sub(b"", piece).split(b"\n")):
            self._report_other_lines(switch, begin, end)
        if not rows:
            return
        lids, ports, states, groups = zip(*rows, strict=True)
        state = np.array([self._state_of(each) for each in states], np.int64)
        part = _Part(
            switch,
            np.array([int(each, 16) for each in lids], np.int64),
            np.array(ports, np.int64),
            state,
            np.where(state == LidState.STATIC, NO_GROUP, np.array(groups, np.int64)),
        )
        wrong = (part.lid == 0) | (part.lid > LAST_UNICAST_LID) | (part.port > UNREACHABLE)
        if wrong.any():
            self._report_wrong(switch, begin, end)
            kept = ~wrong
            part = _Part(switch, part.lid[kept], part.port[kept], part.state[kept], part.group[kept])
        if len(part.lid):
            self.parts.append(part)

    def _state_of(self, word: bytes) -> LidState:
        state = _STATES.get(word.lower())
        if state is None:
            name = word.decode("ascii")
            self.strange[name] = self.strange.get(name, 0) + 1
            return LidState.STATIC
        return state

    def _report_other_lines(self, switch: int, begin: int, end: int) -> None:
        for line, text in self._lines(begin, end):
            if _ENTRY.fullmatch(text) or _is_known(text):
                continue
            if text.lstrip()[:2].lower() == b"0x":
                self._lose(line, text, switch, _ENTRY_FORM)
            else:
                self.log.skip(line, text, _ENTRY_FORM, switch)

    def _report_wrong(self, switch: int, begin: int, end: int) -> None:
        for line, text in self._lines(begin, end):
            row = _ENTRY.fullmatch(text)
            if row and (not 0 < int(row[1], 16) <= LAST_UNICAST_LID or int(row[2]) > UNREACHABLE):
                self._lose(line, text, switch, f"LIDs from 0x0001 to {LAST_UNICAST_LID:#06x}, ports up to 255")

    def _lose(self, line: int, text: bytes, switch: int, expected: str) -> None:
        self.log.lose(line, InputError(self.log.path, line, expected, quote_found(text)), switch)

    def _lines(self, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
        first = self._line_of(begin)
        yield from enumerate(self.data[begin:end].removesuffix(b"\n").split(b"\n"), first)

    def _line_of(self, position: int) -> int:
        return self.data.count(b"\n", 0, position) + 1


def _is_known(line: bytes) -> bool:
    """Return true if a line is empty, or has only a comment, dashes or column names."""
    return bool(_NOTHING.fullmatch(line) or _COLUMNS.match(line))


def _read_ports(text: bytes) -> tuple[int, ...] | None:
    """Return the ports of a group; None if any number is not a port number."""
    numbers = [int(each) for each in text.replace(b",", b" ").split()]
    return tuple(numbers) if all(0 < number < UNREACHABLE for number in numbers) else None


def _assemble(reading: _Reading) -> AdaptiveRouting:
    path = fspath(reading.log.path)
    guids = np.array([part.guid for part in reading.parts], np.uint64)
    switch_guid, row_of_part = np.unique(guids, return_inverse=True)
    lid, port, state, group = (
        np.concatenate([getattr(part, name) for part in reading.parts]) for name in ("lid", "port", "state", "group")
    )
    row = np.repeat(row_of_part, [len(part.lid) for part in reading.parts])
    shape = len(switch_guid), int(lid.max()) + 1
    table = np.full(shape, UNREACHABLE, np.uint8)
    states = np.zeros(shape, np.uint8)
    choice = np.full(shape, NO_GROUP, np.int32)
    table[row, lid], states[row, lid], choice[row, lid] = port, state, group
    differs = (table[row, lid] != port) | (states[row, lid] != state) | (choice[row, lid] != group)
    for switch in np.unique(row[differs]).tolist():
        twice = np.unique(lid[differs & (row == switch)])
        table[switch, twice], states[switch, twice], choice[switch, twice] = UNREACHABLE, LidState.STATIC, NO_GROUP
        shown = show_some([f"{each:#06x}" for each in twice.tolist()])
        what = (
            f"{len(twice)} LID{'s have' if len(twice) > 1 else ' has'} different entries, which are not used: {shown}"
        )
        reading.log.miss(what, int(switch_guid[switch]))
    groups = _join_sub_groups(reading.groups)
    warnings = [*_list_warnings(reading, groups), *_leave_undefined(switch_guid, states, choice, groups)]
    private = len(reading.private)
    remarks = (f"{count_of(private, 'switch')} with private tables (PLFT); only table 0 is used",) if private else ()
    tables = ForwardingTables(path, switch_guid, table, remarks, reading.log.report())
    return AdaptiveRouting(path, tables, states, choice, groups, tuple(warnings), tables.damage)


def _join_sub_groups(
    rows: dict[tuple[int, int, int], tuple[int, tuple[int, ...]]],
) -> dict[tuple[int, int], tuple[SubGroup, ...]]:
    groups: dict[tuple[int, int], tuple[SubGroup, ...]] = {}
    for (switch, group, number), (weight, ports) in sorted(rows.items()):
        sub_group = SubGroup(number, weight, tuple(sorted(set(ports))))
        groups[switch, group] = (*groups.get((switch, group), ()), sub_group)
    return groups


def _list_warnings(reading: _Reading, groups: dict[tuple[int, int], tuple[SubGroup, ...]]) -> Iterator[str]:
    if weighted := sum(any(each.weight for each in parts) for parts in groups.values()):
        yield f"{count_of(weighted, 'group')} with weights for hash-based forwarding (WHBF), which are not used"
    if several := sum(sum(bool(each.ports) for each in parts) > 1 for parts in groups.values()):
        yield f"{count_of(several, 'group')} with ports in several sub-groups; only the first sub-group of each is used"
    for name, entries in reading.strange.items():
        yield f"{count_of(entries, 'entry')} with the unknown state {name!r}; ibprof uses the static ports"


def _leave_undefined(
    switch_guid: npt.NDArray[np.uint64],
    states: npt.NDArray[np.uint8],
    choice: npt.NDArray[np.int32],
    groups: dict[tuple[int, int], tuple[SubGroup, ...]],
) -> Sequence[str]:
    """Make an entry static if its group is undefined or has no ports.

    Return a warning with the number of these entries, or an empty list.
    """
    undefined, switches = 0, 0
    for row, guid in enumerate(switch_guid.tolist()):
        named = np.unique(choice[row])
        empty = [
            number
            for number in named.tolist()
            if number != NO_GROUP and not any(each.ports for each in groups.get((guid, number), ()))
        ]
        if empty:
            at = np.isin(choice[row], empty)
            undefined += int(at.sum())
            switches += 1
            states[row, at], choice[row, at] = LidState.STATIC, NO_GROUP
    if not undefined:
        return ()
    entries = f"{count_of(undefined, 'entry')} of {count_of(switches, 'switch')}"
    return (f"groups without ports in {entries}; ibprof uses the static ports",)
