# SPDX-License-Identifier: Apache-2.0
"""Measure the time to sum traffic over routes: kernels, reading tables, whole command. Compare with Debian's `ibdmchk`.

Run it from a checkout, with ibprof installed:  python benchmarks/spread.py [--runs N] [--large] [--plot FILE.svg]

The fabric of 1,296 hosts is captured (tests/data/fabrics). The fabric of 11,664 hosts is generated, and written as
OpenSM's dumps: 1,620 forwarding tables with a line for each LID.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.dump_files import read_dump
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.routing.spread import spread, spread_matrix
from ibprof_converter.routing.stanzas import parse_fdbs
from ibprof_converter.routing.subnet import Subnet, join_subnet
from ibprof_converter.routing.subnet_routes import SubnetRoutes
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.routing.table_formats import read_tables
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.patterns import shuffle
from ibprof_testing.samples.fabrics import read_subnet

SAMPLE = Path(__file__).parents[1] / "tests/data/fabrics/xgft3-1296"
LARGE = "xgft:3:18,18,36:1,18,18"
"""11,664 hosts on 36-port switches: 648 leaf, 648 middle and 324 top switches, no oversubscription."""

SIZES = (
    "xgft:2:18,18:1,18",
    "xgft:3:18,18,2:1,18,9",
    "xgft:3:18,18,4:1,18,18",
    "xgft:3:18,18,9:1,18,18",
    "xgft:3:18,18,18:1,18,18",
    "xgft:3:18,18,36:1,18,18",
    "xgft:3:24,36,27:1,18,18",
    "xgft:3:36,36,36:1,18,18",
)
"""Fabrics of 324 to 46,656 hosts. With its 2,268 switches, the largest fabric uses nearly all LIDs of a subnet."""

SPARSE_PEERS = 32
DENSE_HOSTS = 12_000
"""Maximum number of hosts with all-to-all traffic in the plot. A larger matrix takes more than 1.2 GB."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=7, metavar="N", help="number of runs for a median (default: 7)")
    parser.add_argument(
        "--large",
        action="store_true",
        help="also measure 11,664 hosts; takes half a minute, and 3 GB of memory and disk",
    )
    parser.add_argument(
        "--plot", metavar="FILE", type=Path, help="only plot times over the numbers of hosts, links and pairs"
    )
    arguments = parser.parse_args()
    if arguments.plot:
        draw_costs(arguments.plot, measure_costs(arguments.runs))
        return
    os.environ["IBPROF_CACHE"] = "off"
    lst = SAMPLE / "ibdiagnet.lst.xz"
    time_kernels("xgft3-1296", read_subnet(lst), arguments.runs)
    time_ibdmchk(arguments.runs)
    time_command("xgft3-1296", lst)
    if arguments.large:
        made = generate(LARGE)
        subnet = join_subnet(made.fabric, made.tables)
        time_kernels(LARGE, subnet, arguments.runs)
        with tempfile.TemporaryDirectory() as folder:
            time_reading(subnet, Path(folder), arguments.runs)


def host_lids(subnet: Subnet) -> npt.NDArray[np.int32]:
    return find_hosts([subnet.fabric]).lid[:, 0]


def median_s(call: Callable[[], object], runs: int) -> float:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def show(seconds: float, what: str) -> None:
    print(f"  {1e3 * seconds:9.2f} ms  {what}", flush=True)


