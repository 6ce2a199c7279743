# SPDX-License-Identifier: Apache-2.0
"""Link loads as files: CSV, Parquet, YAML, and graphs in GraphML, Graphviz DOT and TGF.

YAML is one document for any viewer, or a folder of tables for Boxfish. The folder has the run's meta file, and one
table each for nodes and links. A table is a YAML document with the run's key, a second one with the columns' names and
types, a line `...`, then rows of numbers separated by blanks. Each link has two rows, one for each end: the bytes that
the node at (sx, sy) sends to the node at (tx, ty).

Source: LLNL/boxfish, docs/userguide/fileformat.rst.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import yaml

from ibprof.errors import MissingToolError
from ibprof_converter.outputs.rows import Row, Table, Value

if TYPE_CHECKING:
    import networkx as nx

_SHARED = ("gbps", "region", "operation", "site", "job")
_ADDITIONAL = ("shared", "most", "counted")


class Edge(NamedTuple):
    """The bytes of one link direction in a region, operation and job.

    Attributes:
        source, destination: keys of the two nodes.
        attributes: port, peer_port, bytes, and the link's further columns.
    """

    source: str
    destination: str
    attributes: dict[str, Value]


def node_key(rail: Value, guid: Value) -> str:
    """Return a node's key; it has the rail, since adapters of several rails may share a GUID."""
    return f"{rail}:{guid}"


def list_edges(links: Iterable[Row]) -> Iterator[Edge]:
    """Yield both directions of each row of links.csv, without empty columns."""
    for row in links:
        for near, far in (("a", "b"), ("b", "a")):
            attributes: dict[str, Value] = {
                "port": row[f"{near}_port"],
                "peer_port": row[f"{far}_port"],
                "bytes": row[f"{near}_bytes"],
            }
            attributes |= {name: row[name] for name in _SHARED if row.get(name) is not None}
            for name in _ADDITIONAL:
                if row.get(f"{near}_{name}") is not None:
                    attributes[name] = row[f"{near}_{name}"]
            keys = node_key(row["rail"], row[f"{near}_guid"]), node_key(row["rail"], row[f"{far}_guid"])
            yield Edge(*keys, attributes)


def to_networkx(nodes: Iterable[Row], links: Iterable[Row]) -> nx.MultiDiGraph:
    """Return a graph whose nodes are `RAIL:GUID` with the columns of nodes.csv, with an edge for each link direction.

    Lists, which GraphML lacks, become text separated by blanks.
    """
    import networkx as nx  # noqa: PLC0415  (slow to import)

    graph = nx.MultiDiGraph()
    for row in nodes:
        flat = {name: " ".join(map(str, value)) if isinstance(value, list) else value for name, value in row.items()}
        graph.add_node(node_key(row["rail"], row["guid"]), **flat)
    for edge in list_edges(links):
        graph.add_edge(edge.source, edge.destination, **edge.attributes)
    return graph


def write_graphml(path: Path, nodes: Iterable[Row], links: Iterable[Row]) -> None:
    """Write the graph as GraphML, for Gephi, Cytoscape, yEd and networkx."""
    import networkx as nx  # noqa: PLC0415  (slow to import)

    graph = to_networkx(nodes, links)
    for _, attributes in graph.nodes(data=True):
        attributes.update({name: quote_line(value) for name, value in attributes.items() if isinstance(value, str)})
    nx.write_graphml(graph, str(path))


def write_dot(file: TextIO, nodes: Iterable[Row], links: Iterable[Row]) -> None:
    """Write the graph for Graphviz, with the positions of the layout (`neato -n2`, or `-n` in points)."""
    file.write("digraph fabric {\n  node [shape=box];\n")
    for row in nodes:
        shown = {"label": row["name"], "kind": row["kind"], "level": row["level"], "pos": f"{row['x']},{row['y']}!"}
        file.write(f"  {quote_dot(node_key(row['rail'], row['guid']))} [{_list(shown)}];\n")
    for edge in list_edges(links):
        file.write(f"  {quote_dot(edge.source)} -> {quote_dot(edge.destination)} [{_list(edge.attributes)}];\n")
    file.write("}\n")


def write_tgf(file: TextIO, nodes: Iterable[Row], links: Iterable[Row]) -> None:
    """Write the graph as Trivial Graph Format: lines of nodes, `#`, lines of edges with `name=value` pairs."""
    for row in nodes:
        file.write(f"{node_key(row['rail'], row['guid'])} {quote_line(str(row['name']))}\n")
    file.write("#\n")
    for edge in list_edges(links):
        label = " ".join(
            f"{name}={quote_line(str(value)).replace(' ', '_')}" for name, value in edge.attributes.items()
        )
        file.write(f"{edge.source} {edge.destination} {label}\n")


def _list(attributes: dict[str, Value]) -> str:
    return ", ".join(f"{name}={quote_dot(value)}" for name, value in attributes.items())


