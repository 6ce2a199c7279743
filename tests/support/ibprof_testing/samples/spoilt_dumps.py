# SPDX-License-Identifier: Apache-2.0
"""Dumps of a fabric in every format that ibprof reads. One file is cut, zeroed or doubled, or has holes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_testing.lab.db_csv import write_db_csv
from ibprof_testing.lab.net_dump import label_as_cage, write_net_dump
from ibprof_testing.samples.fabrics import (
    DUMP_FTS,
    IBDIAGNET,
    IBNETDISCOVER,
    LFTS_DUMP,
    OPENSM,
    PORT_LIST,
    load_sample,
    read_sample_bytes,
)

DB_CSV, NET_DUMP = "ibdiagnet2.db_csv", "ibdiagnet2.net_dump"
LINK_FILES = (OPENSM, IBDIAGNET, IBNETDISCOVER, PORT_LIST, DB_CSV, NET_DUMP)
OPENSM_TABLES = "opensm.fdbs"
TABLE_FILES = (OPENSM_TABLES, "ibdiagnet.fdbs", LFTS_DUMP, DUMP_FTS)

LISTED_ONCE = (IBDIAGNET, NET_DUMP)
"""Formats with a single line for a host's link.

If a host's only line is missing, only forwarding tables show the host.
"""

WHOLE_LINES = ("cut after a line", "without three lines")
"""Kinds of damage after which all lines are valid."""

MANY_PLACES = tuple((place + 0.5) / 12 for place in range(12))

Spoil = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Dumps:
    """Files of a fabric (name -> contents), and descriptions of its nodes. The first file lists the links."""

    files: Mapping[str, bytes]
    nodes: tuple[str, ...]

    def write(self, folder: Path) -> Path:
        """Write the files, and return the list of links."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
        return folder / next(iter(self.files))

    def spoil(self, name: str, spoil: Spoil) -> Dumps:
        """Return the files after `spoil` has changed the file `name`."""
        return replace(self, files={**self.files, name: spoil(self.files[name])})


def dump_sample(sample: str, links: str, tables: str | None) -> Dumps:
    """Return a captured fabric's links in the format `links`, and, if not None, tables in the format `tables`."""
    fabric = load_sample(sample, OPENSM).fabric
    written: dict[str, Callable[[Fabric], str]] = {
        DB_CSV: write_db_csv,
        NET_DUMP: partial(write_net_dump, label=label_as_cage),
    }
    text = written[links](fabric).encode() if links in written else read_sample_bytes(sample, links)
    files = {links: text} | ({tables: read_sample_bytes(sample, tables)} if tables else {})
    return Dumps(files, fabric.node_name)


def lacks_whole_links(dumps: Dumps, spoilt: Dumps) -> bool:
    """Return whether a dump of `ibnetdiscover -p` without tables lacks both lines of each missing link.

    The dump then shows neither the missing links, nor hosts that have no other links.
    """
    if tuple(dumps.files) != (PORT_LIST,):
        return False
    lost = Counter(dumps.files[PORT_LIST].splitlines()) - Counter(spoilt.files[PORT_LIST].splitlines())
    links = Counter(frozenset(re.findall(rb"([0-9]+) (0x[0-9a-f]{16})", line)) for line in lost.elements())
    return bool(links) and all(len(ends) == 2 and lines == 2 for ends, lines in links.items())


def _at_line(part: float, text: bytes) -> int:
    """Return the beginning of the first line after a given fraction of a text."""
    return text.index(b"\n", int(part * len(text))) + 1


def _cut(part: float, text: bytes) -> bytes:
    return text[: int(part * len(text))].rstrip(b"\n")[:-1]


def _cut_after_line(part: float, text: bytes) -> bytes:
    return text[: _at_line(part, text)]


def _cut_out(part: float, text: bytes) -> bytes:
    return text[: int(part * len(text))] + text[int(part * len(text)) + 150 :]


def _remove_lines(part: float, text: bytes) -> bytes:
    start = _at_line(part, text)
    return text[:start] + text[start:].split(b"\n", 3)[-1]


def _join_lines(part: float, text: bytes) -> bytes:
    start = _at_line(part, text)
    return text[: start - 1] + b" " + text[start:]


def _zero(part: float, text: bytes) -> bytes:
    at = int(part * len(text))
    return text[: max(at - 150, 0)] + bytes(150) + text[at:]


def spoil_text(parts: tuple[float, ...] = (0.3, 0.6, 0.9, 0.99)) -> Iterator[tuple[str, Spoil]]:
    """Yield (kind, function) of damage at each position in `parts` (fractions of a text), then to the whole text."""
    for part in parts:
        # After `cut`, the text ends within a line.
        yield "cut", partial(_cut, part)
        yield "cut after a line", partial(_cut_after_line, part)
        yield "with a hole", partial(_cut_out, part)
        yield "without three lines", partial(_remove_lines, part)
        yield "with two lines in one", partial(_join_lines, part)
        yield "with zeroed bytes", partial(_zero, part)
    yield "with lines of DOS", lambda text: text.replace(b"\n", b"\r\n")
    yield "in UTF-16", lambda text: text.decode().encode("utf-16")
    yield "empty", lambda _: b""
    yield "written twice", lambda text: text + text
