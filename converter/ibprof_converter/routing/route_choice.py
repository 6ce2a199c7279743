# SPDX-License-Identifier: Apache-2.0
"""Read a rail; its routes are from its forwarding tables, from OpenSM on this machine, or from a model.

OpenSM computes tables for links and LIDs that ibsim simulates. In Debian, OpenSM and ibsim are in the packages `opensm`
and `ibsim-utils`. No packet leaves the machine, and no privileges are needed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from os import PathLike, fspath
from pathlib import Path

from ibprof.errors import InconsistentError, InputError, MissingToolError
from ibprof_converter.choices import D_MOD_K, MIN_HOP, MODELLED, OPENSM, TABLES
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.fabric_parts import count_parts, list_parts
from ibprof_converter.fabric.node_names import show_some
from ibprof_converter.routing.rail_files import RailFiles, find_rails
from ibprof_converter.routing.subnet import MissingTablesError, Subnet, join_subnet, read_rail, read_rail_fabric
from ibprof_converter.routing.table_formats import read_tables

_DEFAULT_ENGINE = "minhop"

_EXPLAINED = {
    f"{MODELLED}:{D_MOD_K}": "shortest routes as engines for fat-trees choose them, not the subnet's own",
    f"{MODELLED}:{MIN_HOP}": "shortest routes as OpenSM's default engine chooses them, not the subnet's own",
    OPENSM: "OpenSM on this machine routed the list of links on ibsim; these are not the subnet's own tables",
}


def read_routed_rail(files: RailFiles, number: int = 0, routes: str | None = None) -> Subnet:
    """Read or generate one rail, with routes from any source.

    Args:
        number: the rail's index. Synthetic rails with different indices have different GUIDs.
        routes: source of the routes, as `parse_routes` returns it. If None: the rail's tables, or modelled tables if
            the rail has no tables.

    Raises:
        InputError: a file is invalid, or `routes` names missing tables.
        InconsistentError: the files describe different fabrics, or OpenSM cannot route the fabric.
        MissingToolError: OpenSM or ibsim is not installed.
        UsageError: the synthetic fabric is impossible.
    """
    kind, _, detail = (routes or TABLES).partition(":")
    if kind == OPENSM:
        from ibprof_converter.routing.route_choice import route_by_opensm  # noqa: PLC0415  (most fabrics come with tables)

        return route_by_opensm(read_rail_fabric(files, number), detail or _DEFAULT_ENGINE).subnet
    unused: tuple[str, ...] = ()
    if kind == TABLES:
        try:
            return read_rail(files, number)
        except MissingTablesError as error:
            if routes is not None:
                raise
            unused = error.unused
    fabric = read_rail_fabric(files, number)
    from ibprof_converter.routing.modelled_tables import model_tables  # noqa: PLC0415  (most fabrics come with tables)

    tables, model = model_tables(fabric, detail or None)
    subnet = join_subnet(fabric, tables, route_source=f"{MODELLED}:{model}")
    return replace(subnet, warnings=(*subnet.warnings, *unused)) if unused else subnet


def read_routed_subnet(path: str | PathLike[str], routes: str | None = None) -> Subnet:
    """Read a fabric of one rail, with its tables or with modelled routes.

    Args:
        path: path of the fabric's dumps.
        routes: source of the routes, as in `read_routed_rail`.

    Raises:
        InputError: a file is invalid, or the path is a folder of several rails.
        IbprofError: as `read_routed_rail` does.
    """
    rails = find_rails([path])
    if len(rails) != 1:
        found = f"{len(rails)}: {show_some([str(rail.links) for rail in rails])}" if rails else "none"
        raise InputError(fspath(path), None, "the dumps of one rail", found)
    return read_routed_rail(rails[0], 0, routes)


def name_routes(subnets: Sequence[Subnet]) -> str:
    """Return text on the sources of the rails' routes; `and` joins different sources."""
    return " and ".join(dict.fromkeys(subnet.route_source for subnet in subnets))


def describe_routes(subnets: Sequence[Subnet]) -> str | None:
    """Return a sentence on the source of routes; None if all routes are from tables in files."""
    sources = [source for source in dict.fromkeys(subnet.route_source for subnet in subnets) if source != TABLES]
    if not sources:
        return None
    told = "; ".join(f"{source} ({_EXPLAINED[source if source in _EXPLAINED else OPENSM]})" for source in sources)
    return f"routes: {told}"