def quote_dot(value: Value) -> str:
    """Return a DOT string in which Graphviz does not treat a backslash as an escape."""
    text = quote_line(str(value)).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def quote_line(text: str) -> str:
    """Return a name for one line and for XML: without control characters and lone surrogates."""
    printable = "".join(letter if letter >= " " and letter not in "\x7f\ufffe\uffff" else "\ufffd" for letter in text)
    return printable.encode("utf-8", "backslashreplace").decode()


_BYTES = frozenset(f"{end}_{what}" for end in "ab" for what in ("bytes", "counted", "shared", "most"))

_INTEGERS = frozenset({"rail", "a_port", "b_port", "a_level", "b_level", "level"})

_NUMBERS = frozenset({"gbps", "a_x", "a_y", "b_x", "b_y", "x", "y"})


_ROWS_AT_ONCE = 4096

_QUOTED = re.compile(r'[,"\r\n]')


def write_csv(file: TextIO, table: Table) -> None:
    """Write a header and one line per row. A list becomes a JSON field, so readers parse no number; None is empty."""
    file.write(",".join(table) + "\n")
    rows = len(next(iter(table.values())))
    for begin in range(0, rows, _ROWS_AT_ONCE):
        columns = [_fields_of(column[begin : begin + _ROWS_AT_ONCE]) for column in table.values()]
        file.write("\n".join(map(",".join, zip(*columns, strict=True))) + "\n")


def _fields_of(column: Sequence[Value]) -> Iterable[str]:
    """Return a column as fields of CSV; equal values are formatted once."""
    try:
        fields = {value: _as_field(value) for value in set(column)}
    except TypeError:  # lists
        return map(_as_field, column)
    return map(fields.__getitem__, column)


def _as_field(value: Value) -> str:
    if type(value) is int:
        return str(value)
    if isinstance(value, float):
        return f"{value:.10g}"
    text = json.dumps(value) if isinstance(value, list) else "" if value is None else str(value)
    # Before Python 3.11, csv neither writes nor reads a NUL. Readers treat a lone carriage return as the end of a row.
    text = text.replace("\0", r"\x00")
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def write_parquet(path: Path, table: Table) -> None:
    """Write a table as Parquet; bytes are uint64, lists are lists of text.

    Raises:
        MissingToolError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415  (an extra)
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        raise MissingToolError("Parquet needs pyarrow: pip install 'ibprof[parquet]'") from None
    arrays = [pa.array(map(_plain, values), _type_of(pa, column)) for column, values in table.items()]
    pq.write_table(pa.Table.from_arrays(arrays, names=list(table)), str(path))


def _type_of(pa: Any, column: str) -> Any:
    if column in _BYTES:
        return pa.uint64()
    if column in _INTEGERS:
        return pa.int32()
    if column in _NUMBERS:
        return pa.float64()
    return pa.list_(pa.string()) if column in ("lids", "ranks") else pa.string()


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [str(item) for item in value]
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


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
"""The C dumper is ten times as fast; it exists unless PyYAML was built without libyaml."""

_Dumper.add_representer(
    _Line, lambda dumper, row: dumper.represent_mapping("tag:yaml.org,2002:map", row.items(), flow_style=True)
)

# A path may contain bytes that are not UTF-8, which YAML cannot hold; they become `\\udcNN`, as in the other outputs.
_Dumper.add_representer(str, lambda dumper, text: dumper.represent_str(text.encode(errors="backslashreplace").decode()))


def write_yaml(file: TextIO, about: Mapping[str, object], nodes: Iterable[Row], links: Iterable[Row]) -> None:
    """Write a mapping of `about`, `nodes` and `links`; rows have the columns of nodes.csv and links.csv.

    Args:
        file: the output file.
        about: facts on the loads: numbers and text.
        nodes, links: rows from `outputs.rows`.
    """
    document = {"about": dict(about), "nodes": [_Line(row) for row in nodes], "links": [_Line(row) for row in links]}
    yaml.dump(document, file, Dumper=_Dumper, sort_keys=False, width=1 << 16, allow_unicode=True)


def write_boxfish(folder: Path, about: Mapping[str, object], nodes: Iterable[Row], links: Iterable[Row]) -> None:
    """Write the run.

    Args:
        folder: the output folder, created if missing.
        about: facts on the loads.
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
        "ibprof": {name: _escape_invalid(value) for name, value in about.items()},
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
    """Return a name as one ASCII word, since rows are split at blanks; `-` for an empty name."""
    text = "_".join(str(value).split()).encode("ascii", "replace").decode().replace("#", "_")
    return "".join(letter if letter.isprintable() else "_" for letter in text)[:_LONGEST_NAME] or "-"


def _escape_invalid(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return [_escape_invalid(item) for item in value] if isinstance(value, list) else value