def time_kernels(name: str, subnet: Subnet, runs: int) -> None:
    """Measure the time of summing all-to-all traffic: as matrices and as flows."""
    lids = host_lids(subnet)
    count = len(lids)
    print(f"{name}: {count} hosts, {subnet.fabric.links} links, all-to-all traffic of {count * (count - 1)} pairs")
    show(
        median_s(lambda: SubnetRoutes(subnet.fabric, subnet.tables), runs),
        "building the index of the routes, once for each fabric",
    )
    routes = SubnetRoutes(subnet.fabric, subnet.tables)
    show(
        median_s(lambda: routes.trees, 1),
        "building the in-trees of all destinations, once for each fabric, all threads",
    )
    matrix = np.ones((count, count), np.uint64)
    np.fill_diagonal(matrix, 0)
    one = median_s(lambda: spread_matrix(routes, lids, lids, matrix, 1), runs)
    two = median_s(lambda: spread_matrix(routes, lids, lids, matrix, 2), runs)
    show(one, "loads of a matrix, one thread")
    show(two, f"loads of a matrix, two threads ({one / two:.2f} times as fast)")
    show(median_s(matrix.sum, runs), "reading the matrix once (numpy's sum)")
    equal = np.broadcast_to(np.uint64(1), matrix.shape)
    one = median_s(lambda: spread_matrix(routes, lids, lids, equal, 1), runs)
    two = median_s(lambda: spread_matrix(routes, lids, lids, equal, 2), runs)
    show(one, "loads of a matrix of equal entries, one thread")
    show(two, f"loads of a matrix of equal entries, two threads ({one / two:.2f} times as fast)")
    loads = spread_matrix(routes, lids, lids, matrix)
    of_switches = subnet.fabric.node_kind[subnet.fabric.link_node] == NodeKind.SWITCH
    print(f"  {int(loads.bytes[of_switches].sum())} hops that start at a switch, summed over all pairs")
    if count < 2000:
        source, destination = np.repeat(lids, count), np.tile(lids, count)
        nothing = np.zeros(len(source), np.int32)
        flows = source, destination, matrix.ravel(), nothing, 1
        show(median_s(lambda: spread(routes, *flows, threads=1), runs), "loads of flows in any order, one thread")


