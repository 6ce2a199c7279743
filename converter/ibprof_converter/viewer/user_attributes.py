# SPDX-License-Identifier: Apache-2.0
"""Read attributes of ranks and nodes from the user's CSV files: numbers, classes, positions on the problem's grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof.profile.profile_data import Profile
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.traffic.csv_tables import read_number, read_rows
from ibprof_converter.traffic.hosts import HostIndex, Hosts
from ibprof_converter.traffic.rank_placement import guid_number
from ibprof_converter.viewer.view_file import NONE

_AXES = ("x", "y", "z")
_MOST_COLUMNS = 64
_MOST_CLASSES = 1000


@dataclass(frozen=True, slots=True)
class UserAttribute:
    """A column of a file with attributes.

    Attributes:
        name: the heading of the column.
        of_ranks: true if the attribute is of ranks, false if it is of nodes.
        value: float64 [rank or node], number, or index of the class; NaN without a value.
        classes: class names; empty for a column with numbers.
    """

    name: str
    of_ranks: bool
    value: npt.NDArray[np.float64]
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankGrid:
    """Positions of ranks on the problem's grid.

    Attributes:
        title: text on the source of the positions.
        place: int32 [rank, 3], index along x, y and z, from 0; `NONE` if unknown.
    """

    title: str
    place: npt.NDArray[np.int32]


def read_rank_data(path: Path, ranks: int) -> tuple[list[UserAttribute], RankGrid | None]:
    """Read a CSV file with the column `rank` and further columns, of which x, y and z are coordinates.

    Args:
        ranks: the number of ranks.

    Returns:
        The columns that are no coordinates; and the grid, or None without a column x.

    Raises:
        InputError: the file has another format.
    """
    columns = _read_columns(path, ("rank",))
    place = [read_number(path, line, text, "a rank", ranks) for line, text in columns.key]
    axes = [name for name in _AXES if name in columns.cells]
    grid = _grid_of(path, columns, place, axes, ranks) if "x" in axes else None
    others = [name for name in columns.cells if grid is None or name not in axes]
    return [_attribute(path, columns, name, [[each] for each in place], ranks, True) for name in others], grid


def read_node_data(path: Path, fabrics: Sequence[Fabric], hosts: Hosts) -> list[UserAttribute]:
    """Read a CSV file with the column `host`, `node` (a description) or `guid`, and further columns.

    Nodes are numbered over all fabrics. The value of a host is that of its adapters on all rails.

    Raises:
        InputError: the file has another format, or names a node that is not in the fabric.
    """
    columns = _read_columns(path, ("host", "node", "guid"))
    find = _make_finder(columns.kind, fabrics, hosts)
    nodes = [find(text) for _, text in columns.key]
    for (line, text), found in zip(columns.key, nodes, strict=True):
        if not found:
            likely = HostIndex(hosts.name, hosts.shared).describe_unknown(text) if columns.kind == "host" else ""
            raise InputError(path, line, f"a {columns.kind} of the fabric", quote_found(text) + likely)
    count = sum(fabric.nodes for fabric in fabrics)
    return [_attribute(path, columns, name, nodes, count, False) for name in columns.cells]


def find_recorded_grid(profile: Profile | None) -> RankGrid | None:
    """Return the first grid of MPI_Cart_create with only recorded ranks; None without such a grid.

    The last dimension is x, the second to last is y, and all earlier dimensions together are z.
    """
    if profile is None:
        return None
    made = [(rank.rank, grid) for rank in profile.ranks for grid in rank.grids]
    for extents in dict.fromkeys(grid.extents for _, grid in made):
        members = {rank: grid.place for rank, grid in reversed(made) if grid.extents == extents}
        if len(members) == int(np.prod(extents)) > 1:
            place = np.full((max(profile.world_size, 1 + max(members)), len(_AXES)), NONE, np.int32)
            for rank, where in members.items():
                *before, y, x = (0, *where)
                place[rank] = x, y, np.ravel_multi_index(before[1:], extents[:-2]) if len(extents) > 2 else 0
            return RankGrid(f"MPI_Cart_create: {' x '.join(map(str, extents))}", place)
    return None


@dataclass(frozen=True, slots=True)
class _CsvColumns:
    """A CSV file: name and cells (line, text) of the first column; name -> cells of all other columns."""

    kind: str
    key: list[tuple[int, str]]
    cells: dict[str, list[str]]


def _read_columns(path: Path, kinds: tuple[str, ...]) -> _CsvColumns:
    rows = read_rows(path)
    _, header = next(rows, (1, [""]))
    names = [name.strip() for name in header]
    kind = names[0].lower()
    if kind not in kinds or len(names) < 2:
        known = " or ".join(kinds)
        raise InputError(path, 1, f"a header with {known}, then other columns", quote_found(",".join(header)))
    if len(set(names)) < len(names) or len(names) > _MOST_COLUMNS:
        raise InputError(path, 1, f"at most {_MOST_COLUMNS} different columns", quote_found(",".join(header)))
    names = [name.lower() if name.lower() in _AXES else name for name in names]
    key: list[tuple[int, str]] = []
    cells: dict[str, list[str]] = {name: [] for name in names[1:]}
    seen: set[str] = set()
    for line, fields in rows:
        if len(fields) != len(names):
            raise InputError(path, line, f"{len(names)} columns", str(len(fields)))
        first = fields[0].strip()
        if first in seen:
            raise InputError(path, line, f"each {kind} once", f"{quote_found(first)} again")
        seen.add(first)
        key.append((line, first))
        for name, text in zip(names[1:], fields[1:], strict=True):
            cells[name].append(text.strip())
    return _CsvColumns(kind, key, cells)


def _attribute(
    path: Path, columns: _CsvColumns, name: str, places: Sequence[Sequence[int]], count: int, of_ranks: bool
) -> UserAttribute:
    cells = columns.cells[name]
    numbers = [_number(text) for text in cells if text]
    value = np.full(count, np.nan)
    classes: tuple[str, ...] = ()
    if None in numbers:
        classes = tuple(dict.fromkeys(text for text in cells if text))
        if len(classes) > _MOST_CLASSES:
            raise InputError(
                path, None, f"numbers or at most {_MOST_CLASSES} different words in {name}", str(len(classes))
            )
        numbers = [float(classes.index(text)) for text in cells if text]
    rows = [place for place, text in zip(places, cells, strict=True) if text]
    for place, number in zip(rows, numbers, strict=True):
        value[list(place)] = number
    return UserAttribute(name, of_ranks, value, classes)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) and "_" not in text else None


def _grid_of(path: Path, columns: _CsvColumns, ranks: Sequence[int], axes: Sequence[str], count: int) -> RankGrid:
    place = np.full((count, len(_AXES)), NONE, np.int32)
    place[list(ranks)] = 0
    for axis, name in enumerate(_AXES):
        if name in axes:
            texts = zip(columns.key, columns.cells[name], strict=True)
            given = [_coordinate(path, line, name, text) for (line, _), text in texts]
            place[list(ranks), axis] = np.unique(np.array(given), return_inverse=True)[1]
    return RankGrid(path.name, place)


def _coordinate(path: Path, line: int, name: str, text: str) -> float:
    number = _number(text)
    if number is None:
        raise InputError(path, line, f"a number for {name}", quote_found(text))
    return number


def _make_finder(kind: str, fabrics: Sequence[Fabric], hosts: Hosts) -> Callable[[str], Sequence[int]]:
    """Return a function that returns the nodes with the name in a row's first cell; no nodes for an unknown name."""
    first = np.cumsum([0, *(fabric.nodes for fabric in fabrics)]).tolist()
    nodes_of: dict[int | str, list[int]] = {}
    for rail, fabric in enumerate(fabrics):
        keys: dict[str, Sequence[int | str]] = {
            "host": hosts.of_node[rail].tolist(),
            "guid": fabric.node_guid.tolist(),
            "node": fabric.node_name,
        }
        for node, key in enumerate(keys[kind]):
            nodes_of.setdefault(key, []).append(first[rail] + node)
    index = HostIndex(hosts.name, hosts.shared)

    def find(text: str) -> Sequence[int]:
        if kind == "host":
            host = index.find(text)
            return nodes_of[host] if host is not None else ()
        if kind == "guid":
            return nodes_of.get(guid_number(text), ())
        return nodes_of.get(text, ())

    return find
