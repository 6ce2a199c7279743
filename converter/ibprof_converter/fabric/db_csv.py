# SPDX-License-Identifier: Apache-2.0
"""Parse `ibdiagnet2.db_csv` of ibdiagnet 2: tables in one file, each between `START_NAME` and `END_NAME`.

    START_NODES
    NodeDesc,NumPorts,NodeType,ClassVersion,BaseVersion,SystemImageGUID,NodeGUID,PortGUID,DeviceID,...
    "leaf 1",36,2,1,1,0x0002c90200f00010,0x0002c90200f00010,0x0002c90200f00010,48438,...
    END_NODES

Newer versions of ibdiagnet add columns, so columns are found by name. The sections NODES, PORTS and LINKS describe the
fabric.

Source: public excerpts and parsers of such files. No dump of a real fabric was available for testing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike

from ibprof.errors import InputError, quote_found
from ibprof.profile.profile_data import PORT_ACTIVE
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.dump_files import decode_name
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.fabric.listing import NOT_GIVEN, End, LinkRow, Listing, list_rows
from ibprof_converter.fabric.rates import data_rate_gbps, lanes_of_code, speed_of_code

_SECTION = re.compile(rb"^START_[A-Z0-9_]+\r?$", re.MULTILINE)
# Other files also contain words like START_VERSION. In a `.db_csv`, a line with column names follows.
_SIGN = re.compile(rb"^START_(?:(?:NODES|PORTS|LINKS)\r?$|[A-Z0-9_]+\r?\n[A-Za-z][A-Za-z0-9_ ]*,)", re.MULTILINE)
_LINKS = re.compile(rb"^START_LINKS\s*$", re.MULTILINE)
_DESCRIPTION = "nodedesc"
_KINDS = {1: NodeKind.CA, 2: NodeKind.SWITCH, 3: NodeKind.ROUTER}


def looks_like_db_csv(head: bytes) -> bool:
    """Return true if the beginning of a file has a section of a `.db_csv`."""
    return _SIGN.search(head) is not None


@dataclass(frozen=True, slots=True)
class Record:
    """A row of a section.

    Attributes:
        fields: column name in lower case -> text.
    """

    path: str | PathLike[str]
    line: int
    fields: Mapping[str, str]

    def number(self, column: str, limit: int) -> int:
        """Return the number in a column, which is decimal, or hexadecimal after `0x`.

        Raises:
            InputError: the column is missing, or its text is no number below `limit`.
        """
        text = self.fields.get(column.lower())
        if text is None:
            raise InputError(self.path, self.line, f"a column {column}", "none")
        value = _parse_number(text)
        if value is None or value >= limit:
            raise InputError(self.path, self.line, f"{column}, a number below {limit}", quote_found(text))
        return value

    def has(self, column: str) -> bool:
        """Return true if the row has a number in the column; `N/A` is no number."""
        return _parse_number(self.fields.get(column.lower(), "")) is not None


def read_section(path: str | PathLike[str], data: bytes, name: str, log: DamageLog | None = None) -> Iterator[Record]:
    """Yield the rows of a section; none if the section is missing.

    Args:
        log: the log for unusable rows. If None: the first unusable row is an error.

    Raises:
        InputError: without `log`, a row has more or fewer fields than the header, or the section has no end.
    """
    for start in re.finditer(rb"^START_" + name.encode() + rb"\s*$", data, re.MULTILINE):
        first = data.count(b"\n", 0, start.start()) + 1
        end = data.find(b"\nEND_" + name.encode(), start.start())
        if end < 0:
            _lose(log, first, InputError(path, first, f"END_{name} after it", "none"))
            next_start = _SECTION.search(data, start.end())
            end = next_start.start() - 1 if next_start else len(data)
        header: list[str] | None = None
        for line, text in enumerate(data[start.start() : end].split(b"\n"), first):
            if text.startswith(b"START_") or not text.strip():
                continue
            if header is None:
                header = [column.strip().lower() for column in text.decode("utf-8", "replace").split(",")]
                continue
            fields = _split_fields(text.strip(), header)
            if fields is None:
                expected = f"{len(header)} fields, as in the header of {name}"
                _lose(log, line, InputError(path, line, expected, quote_found(text)))
                continue
            yield Record(path, line, dict(zip(header, fields, strict=True)))


def _lose(log: DamageLog | None, line: int, error: InputError) -> None:
    if log is None:
        raise error
    log.lose(line, error)


def parse_db_csv(path: str | PathLike[str], data: bytes) -> Listing:
    """Return the links of a `.db_csv`; each link is listed from both ends.

    Raises:
        InputError: the file has no usable link.
    """
    log = DamageLog(path)
    nodes: dict[int, Record] = {}
    ports: dict[tuple[int, int], Record] = {}
    for record in read_section(path, data, "NODES", log):
        with _losing(log, record):
            nodes[record.number("NodeGUID", 1 << 64)] = record
    for record in read_section(path, data, "PORTS", log):
        with _losing(log, record):
            ports[record.number("NodeGuid", 1 << 64), record.number("PortNum", 256)] = record
    for section, found in (("NODES", nodes), ("PORTS", ports)):
        if not found:
            raise log.first_error or InputError(path, None, f"a section {section} with rows", "none")
    rows: list[LinkRow] = []
    for record in read_section(path, data, "LINKS", log):
        with _losing(log, record):
            rows += _read_link(record, nodes, ports)
    if not rows and not has_links_section(data):
        raise InputError(
            path, None, "a section LINKS", "none; use the .lst, .ibnetdiscover or .net_dump of the same run for links"
        )
    linked = {(row.a.node_guid, row.a.port) for row in rows}
    for key, record in ports.items():
        with _losing(log, record):
            if key[1] and key not in linked and _is_active(record):
                log.miss("an active port has no link in LINKS", key[0], [record.line])
    return list_rows(rows, log)


def has_links_section(data: bytes) -> bool:
    """Return true if a `.db_csv` has the section LINKS, which some runs of ibdiagnet leave out."""
    return _LINKS.search(data) is not None


@contextmanager
def _losing(log: DamageLog, record: Record) -> Iterator[None]:
    """Catch the error of an unusable row, and note the row as lost."""
    try:
        yield
    except InputError as error:
        log.lose(record.line, error)


def _read_link(
    record: Record, nodes: Mapping[int, Record], ports: Mapping[tuple[int, int], Record]
) -> tuple[LinkRow, LinkRow]:
    """Return a row for each end of a link: width and speed of the two ends can differ."""
    ends = []
    for number in "12":
        key = record.number(f"NodeGuid{number}", 1 << 64), record.number(f"PortNum{number}", 256)
        if key[0] not in nodes or key not in ports:
            table = "NODES" if key[0] not in nodes else "PORTS"
            raise InputError(record.path, record.line, f"a port that is in {table}", f"{key[0]:#018x} port {key[1]}")
        ends.append((_describe(nodes[key[0]], ports, key), ports[key]))
    (a, a_port), (b, b_port) = ends
    known = [port.number("PortState", 8) for port in (a_port, b_port) if port.has("PortState")]
    active = all(state == PORT_ACTIVE for state in known)
    a_rate, b_rate = _read_rate(a_port), _read_rate(b_port)
    return LinkRow(record.line, a, b, active, *a_rate), LinkRow(record.line, b, a, active, *b_rate)


def _is_active(port: Record) -> bool:
    return port.has("PortState") and port.number("PortState", 8) == PORT_ACTIVE


def _read_rate(port: Record) -> tuple[int, float]:
    lanes = lanes_of_code(port.number("LinkWidthActv", 256))
    return lanes, data_rate_gbps(lanes, speed_of_code(port.number("LinkSpeedActv", 1 << 32)))


def _describe(node: Record, ports: Mapping[tuple[int, int], Record], key: tuple[int, int]) -> End:
    kind = _KINDS.get(node.number("NodeType", 256))
    if kind is None:
        raise InputError(node.path, node.line, "NodeType 1, 2 or 3", quote_found(node.fields["nodetype"]))
    # The LID of a switch is the LID of its port 0.
    addressed = ports.get((key[0], 0), ports[key]) if kind == NodeKind.SWITCH else ports[key]
    port_guid = addressed.number("PortGuid", 1 << 64)
    return End(
        kind=kind,
        ports=node.number("NumPorts", 256),
        system_guid=node.number("SystemImageGUID", 1 << 64) if node.has("SystemImageGUID") else 0,
        node_guid=key[0],
        port_guid=port_guid,
        name=node.fields.get(_DESCRIPTION, ""),
        lid=addressed.number("LID", 1 << 16) if addressed.has("LID") else 0,
        port=key[1],
        lmc=addressed.number("LMC", 8) if addressed.has("LMC") else NOT_GIVEN,
    )


def _split_fields(text: bytes, header: list[str]) -> list[str] | None:
    """Return the fields of a row; None if there are too few or too many. Surplus commas belong to the description."""
    parts = text.split(b",")
    spare = len(parts) - len(header)
    if spare and _DESCRIPTION in header and spare > 0:
        at = header.index(_DESCRIPTION)
        parts[at : at + spare + 1] = [b",".join(parts[at : at + spare + 1])]
    if len(parts) != len(header):
        return None
    return [_unquote(decode_name(part)) for part in parts]


def _unquote(text: str) -> str:
    quoted = len(text) >= 2 and text[0] == text[-1] == '"'
    return text[1:-1] if quoted else text.strip()


def _parse_number(text: str) -> int | None:
    text = text.strip()
    if not text.isascii() or not text.isalnum() or len(text) > 24:
        return None
    try:
        return int(text, 16 if text[:2].lower() == "0x" else 10)
    except ValueError:
        return None