def time_ibdmchk(runs: int) -> None:
    """Measure the time of Debian's ibdmchk, which also follows all pairs' paths.

    Check the output, because ibdmchk may crash at the end.
    """
    if shutil.which("ibdmchk") is None:
        print("  ibdmchk is not installed (Debian: ibutils)")
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in ("ibdiagnet.lst", "ibdiagnet.fdbs"):
            Path(folder, name).write_bytes(read_dump(SAMPLE / f"{name}.xz"))
        Path(folder, "mcfdbs").touch()
        command = ["ibdmchk", "-s", "ibdiagnet.lst", "-f", "ibdiagnet.fdbs", "-m", "mcfdbs"]

        def check() -> None:
            said = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False).stdout
            assert "Scanned:1678320 CA to CA paths" in said

        show(median_s(check, max(1, runs // 3)), "Debian's ibdmchk, the whole program")


COMMAND = """
import sys
from ibprof_converter.cli.layout import main
status = main()
# The kernel's high-water mark: the largest memory of this program alone.
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
sys.exit(status)
"""


def time_command(name: str, lst: Path) -> None:
    began = time.perf_counter()
    command = [sys.executable, "-c", COMMAND, str(lst), "pattern:all-to-all", "-o", "/dev/null"]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    seconds = time.perf_counter() - began
    show(
        seconds, f"ibprof-layout {name} pattern:all-to-all, the whole command, largest memory {int(said) / 1e3:.0f} MB"
    )


def time_reading(subnet: Subnet, folder: Path, runs: int) -> None:
    """Measure the times of reading a dump of half a gigabyte and of `ibprof-layout`, each without and with a cache."""
    lst, fdbs = folder / "opensm-subnet.lst", folder / "opensm.fdbs"
    write_lst(subnet, lst)
    write_fdbs(subnet, fdbs)
    long_ago = time.time() - 60  # the cache ignores recently changed files, because they may still change
    os.utime(fdbs, (long_ago, long_ago))
    print(f"{fdbs.stat().st_size / 1e6:.0f} MB of tables as OpenSM dumps them")
    show(median_s(lambda: parse_fdbs(fdbs, read_dump(fdbs)), min(runs, 3)), "reading these tables")
    os.environ |= {"IBPROF_CACHE": "on", "XDG_CACHE_HOME": str(folder)}
    read_tables(fdbs)
    show(median_s(lambda: read_tables(fdbs), runs), "reading these tables from the cache")
    shutil.rmtree(folder / "ibprof")
    time_command("(these tables, first time)", lst)
    time_command("(these tables, from the cache)", lst)


def write_lst(subnet: Subnet, path: Path) -> None:
    """Write links as OpenSM does, each from both of its ports."""
    fabric = subnet.fabric
    lid = np.zeros(fabric.nodes, int)
    lid[fabric.port_node] = fabric.port_lid
    ports = np.bincount(fabric.link_node.ravel(), minlength=fabric.nodes)

    def end(node: int, port: int) -> str:
        kind = "SW" if fabric.node_kind[node] == NodeKind.SWITCH else "CA"
        guid = int(fabric.node_guid[node])
        return (
            f"{{ {kind} Ports:{ports[node]:02x} SystemGUID:{guid:016x} NodeGUID:{guid:016x} PortGUID:{guid:016x} "
            f"VenID:000002C9 DevID:BD36 Rev:000000A1 {{{fabric.node_name[node]}}} LID:{lid[node]:04X} PN:{port:02X} }}"
        )

    with path.open("w") as file:
        for (a, b), (a_port, b_port) in zip(fabric.link_node.tolist(), fabric.link_port.tolist(), strict=True):
            one, other = end(a, a_port), end(b, b_port)
            file.write(f"{one} {other} PHY=4x LOG=ACT SPD=25\n{other} {one} PHY=4x LOG=ACT SPD=25\n")


def write_fdbs(subnet: Subnet, path: Path) -> None:
    """Write forwarding tables as OpenSM does."""
    tables = subnet.tables
    with path.open("w") as file:
        for guid, row in zip(tables.switch_guid.tolist(), tables.port.tolist(), strict=True):
            file.write(f"dump_ucast_routes: Switch {guid:#018x}\nLID    : Port : Hops : Optimal\n")
            lines = (
                f"0x{lid:04X} : UNREACHABLE\n" if port == 255 else f"0x{lid:04X} : {port:03}  : 03   : yes\n"
                for lid, port in enumerate(row[1:], 1)
            )
            file.write("".join(lines))


Cost = tuple[int, int, int, float]
"""Row of a table: number of hosts, number of links, number of pairs, time in s."""


def measure_costs(runs: int) -> dict[str, list[Cost]]:
    """Measure one thread on fabrics of growing size. Each host sends to some random peers, or to all hosts."""
    costs: dict[str, list[Cost]] = {"all-to-all, a matrix": [], f"{SPARSE_PEERS} random peers a host, flows": []}
    dense, sparse = costs.values()
    for name in SIZES:
        made = generate(name)
        routes = SubnetRoutes(made.fabric, made.tables)
        lids = find_hosts([made.fabric]).lid[:, 0]
        hosts, links = len(lids), made.fabric.links
        source = np.tile(lids, SPARSE_PEERS)
        destination = np.concatenate([lids[shuffle(hosts, seed)] for seed in range(SPARSE_PEERS)])
        ones, nothing = np.ones(len(source), np.uint64), np.zeros(len(source), np.int32)
        flows = source, destination, ones, nothing, 1
        sparse.append((hosts, links, len(source), median_s(lambda: spread(routes, *flows, threads=1), runs)))  # noqa: B023
        if hosts <= DENSE_HOSTS:
            matrix = np.ones((hosts, hosts), np.uint64)
            spread_matrix(routes, lids, lids, matrix, 1)  # the first call builds the in-trees, and later calls use them
            seconds = median_s(lambda: spread_matrix(routes, lids, lids, matrix, 1), runs)  # noqa: B023
            dense.append((hosts, links, hosts * hosts, seconds))
        for label, rows in costs.items():
            if rows and rows[-1][0] == hosts:
                print(f"{hosts:6} hosts {links:7} links {rows[-1][2]:10} pairs {1e3 * rows[-1][3]:9.2f} ms  {label}")
    return costs


def draw_costs(path: Path, costs: dict[str, list[Cost]]) -> None:
    import matplotlib as mpl  # noqa: PLC0415  (only the plot needs it)

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "ibprof"
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, panels = plt.subplots(1, 3, figsize=(12, 3.6), sharey=True, layout="constrained")
    for column, (axes, what) in enumerate(zip(panels, ("hosts", "links", "pairs"), strict=True)):
        for (label, rows), marker in zip(costs.items(), "so", strict=True):
            axes.loglog([row[column] for row in rows], [row[3] for row in rows], marker + "-", label=label)
        axes.set_xlabel(what)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("seconds, one thread")
    panels[0].legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


if __name__ == "__main__":
    main()
