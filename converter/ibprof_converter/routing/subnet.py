# SPDX-License-Identifier: Apache-2.0
"""Read a fabric and its forwarding tables, search files for the tables, and compare fabric and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError, InputError
from ibprof_converter.choices import TABLES
from ibprof_converter.fabric.damage import describe_damages
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind, switch_guids
from ibprof_converter.fabric.link_formats import read_fabric
from ibprof_converter.fabric.node_names import show_some
from ibprof_converter.fabric.partitions import apply_partitions
from ibprof_converter.routing.far import read_far
from ibprof_converter.routing.rail_files import RailFiles
from ibprof_converter.routing.subnet_routes import NONE, IndexedNetwork, SubnetRoutes, find_rows
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.routing.table_formats import has_tables, read_tables
from ibprof_converter.routing.tables import NO_GROUP, UNREACHABLE, AdaptiveRouting, ForwardingTables, merge_tables

_LARGEST_LMC = 7

NO_FILE = "no file"
"""Name of the empty tables of a rail without tables."""


_WANTED = (
    "forwarding tables of this fabric in or below its folder, or as an argument: "
    "`dump_fts > FILE`, `ibroute LID > FILE` for each switch, `ibdiagnet -r`, or OpenSM's dump "
    "(`opensm -D 0x43 --dump_files_dir DIR`)"
)


@dataclass(frozen=True, slots=True)
class Subnet:
    """A rail: its fabric and its tables.

    Attributes:
        fabric: the fabric, with each port's LMC from `guid2lid` or from the tables.
        warnings: sentences on anomalies of fabric and tables, and on contradictions between fabric and tables.
        gaps: warnings on nodes and links that tables use, but the fabric lacks: the list of links is truncated or old.
        adaptive: adaptive routing of the switches; None if no switch routes adaptively, as far as is known.
        route_source: source of the tables, one of `TABLES`, `modelled:MODEL` and `opensm:ENGINE`.
    """

    fabric: Fabric
    tables: ForwardingTables
    warnings: tuple[str, ...]
    gaps: tuple[str, ...] = ()
    adaptive: AdaptiveRouting | None = None
    route_source: str = TABLES
    routes: SubnetRoutes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "routes", SubnetRoutes(self.fabric, self.tables))


def read_rail(files: RailFiles, number: int = 0) -> Subnet:
    """Read the files of one rail, or generate a synthetic rail.

    Args:
        number: the rail's index. Synthetic rails with different indices have different GUIDs.

    Raises:
        InputError: a file is invalid, or there are no tables.
        InconsistentError: the files describe different fabrics.
        UsageError: the synthetic fabric is impossible.
    """
    if files.synthetic:
        made = generate(files.synthetic, number, files.plane or 0)
        return join_subnet(made.fabric, made.tables)
    fabric = _read_links(files)
    if fabric.synthetic_lids:
        named = [f"{files.tables}: not used"] if files.tables else []
        raise MissingTablesError(files.links, [f"{each}, since it has other LIDs than {fabric.name}" for each in named])
    adaptive = read_far(files.adaptive) if files.adaptive else None
    if files.tables is None:
        tables = find_tables(fabric, files, adaptive)
    else:
        tables = adaptive.tables if adaptive and files.tables == files.adaptive else _read_tables(files, fabric)
    return join_subnet(fabric, tables, adaptive)


def _read_tables(files: RailFiles, fabric: Fabric) -> ForwardingTables:
    """Return the tables in a rail's file; if the file has several planes, only those of this rail's switches."""
    assert files.tables is not None
    if files.plane is None:
        return read_tables(files.tables)
    if not files.plane:
        _read_plane_tables.cache_clear()
    tables = _read_plane_tables(files.tables)
    own = np.isin(tables.switch_guid, switch_guids(fabric))
    return replace(tables, switch_guid=tables.switch_guid[own], port=tables.port[own]) if own.any() else tables


@lru_cache(maxsize=1)
def _read_plane_tables(path: Path) -> ForwardingTables:
    return read_tables(path)


def read_rail_fabric(files: RailFiles, number: int = 0) -> Fabric:
    """Read the links of one rail, or generate them. Tables are not read.

    Raises:
        InputError: a file is invalid.
        InconsistentError: a file contradicts itself.
        UsageError: the synthetic fabric is impossible.
    """
    return generate(files.synthetic, number, files.plane or 0).fabric if files.synthetic else _read_links(files)


def _read_links(files: RailFiles) -> Fabric:
    fabric = read_fabric(files.links, files.lid_ranges, files.names, files.parts, files.plane)
    fabric = replace(fabric, warnings=(*fabric.warnings, *files.notes))
    return apply_partitions(fabric, files.partitions) if files.partitions else fabric


def read_without_tables(files: RailFiles, unused: Sequence[str] = ()) -> Subnet:
    """Read a rail without tables, so that its links can be checked.

    Args:
        unused: sentences on unusable files with tables.

    Raises:
        InputError: a file is invalid.
        InconsistentError: a file contradicts itself.
    """
    fabric = _read_links(files)
    tables = ForwardingTables(NO_FILE, np.zeros(0, np.uint64), np.zeros((0, 1), np.uint8))
    return Subnet(fabric, tables, (*_list_warnings(fabric, tables), *unused))


def join_subnet(
    fabric: Fabric, tables: ForwardingTables, adaptive: AdaptiveRouting | None = None, route_source: str = TABLES
) -> Subnet:
    """Join and compare a fabric and its tables.

    Raises:
        InconsistentError: no table belongs to a switch of the fabric.
    """
    switch = np.flatnonzero(fabric.node_kind == NodeKind.SWITCH)
    row = find_rows(fabric.node_guid[switch], tables)
    if len(switch) and (row == NONE).all():
        raise InconsistentError(
            f"{tables.name}: no table belongs to a switch of {fabric.name}; the files describe two fabrics"
        )
    fabric = infer_lmc(fabric, tables)
    names = [repr(fabric.node_name[node]) for node in switch[row == NONE]]
    warnings = list(_list_warnings(fabric, tables))
    if names:
        warnings.append(f"{tables.name}: {len(names)} switches have no table ({show_some(names)})")
    gaps = [f"{tables.name}: {gap}" for gap in _find_gaps(fabric, tables)]
    if adaptive is not None:
        warnings += _compare_adaptive(fabric, tables, adaptive)
        adaptive = adaptive if _chooses_here(fabric, adaptive) else None
    return Subnet(fabric, tables, (*warnings, *gaps), tuple(gaps), adaptive, route_source)


def _chooses_here(fabric: Fabric, adaptive: AdaptiveRouting) -> bool:
    """Return true if any switch of the fabric routes adaptively."""
    chooses = (adaptive.group != NO_GROUP).any(axis=1)
    return bool(np.isin(adaptive.tables.switch_guid[chooses], switch_guids(fabric)).any())


def _compare_adaptive(fabric: Fabric, tables: ForwardingTables, adaptive: AdaptiveRouting) -> Iterator[str]:
    """Yield warnings on unused parts of a `.far`, and on its static ports that differ from the tables."""
    yield from (f"{adaptive.name}: {warning}" for warning in adaptive.warnings)
    own = adaptive.tables
    here = np.isin(own.switch_guid, switch_guids(fabric))
    if not here.any():
        yield f"{adaptive.name}: not used, since none of its switches is in {fabric.name}"
        return
    if own is tables:
        return
    yield from (f"{adaptive.name}: {damage}" for damage in describe_damages(adaptive.damage))
    row = find_rows(own.switch_guid, tables)
    both = np.flatnonzero(here & (row != NONE))
    width = min(own.port.shape[1], tables.port.shape[1])
    one, other = own.port[both, :width], tables.port[row[both], :width]
    differing = int(((one != other) & (one != UNREACHABLE) & (other != UNREACHABLE)).sum())
    if differing:
        yield f"{adaptive.name}: {differing} static ports differ from {tables.name}; one of the two files may be older"


def _list_warnings(fabric: Fabric, tables: ForwardingTables) -> Iterator[str]:
    for part in (fabric, tables):
        yield from (f"{part.name}: {warning}" for warning in part.warnings)
        yield from (f"{part.name}: {damage}" for damage in describe_damages(part.damage))


def check_rails(subnets: Sequence[Subnet]) -> None:
    """Raise an error if two rails are the same subnet.

    Raises:
        InconsistentError: two fabrics have a switch in common.
    """
    for first, second in combinations([subnet.fabric for subnet in subnets], 2):
        shared = np.intersect1d(switch_guids(first), switch_guids(second))
        if len(shared):
            raise InconsistentError(
                f"{first.name} and {second.name} both have switch {shared[0]:#018x}; a switch belongs to one rail only"
            )


def infer_lmc(fabric: Fabric, tables: ForwardingTables) -> Fabric:
    """Return the fabric with the LMC that the tables show; without such an LMC, or with a known LMC, unchanged.

    A port with LMC m has 2**m consecutive LIDs, and the first is a multiple of 2**m. A `.lst` states only a port's
    first LID. A subnet manager assigns the same LMC to all CAs and routers; switches have LMC 0. So the LMC is the
    largest m with which all first LIDs are multiples of 2**m, and tables have routes to the unlisted LIDs.
    """
    is_end = fabric.node_kind[fabric.port_node] != NodeKind.SWITCH
    base = fabric.port_lid[is_end]
    if fabric.lmc_known or fabric.port_lmc.any() or not len(base):
        return fabric
    free = find_unlisted(fabric, tables)
    lmc = 0
    while lmc < _LARGEST_LMC and not (base % (2 << lmc)).any():
        block = base[:, np.newaxis] + np.arange(1, 2 << lmc)
        if block.max() >= len(free) or not free[block].all():
            break
        lmc += 1
    return replace(fabric, port_lmc=np.where(is_end, lmc, 0).astype(np.int32)) if lmc else fabric


def find_unlisted(fabric: Fabric, tables: ForwardingTables) -> npt.NDArray[np.bool_]:
    """Return true for LIDs that have a route in any table, but no port in the fabric: bool [LID]."""
    # All bits of `UNREACHABLE` are set: for LIDs without a route, the AND over all rows is `UNREACHABLE`.
    reachable = np.bitwise_and.reduce(tables.port, axis=0) != UNREACHABLE
    return np.asarray(reachable & (fabric.lid_port[: len(reachable)] == NONE))


def _find_gaps(fabric: Fabric, tables: ForwardingTables) -> Iterator[str]:
    """Yield warnings on switches, LIDs and links that are in the tables, but not in the fabric."""
    foreign = int((~np.isin(tables.switch_guid, fabric.node_guid)).sum())
    if foreign:
        yield f"{foreign} tables belong to switches that {fabric.name} does not have"
    unlisted = int(find_unlisted(fabric, tables).sum())
    if unlisted:
        yield f"{unlisted} reachable LIDs belong to no port of {fabric.name}"
    dangling = len(find_dangling_ports(IndexedNetwork.index(fabric, tables)))
    if dangling:
        yield f"routes use {dangling} switch ports that have no active link in {fabric.name}"


def find_dangling_ports(network: IndexedNetwork) -> list[tuple[int, int]]:
    """Return (node, port) of ports that tables use, but that have no link; port 0 of switches is left out."""
    found = []
    has_no_link = network.end_at == NONE
    has_no_link[:, [0, UNREACHABLE]] = False
    for switch in np.flatnonzero(network.row != NONE):
        node = int(network.switch_node[switch])
        ports = network.tables.port[network.row[switch]]
        # bytes.translate is the fastest lookup of millions of bytes in a table with 256 entries.
        if b"\1" in ports.tobytes().translate(has_no_link[node].tobytes()):
            used = np.unique(ports)
            found += [(node, port) for port in used[has_no_link[node][used]].tolist()]
    return found


class MissingTablesError(InputError):
    """No tables of a list of links were found.

    Attributes:
        unused: sentences on files with tables of other fabrics.
    """

    def __init__(self, path: str | PathLike[str], unused: Sequence[str] = ()) -> None:
        super().__init__(path, None, _WANTED, "; ".join(unused) or "none")
        self.unused = tuple(unused)


def find_tables(fabric: Fabric, files: RailFiles, adaptive: AdaptiveRouting | None) -> ForwardingTables:
    """Return the fabric's tables from the first candidate with all tables, or else from the most complete candidate.

    Files of `ibroute`, each with the table of one switch, are merged. Without candidates, the list of links itself is
    searched: it may be the log of a terminal session with tables.

    Raises:
        MissingTablesError: no candidate has a table of this fabric.
        InputError: no candidate can be read.
    """
    switches = switch_guids(fabric)
    best, covered, single = None, 0, []
    error: InputError | None = None
    unused = []
    candidates = files.candidates or ((files.links,) if has_tables(files.links) else ())
    for path in candidates:
        try:
            tables = adaptive.tables if adaptive and path == files.adaptive else read_tables(path)
        except InputError as found:
            error = error or found
            continue
        here = int(np.isin(switches, tables.switch_guid).sum())
        if not here:
            unused.append(f"{path}: not used, since its tables belong to no switch of {fabric.name}")
        if len(tables.switch_guid) == 1 and here:
            single.append(tables)
        if here > covered:
            best, covered = tables, here
        if here == len(switches):
            break
    if len(single) > covered or (best is not None and len(single) > 1 and covered == 1):
        best = merge_tables(single)
    if best is not None:
        return best if error is None else replace(best, warnings=(*best.warnings, f"skipped: {error}"))
    if error is not None:
        raise error
    raise MissingTablesError(files.links, unused)