def are_modelled(subnets: Sequence[Subnet]) -> bool:
    """Return true if the routes of any rail are modelled."""
    return any(subnet.route_source.startswith(MODELLED) for subnet in subnets)


_PACKAGES = {"ibsim": "ibsim-utils", "opensm": "opensm"}
_SIMULATOR = "umad2sim/libumad2sim.so"
_CONFIGURED = re.compile(r"([\w-]+) tables configured on all switches")
_LANES = re.compile(r"Lanes needed: (\d+)")
_BEGIN_S = 60.0
_SWEEP_S = 900.0
_SHOWN_PARTS = 3
_SHOWN = 300
"""Error messages quote this number of characters from the end of a log."""


@dataclass(frozen=True, slots=True)
class RoutedByOpenSM:
    """A rail with the tables of one routing engine.

    Attributes:
        engine: the engine that made the tables: if the wanted engine rejects the fabric, OpenSM uses another engine.
        lanes: number of virtual lanes that the routes need to avoid deadlocks; None if OpenSM's log states no number.
    """

    subnet: Subnet
    engine: str
    lanes: int | None = None


def check_joined(fabric: Fabric) -> None:
    """Raise an error if a fabric is in parts: OpenSM routes only the part with its own host.

    Raises:
        InconsistentError: at least two parts have adapters.
    """
    parts = [part for part in list_parts(fabric) if len(part.adapters)]
    if len(parts) > 1:
        what = f"{count_parts(fabric, parts)} ({'; '.join(part.text for part in parts[:_SHOWN_PARTS])})"
        raise InconsistentError(f"{fabric.name}: {what}, and OpenSM routes only one part")


def route_by_opensm(fabric: Fabric, engine: str) -> RoutedByOpenSM:
    """Run OpenSM, and return the rail with the tables that it computes.

    Args:
        fabric: links and LIDs. OpenSM's engines ignore speeds: they count hops and routes.
        engine: one of `ENGINES`.

    Raises:
        MissingToolError: OpenSM or ibsim is not installed.
        InconsistentError: OpenSM or ibsim ends early or does not end, or no cable joins two parts of the fabric.
    """
    check_joined(fabric)
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    programs = {program: _find_program(program, path) for program in _PACKAGES}
    simulator = _find_simulator()
    with tempfile.TemporaryDirectory(prefix="ibprof-opensm-") as name:
        folder = Path(name)
        (folder / "fabric.net").write_text(write_net(fabric))
        (folder / "guid2lid").write_text(_write_lids(fabric))
        (folder / "opensm.conf").write_text("honor_guid2lid_file TRUE\n")
        environment = os.environ | {
            "PATH": path,
            "IBSIM_SOCKNAME": folder.name,
            "SIM_HOST": _name_node(_choose_host(fabric)),
            "OSM_TMP_DIR": f"{folder}/",
            "OSM_CACHE_DIR": f"{folder}/",
        }
        ports = 2 * fabric.links + 300 * fabric.nodes
        simulate = [programs["ibsim"], "-s", "-n", "-N", str(fabric.nodes + 8), "-S", str(fabric.nodes + 8)]
        simulate += ["-P", str(ports), "fabric.net"]
        # -D 0x43 dumps the tables; -d 2 flushes the log after each line, because ibprof polls the log.
        manage = [programs["opensm"], *shlex.split("-f osm.log -e -s 0 -D 0x43 -d 2 -n 32 -t 2000")]
        manage += ["-F", "opensm.conf", "-R", engine, "-l", str(int(fabric.port_lmc.max(initial=0)))]
        manage += ["--dump_files_dir", "."]
        with (
            _running(simulate, folder, environment, "ibsim.log", "simulator ready", _BEGIN_S),
            _running(manage, folder, environment | {"LD_PRELOAD": simulator}, "osm.log", "SUBNET UP", _SWEEP_S),
        ):
            pass
        tables = replace(read_tables(folder / "opensm.fdbs", is_kept=False), name="OpenSM's tables")
        log = (folder / "osm.log").read_text(errors="replace")
    used, lanes = _CONFIGURED.findall(log), _LANES.findall(log)
    made_by = used[-1] if used else engine
    source = f"opensm:{made_by}" if made_by == engine else f"opensm:{made_by}, in place of {engine}"
    subnet = join_subnet(fabric, tables, route_source=source)
    return RoutedByOpenSM(subnet, made_by, int(lanes[-1]) if lanes else None)


