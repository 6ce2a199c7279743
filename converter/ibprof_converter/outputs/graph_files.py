# SPDX-License-Identifier: Apache-2.0
"""Write the fabric as a graph in GraphML, Graphviz DOT and TGF, with an edge per link direction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

if TYPE_CHECKING:
    import networkx as nx

    from ibprof_converter.outputs.rows import Row, Value

_SHARED = ("gbps", "region", "operation", "site", "job")
_ADDITIONAL = ("shared", "most", "counted")


class Edge(NamedTuple):
    """Bytes of one link direction in one region, operation, call site and job.

    Attributes:
        source, destination: keys of the two nodes.
        attributes: values of `port`, `peer_port`, `bytes` and further columns of links.csv.
    """

    source: str
    destination: str
    attributes: dict[str, Value]


def node_key(rail: Value, guid: Value) -> str:
    """Return a node's key, `RAIL:GUID`, because nodes on different rails may have equal GUIDs."""
    return f"{rail}:{guid}"


def list_edges(links: Iterable[Row]) -> Iterator[Edge]:
    """Yield an edge for each direction of each row of links.csv; empty columns are left out."""
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
    """Return a graph with nodes `RAIL:GUID`, which have the columns of nodes.csv, and with an edge per link direction.

    Lists become text, with blanks between the elements: GraphML has no lists.
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
    """Write the graph for Graphviz, with positions for `neato -n2` or `neato -n`."""
    file.write("digraph fabric {\n  node [shape=box];\n")
    for row in nodes:
        shown = {"label": row["name"], "kind": row["kind"], "level": row["level"], "pos": f"{row['x']},{row['y']}!"}
        file.write(f"  {quote_dot(node_key(row['rail'], row['guid']))} [{_list(shown)}];\n")
    for edge in list_edges(links):
        file.write(f"  {quote_dot(edge.source)} -> {quote_dot(edge.destination)} [{_list(edge.attributes)}];\n")
    file.write("}\n")


def write_tgf(file: TextIO, nodes: Iterable[Row], links: Iterable[Row]) -> None:
    """Write the graph in Trivial Graph Format: a line per node, a line `#`, a line per edge with `name=value` pairs."""
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
    """Return a DOT string in quotes, with backslashes and quotation marks escaped."""
    text = quote_line(str(value)).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def quote_line(text: str) -> str:
    """Replace control characters and lone surrogates, so that the text is one line and valid in XML."""
    printable = "".join(letter if letter >= " " and letter not in "\x7f\ufffe\uffff" else "\ufffd" for letter in text)
    return printable.encode("utf-8", "backslashreplace").decode()
