# SPDX-License-Identifier: Apache-2.0
"""Simulate an InfiniBand subnet by ibsim, and run OpenSM on it.

This module needs ibsim, opensm and ibtracert (Debian: ibsim-utils, opensm, infiniband-diags).
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables
from ibprof_testing.lab.cabling import Cabling, random_tree
from ibprof_testing.machine import find_program

PACKAGES = {"ibsim": "ibsim-utils", "opensm": "opensm", "ibtracert": "infiniband-diags"}
TIMEOUT_S = 60.0


@contextmanager
def run_subnet(folder: Path, seed: int, lmc: int) -> Iterator[Callable[[int, int], str]]:
    """Cable and route a random subnet. OpenSM's dumps are in `folder`.

    Yields:
        A function that runs ibtracert between two LIDs and returns its output.
    """
    with route(random_tree(seed), folder, "minhop", lmc) as simulated:

        def ibtracert(source: int, destination: int) -> str:
            command = ["ibtracert", str(source), str(destination)]
            return subprocess.run(
                command, env=simulated, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
            ).stdout

        yield ibtracert


@contextmanager
def route(cabling: Cabling, folder: Path, engine: str, lmc: int = 0) -> Iterator[dict[str, str]]:
    """Simulate a subnet with OpenSM on it while the block lasts. When the block begins, `folder` has OpenSM's dumps.

    Args:
        engine: OpenSM's routing engine.

    Yields:
        The environment of programs that are to see the subnet.
    """
    with simulate(cabling.text(), cabling.first_host, folder, f"-R {engine} -l {lmc}") as simulated:
        yield simulated


@contextmanager
def route_by_tables(fabric: Fabric, tables: ForwardingTables, folder: Path) -> Iterator[dict[str, str]]:
    """Simulate a fabric with given LIDs and tables while the block lasts.

    Yields:
        The environment of programs that are to see the subnet.
    """
    lids = zip(fabric.port_guid.tolist(), fabric.port_lid.tolist(), strict=True)
    (folder / "guid2lid").write_text("".join(f"{guid:#018x} {lid:#06x} {lid:#06x}\n\n" for guid, lid in lids))
    (folder / "tables").write_text(tables_text(fabric, tables))
    (folder / "opensm.conf").write_text("honor_guid2lid_file TRUE\n")
    first = next(name for name, kind in zip(fabric.node_name, fabric.node_kind, strict=True) if kind == NodeKind.CA)
    with simulate(net_text(fabric), first, folder, "-F opensm.conf -R file -U tables") as simulated:
        yield simulated


@contextmanager
def simulate(net: str, first_host: str, folder: Path, how: str, console: int | None = None) -> Iterator[dict[str, str]]:
    """Simulate a subnet with OpenSM on it while the block lasts.

    Args:
        net: the fabric in the format of ibsim.
        first_host: name of the host on which OpenSM runs.
        folder: folder for OpenSM's dumps.
        how: OpenSM's options.
        console: descriptor from which ibsim reads commands (`Unlink "S-0002c90200400000"[7]`); None for no commands.

    Yields:
        The environment of programs that are to see the subnet.
    """
    for program, package in PACKAGES.items():
        find_program(program, package=package, path=search_path())
    (folder / "fabric.net").write_text(net)
    environment = os.environ | {
        "PATH": search_path(),
        "IBSIM_SOCKNAME": f"ibprof-{os.getpid()}-{folder.name}",
        "SIM_HOST": first_host,
        "OSM_TMP_DIR": f"{folder}/",
        "OSM_CACHE_DIR": f"{folder}/",
    }
    simulated = environment | {"LD_PRELOAD": find_simulator()}
    # -D 0x43 adds the dumps of links and tables; -d 2 flushes the log at once, for `start`.
    manage = f"opensm -f osm.log -e -s 0 -D 0x43 -d 2 -n 32 -t 2000 {how} --dump_files_dir ."
    sim = f"ibsim -s {'-n ' if console is None else ''}-N 2000 -S 500 -P 20000 fabric.net"
    with (
        start(sim, folder, environment, "ibsim.log", "simulator ready", console),
        start(manage, folder, simulated, "osm.log", "SUBNET UP"),
    ):
        yield simulated


def net_text(fabric: Fabric) -> str:
    """Write a fabric as ibsim reads it."""
    cables: dict[int, list[str]] = {}
    sign = {NodeKind.SWITCH: "S", NodeKind.CA: "H", NodeKind.ROUTER: "R"}

    def identity(node: int) -> str:
        return f'"{sign[NodeKind(fabric.node_kind[node])]}-{int(fabric.node_guid[node]):016x}"'

    for nodes, ports in zip(fabric.link_node.tolist(), fabric.link_port.tolist(), strict=True):
        for (node, peer), (port, far) in ((nodes, ports), (nodes[::-1], ports[::-1])):
            own = "" if fabric.node_kind[node] == NodeKind.SWITCH else "lid 0 lmc 0 "
            line = f'[{port}]\t{identity(peer)}[{far}]\t\t# {own}"{fabric.node_name[peer]}" lid 0 4xQDR\n'
            cables.setdefault(node, []).append(line)
    stanzas = []
    for node in range(fabric.nodes):
        guid, name = int(fabric.node_guid[node]), fabric.node_name[node]
        if fabric.node_kind[node] == NodeKind.SWITCH:
            head = f'switchguid={guid:#x}({guid:x})\nSwitch\t36 {identity(node)}\t\t# "{name}" base port 0\n'
        else:
            head = f'caguid={guid:#x}\nCa\t1 {identity(node)}\t\t# "{name}"\n'
        stanzas.append(f"vendid=0x2c9\ndevid=0x1003\nsysimgguid={guid:#x}\n{head}{''.join(cables[node])}\n")
    return "".join(stanzas)


def tables_text(fabric: Fabric, tables: ForwardingTables) -> str:
    """Write tables as OpenSM loads them (`-R file -U FILE`)."""
    lid_of = dict(zip(fabric.port_guid.tolist(), fabric.port_lid.tolist(), strict=True))
    lines = []
    for guid, row in zip(tables.switch_guid.tolist(), tables.port, strict=True):
        lines.append(f"Unicast lids [0-{len(row) - 1}] of switch Lid {lid_of[guid]} guid {guid:#018x} ('s'):\n")
        lines += [f"{lid:#06x} {row[lid]:03} # x\n" for lid in np.flatnonzero(row != UNREACHABLE).tolist()]
    return "".join(lines)


def find_simulator() -> str:
    """Find the library that puts a program's management datagrams on the simulated subnet."""
    return str(next(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so")))


def search_path() -> str:
    """Return PATH with the folders of administrators' programs, which users often lack."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


@contextmanager
def start(
    command: str, folder: Path, environment: dict[str, str], log: str, ready: str, stdin: int | None = None
) -> Iterator[None]:
    """Start a program, wait until `ready` is in the program's log, and end the program when the block ends."""
    with (folder / f"{command.split(maxsplit=1)[0]}.log").open("w") as output:
        process = subprocess.Popen(
            command.split(),
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=output,
            stderr=output,
        )
        try:
            until = time.monotonic() + TIMEOUT_S
            while not (folder / log).exists() or ready not in (folder / log).read_text(errors="replace"):
                assert process.poll() is None, f"{command} ended: {(folder / output.name).read_text()}"
                assert time.monotonic() < until, f"{command} is not ready after {TIMEOUT_S} s"
                time.sleep(0.02)
            yield
        finally:
            process.terminate()
            process.wait(TIMEOUT_S)