def _choose_host(fabric: Fabric) -> int:
    node = fabric.link_node[fabric.node_kind[fabric.link_node] == NodeKind.CA]
    if not len(node):
        raise InconsistentError(f"{fabric.name}: no adapter has a link, so OpenSM has no host to run on")
    return int(node.min())


def write_net(fabric: Fabric) -> str:
    """Return a fabric as input of ibsim (in the format of `ibnetdiscover`), with node names such as `node0`."""
    port_guid = dict(
        zip(
            zip(fabric.port_node.tolist(), fabric.port_number.tolist(), strict=True),
            fabric.port_guid.tolist(),
            strict=True,
        )
    )
    cables: dict[int, list[str]] = {}
    ports: dict[int, int] = {}
    for nodes, numbers in zip(fabric.link_node.tolist(), fabric.link_port.tolist(), strict=True):
        for (node, peer), (port, far) in ((nodes, numbers), (nodes[::-1], numbers[::-1])):
            ports[node] = max(ports.get(node, 0), port)
            own = _show_guid(fabric, node, port, port_guid)
            line = f"[{port}]{own}\t{_identify(fabric, peer)}[{far}]{_show_guid(fabric, peer, far, port_guid)}"
            cables.setdefault(node, []).append(f'{line}\t\t# "{_name_node(peer)}" lid 0 4xQDR\n')
    stanzas = []
    for node, lines in sorted(cables.items()):
        guid = int(fabric.node_guid[node])
        kind, word = ("Switch", "switch") if fabric.node_kind[node] == NodeKind.SWITCH else ("Ca", "ca")
        head = f'{word}guid={guid:#x}\n{kind}\t{ports[node]} {_identify(fabric, node)}\t\t# "{_name_node(node)}"'
        head += " base port 0\n" if kind == "Switch" else "\n"
        stanzas.append(f"vendid=0x2c9\ndevid=0x1003\nsysimgguid={guid:#x}\n{head}{''.join(lines)}\n")
    return "".join(stanzas)


def _identify(fabric: Fabric, node: int) -> str:
    sign = "S" if fabric.node_kind[node] == NodeKind.SWITCH else "H"
    return f'"{sign}-{int(fabric.node_guid[node]):016x}"'


def _show_guid(fabric: Fabric, node: int, port: int, port_guid: dict[tuple[int, int], int]) -> str:
    if fabric.node_kind[node] == NodeKind.SWITCH or (node, port) not in port_guid:
        return ""
    return f"({port_guid[node, port]:x})"


def _name_node(node: int) -> str:
    return f"node{node}"


def _write_lids(fabric: Fabric) -> str:
    """Return the LIDs of all ports in the form of OpenSM's `guid2lid`."""
    rows = zip(fabric.port_guid.tolist(), fabric.port_lid.tolist(), fabric.port_lmc.tolist(), strict=True)
    return "".join(f"{guid:#018x} {lid:#06x} {lid + (1 << lmc) - 1:#06x}\n\n" for guid, lid, lmc in rows if lid > 0)


def _find_program(program: str, path: str) -> str:
    found = shutil.which(program, path=path)
    if found is None:
        raise MissingToolError(f"{program} is not installed; Debian's package is {_PACKAGES[program]}")
    return found


@cache
def _find_simulator() -> str:
    found = next((path for root in ("/usr/lib", "/usr/lib64") for path in Path(root).glob(f"**/{_SIMULATOR}")), None)
    if found is None:
        raise MissingToolError(f"{_SIMULATOR} is not installed; Debian's package is {_PACKAGES['ibsim']}")
    return str(found)


@contextmanager
def _running(
    command: list[str], folder: Path, environment: dict[str, str], log: str, ready: str, limit_s: float
) -> Iterator[None]:
    """Run a program during a `with` block, which begins when the program's log contains `ready`."""
    program = Path(command[0]).name
    printed = folder / f"{program}.log"
    with printed.open("w") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            until = time.monotonic() + limit_s
            while not (folder / log).exists() or ready not in (folder / log).read_text(errors="replace"):
                if process.poll() is not None or time.monotonic() > until:
                    state = "does not end" if process.poll() is None else "ended early"
                    raise InconsistentError(
                        f"{program} {state}: {printed.read_text(errors='replace')[-_SHOWN:].strip()}"
                    )
                time.sleep(0.02)
            yield
        finally:
            process.kill()
            process.wait()
