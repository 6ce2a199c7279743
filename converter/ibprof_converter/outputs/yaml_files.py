# SPDX-License-Identifier: Apache-2.0
"""Write nodes, links and loads as YAML: one document for any viewer, or a folder of tables for Boxfish.

The folder has a meta file, a table of nodes and a table of links. A table has two YAML documents: the run's key, then
the names and types of the columns. After these documents and a line `...`, each row has numbers with blanks between
them. Each link direction has a row, from the node at (sx, sy) to the node at (tx, ty).

Source: LLNL/boxfish, docs/userguide/fileformat.rst.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

import yaml

from ibprof_converter.outputs.rows import Row, Value

META = "meta.yaml"
NODES = "nodes.yaml"
LINKS = "links.yaml"

_KEY = "IBPROF"
_LONGEST_NAME = 64
_KINDS = {"switch": 0, "CA": 1, "router": 2}

_NODE_TYPES = (
    ("nodeid", "int32"), ("name", f"S{_LONGEST_NAME}"), ("rail", "int32"), ("kind", "int32"), ("level", "int32"),
    ("x", "float64"), ("y", "float64"), ("ranks", "int32"),
)  # fmt: skip
_LINK_TYPES = (
    ("linkid", "int32"), ("rail", "int32"), ("source", "int32"), ("sport", "int32"), ("target", "int32"),
    ("tport", "int32"), ("sx", "float64"), ("sy", "float64"), ("tx", "float64"), ("ty", "float64"), ("gbps", "float64"),
    ("code_region", "int32"), ("operation", "int32"), ("job", "int32"), ("site", "int32"), ("bytes", "int64"),
)  # fmt: skip


class _Line(dict[str, object]):
    """A row that is written on one line."""


_Dumper: type[yaml.SafeDumper] | type[yaml.CSafeDumper] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The C dumper is ten times as fast as the Python dumper, but missing if PyYAML was built without libyaml."""

_Dumper.add_representer(
    _Line, lambda dumper, row: dumper.represent_mapping("tag:yaml.org,2002:map", row.items(), flow_style=True)
)

# YAML can represent only UTF-8: as in all outputs, other bytes of a path become `\\udcNN`.
_Dumper.add_representer(str, lambda dumper, text: dumper.represent_str(text.encode(errors="backslashreplace").decode()))


def write_yaml(file: TextIO, about: Mapping[str, object], nodes: Iterable[Row], links: Iterable[Row]) -> None:
    """Write a YAML mapping with `about`, `nodes` and `links`; rows have the columns of nodes.csv and links.csv.

    Args:
        about: names and values of facts on the loads.
        nodes, links: rows from `outputs.rows`.
    """
    document = {"about": dict(about), "nodes": [_Line(row) for row in nodes], "links": [_Line(row) for row in links]}
    yaml.dump(document, file, Dumper=_Dumper, sort_keys=False, width=1 << 16, allow_unicode=True)


def write_boxfish(folder: Path, about: Mapping[str, object], nodes: Iterable[Row], links: Iterable[Row]) -> None:
    """Write the folder of tables for Boxfish.

    Args:
        folder: the output folder, created if missing.
        nodes, links: rows of nodes.csv and links.csv.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number: dict[tuple[Value, Value], int] = {}
    node_lines = []
    for row in nodes:
        number[row["rail"], row["guid"]] = len(number)
        ranks = row["ranks"] if isinstance(row["ranks"], list) else []
        node_lines.append((
            number[row["rail"], row["guid"]], _word(row["name"]), row["rail"], _KINDS[str(row["kind"])], row["level"],
            row["x"], row["y"], len(ranks),
        ))  # fmt: skip
    codes: dict[str, dict[str, int]] = {"regions": {}, "operations": {}, "jobs": {}, "sites": {}}
    ends: dict[tuple[int, Value], int] = {}
    link_lines = []
    for row in links:
        coded = [
            codes[table].setdefault(str(row.get(column, "*")), len(codes[table]))
            for table, column in (
                ("regions", "region"),
                ("operations", "operation"),
                ("jobs", "job"),
                ("sites", "site"),
            )
        ]
        for near, far in (("a", "b"), ("b", "a")):
            source, target = (number[row["rail"], row[f"{end}_guid"]] for end in (near, far))
            end = ends.setdefault((source, row[f"{near}_port"]), len(ends))
            link_lines.append((
                end, row["rail"], source, row[f"{near}_port"], target, row[f"{far}_port"], row[f"{near}_x"],
                row[f"{near}_y"], row[f"{far}_x"], row[f"{far}_y"], "nan" if row["gbps"] is None else row["gbps"],
                *coded, row[f"{near}_bytes"],
            ))  # fmt: skip
    _write_table(folder / NODES, _NODE_TYPES, node_lines)
    _write_table(folder / LINKS, _LINK_TYPES, link_lines)
    _write_meta(folder / META, about, len(number), codes)


def _write_table(path: Path, types: Sequence[tuple[str, str]], lines: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.write(f"---\nkey: {_KEY}\n---\n")
        file.writelines(f"- [{name}, {kind}]\n" for name, kind in types)
        file.write("...\n")
        file.writelines(" ".join(map(str, line)) + "\n" for line in lines)


def _write_meta(path: Path, about: Mapping[str, object], nodes: int, codes: dict[str, dict[str, int]]) -> None:
    coordinates = ("x", "y")
    run = {
        "key": _KEY,
        "author": "ibprof",
        "hardware": {
            "network": "fat tree",
            "nodes": nodes,
            "coords": list(coordinates),
            "coords_table": NODES,
            "source_coords": {name: f"s{name}" for name in coordinates},
            "destination_coords": {name: f"t{name}" for name in coordinates},
            "link_coords_table": LINKS,
        },
        "application": {name: {code: text for text, code in table.items()} for name, table in codes.items()},
        "ibprof": {name: _plain(value) for name, value in about.items()},
    }
    node = {"domain": "HW", "type": "NODE", "field": "nodeid"}
    link = {"domain": "HW", "type": "LINK", "field": "linkid"}
    tables = [
        {"filetype": "table", "filename": name} | of | {"flags": 0} for name, of in ((NODES, node), (LINKS, link))
    ]
    projection = {
        "filetype": "projection",
        "type": "node link",
        "node_policy": "Source",
        "link_policy": "Source",
        "subdomain": [node, link],
        "flags": 0,
    }
    with path.open("w", encoding="utf-8") as file:
        yaml.safe_dump_all([run, *tables, projection], file, sort_keys=False, explicit_start=True, explicit_end=False)
        file.write("...\n")


def _word(value: Value) -> str:
    """Return a name as one ASCII word, because blanks separate columns; `-` for an empty name."""
    text = "_".join(str(value).split()).encode("ascii", "replace").decode().replace("#", "_")
    return "".join(letter if letter.isprintable() else "_" for letter in text)[:_LONGEST_NAME] or "-"


def _plain(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return [_plain(item) for item in value] if isinstance(value, list) else value
