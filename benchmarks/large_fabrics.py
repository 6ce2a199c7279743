# SPDX-License-Identifier: Apache-2.0
"""Measure time and largest memory of reports and placements on the largest fabrics, and of reading compression bombs.

python benchmarks/large_fabrics.py [--only all|job|clusters|rails|bombs] [--dumps FOLDER] [--hosts N] [--commit COMMIT]

The fabrics are synthetic. `all` has 46,656 hosts, each with 6 random peers. `job` has 11,664 hosts and 512 ranks; the
network is the job's bottleneck. `--dumps` adds the same job on the fabric in FOLDER, without a cache of tables.
`clusters` has two fabrics of GPU hosts, with 4,096 and 32,768 adapters. `rails` compares this version with an older
version, on 8 rails of 4 planes. In `clusters` and `rails`, half of the hosts exchange all-to-all in groups of 8. The
other hosts form rings on each rail. The exit status is 1 if time or memory exceeds a limit.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
from layout_from_cache import build_kernels, run

import ibprof_converter
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.routing.tables import UNREACHABLE
from ibprof_lab.topology.outputs.inferred_fabric import write_lst

HOSTS = 46_656
LARGEST = "xgft:3:36,36,36:1,18,18"
LARGE = "xgft:3:18,18,36:1,6,6"
PEERS = 6
RANKS = 512
CLUSTERS = {"scalable-unit:16": 512, "scalable-unit:128": 4096}
"""Fabric of GPU hosts -> number of hosts."""

CLUSTER_S, CLUSTER_GB = 10.0, 1.0
RAILS, PLANES = 8, 4
EXPERTS = 8
"""Number of hosts in a group of experts, which exchange all-to-all."""

COMMIT = "0ba4adf2"
RATIO = 0.5
UNCOMPARED = {"coverage", "verdict", "reproduce"}
"""Parts of a report that are not compared, because they differ between versions or contain names of files."""

ROOT = Path(__file__).parents[1]
DEMO = Path(ibprof_converter.__file__).parent / "data" / "demo-fabric" / "opensm-subnet.lst"


def measure(
    folder: Path,
    *words: str,
    allowed: tuple[int, ...] = (0,),
    variables: dict[str, str] | None = None,
    output: str = "",
) -> tuple[float, float]:
    """Run `python -m ibprof`, and print times and largest resident memory.

    Args:
        folder: working folder.
        words: arguments of the command.
        allowed: allowed exit statuses.
        variables: environment variables to add; if None, only IBPROF_CACHE=off.
        output: name of the file for stdout; empty for no file.

    Returns:
        CPU time in seconds, memory in GB.
    """
    begun = time.monotonic()
    environment = {**os.environ, **({"IBPROF_CACHE": "off"} if variables is None else variables)}
    quiet = subprocess.DEVNULL
    with (
        Path(folder / output if output else os.devnull).open("w") as stdout,
        subprocess.Popen(
            [sys.executable, "-m", "ibprof", *words], cwd=folder, env=environment, stdout=stdout, stderr=quiet
        ) as process,
    ):
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in allowed:
        sys.exit(f"ibprof {' '.join(words)}: status {process.returncode}")
    cpu, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6
    wall = time.monotonic() - begun
    print(f"| `{' '.join(words)}` | {wall:.1f} s | {cpu:.1f} s | {memory:.2f} GB |", flush=True)
    return cpu, memory


def list_flows(hosts: int, across: bool) -> npt.NDArray[np.int64]:
    """Return source host, source rail, destination host, destination rail and bytes of each flow: int64 [5, flow].

    Args:
        hosts: number of hosts with `RAILS` adapters.
        across: true if ranks of the all-to-all send to adapters on all rails of the destination host. If false, bytes
            change the rail within the source host, as with NCCL's PXN.
    """
    half = hosts // 2 // EXPERTS * EXPERTS
    host, rail, step, other = np.meshgrid(
        np.arange(half), np.arange(RAILS), np.arange(1, EXPERTS), np.arange(RAILS if across else 1), indexing="ij"
    )
    to = host // EXPERTS * EXPERTS + (host + step) % EXPERTS
    amount = np.full(host.shape, (1 if across else RAILS) << 16)
    experts = np.stack([host, rail, to, other if across else rail, amount]).reshape(5, -1)
    host, rail = np.meshgrid(np.arange(half, hosts), np.arange(RAILS), indexing="ij")
    to = half + (host - half + 1) % (hosts - half)
    rings = np.stack([host, rail, to, rail, np.full(host.shape, 1_000_000)]).reshape(5, -1)
    return np.concatenate([experts, rings], axis=1)


def write_flows(path: Path, head: str, *columns: npt.NDArray[np.int64]) -> None:
    np.savetxt(path, np.stack(columns, axis=1), "%d", ",", header=head, comments="")


def measure_clusters(folder: Path) -> bool:
    """Make reports on GPU hosts whose rails form one subnet. Return whether time and memory are within limits."""
    fits = True
    for name, hosts in CLUSTERS.items():
        source, rail, destination, other, amount = list_flows(hosts, across=True)
        lids = source * RAILS + rail + 1, destination * RAILS + other + 1
        write_flows(folder / f"{hosts}.csv", "src_lid,dst_lid,bytes", *lids, amount)
        cpu, memory = measure(folder, "report", name, f"{hosts}.csv")
        fits &= cpu <= CLUSTER_S and memory <= CLUSTER_GB
    return fits


def compare_rails(folder: Path, hosts: int, commit: str) -> bool:
    """Compare two versions on rails of four planes; return whether new / old time and memory are <= `RATIO`."""
    lists = [write_rail(folder, hosts, rail) for rail in range(RAILS)]
    source, rail, destination, _, amount = list_flows(hosts, across=False)
    parts = [(source + 1, destination + 1, amount // PLANES, rail * PLANES + plane) for plane in range(PLANES)]
    write_flows(folder / "rails.csv", "src_lid,dst_lid,bytes,rail", *np.concatenate(parts, axis=1))
    tree = folder / "tree"
    run(["git", "worktree", "add", "--quiet", "--detach", tree, commit], ROOT)
    try:
        build_kernels(tree)
        used: list[tuple[float, float]] = []
        for path in (os.environ.get("PYTHONPATH", ""), f"{tree}:{tree}/converter"):
            variables = {"PYTHONPATH": path, "XDG_CACHE_HOME": str(folder / f"cache{len(used)}")}
            for _ in range(2):  # the first run fills the cache of tables
                last = measure(
                    folder, "report", *lists, "rails.csv", "--json", variables=variables, output=f"{len(used)}.json"
                )
            used.append(last)
    finally:
        run(["git", "worktree", "remove", "--force", tree], ROOT)
    links = [json.loads((folder / f"{number}.json").read_text()) for number in range(2)]
    if different := [key for key in links[1].keys() - UNCOMPARED if not is_within(links[1][key], links[0][key])]:
        sys.exit(f"the versions' reports differ in {', '.join(different)}")
    ratios = [new / old for new, old in zip(*used, strict=True)]
    print(f"this version / {commit}: processor time {ratios[0]:.2f}, memory {ratios[1]:.2f} (limit {RATIO})")
    return bool(max(ratios) <= RATIO)


def is_within(old: object, new: object) -> bool:
    """Return whether a newer JSON contains all values of an older JSON. The newer JSON may have more keys."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(key in new and is_within(value, new[key]) for key, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(is_within, old, new))
    return old == new


def write_rail(folder: Path, hosts: int, rail: int) -> str:
    """Write a rail's planes as the dumps of an XDR subnet: one list of links, one file of tables. Return the list's
    name.
    """
    name = f"rail{rail + 1}.lst"
    with (folder / name).open("w") as links, (folder / f"rail{rail + 1}.fdbs").open("wb") as tables:
        for part in range(rail * PLANES, (rail + 1) * PLANES):
            made = generate(f"rail-optimised:{hosts}:planes={PLANES}@200", part, part)
            text = io.StringIO()
            write_lst(text, made.fabric, "synthetic")
            rows = text.getvalue().replace("PHY=4x LOG=ACT SPD=50", "PHY=1x LOG=ACT SPD=200")
            links.write(rows if part % PLANES == 0 else rows.split("\n", 1)[1])
            lid = np.array([b"0x%04x : " % each for each in range(made.tables.port.shape[1])])
            port = np.array([b"%03d  :\n" % each for each in range(256)])
            for guid, row in zip(made.tables.switch_guid.tolist(), made.tables.port, strict=True):
                known = np.flatnonzero(row != UNREACHABLE)
                tables.write(b"dump_ucast_routes: Switch 0x%016x\nLID    : Port : Hops : Optimal\n" % guid)
                tables.write(np.char.add(lid[known], port[row[known]]).tobytes())
    long_ago = time.time() - 60  # the cache ignores recently changed files, because they may still change
    os.utime(folder / f"rail{rail + 1}.fdbs", (long_ago, long_ago))
    return name


def write_all(path: Path) -> None:
    """Write flows from each host of the largest fabric to `PEERS` random hosts."""
    draw = np.random.default_rng(1)
    lid = np.arange(1, HOSTS + 1)
    rows = ["src_lid,dst_lid,bytes"]
    for _ in range(PEERS):
        to, amount = draw.permutation(lid), draw.integers(1, 1_000_000, HOSTS)
        rows += [f"{a},{b},{c}" for a, b, c in zip(lid, to, amount, strict=True) if a != b]
    path.write_text("\n".join(rows))


def write_job(path: Path) -> None:
    """Write traffic in which each rank sends to up to 30 random other ranks."""
    draw = np.random.default_rng(1)
    rows = ["src,dst,bytes,messages"]
    for rank in range(RANKS):
        peers = draw.choice(RANKS, 30, replace=False)
        rows += [f"{rank},{peer},{draw.integers(1, 1_000_000)},1" for peer in peers if peer != rank]
    path.write_text("\n".join(rows))


def write_bombs(folder: Path) -> None:
    """Write two small compressed files that expand to 3 GB: one letter, and blank lines after a table's header."""
    head = {"letters.lst.xz": b"", "lines.fdbs.xz": b"osm: Switch 0x0002c90200f00000\nLID : Port : Hops : Optimal\n"}
    for name, begin in head.items():
        part = (b"\n" if begin else b"a") * (1 << 24)
        with lzma.open(folder / name, "wb", preset=0) as bomb:
            bomb.write(begin)
            for _ in range(190):
                bomb.write(part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("all", "job", "clusters", "rails", "bombs"))
    parser.add_argument("--dumps", type=Path)
    parser.add_argument("--hosts", type=int, default=8192, help="number of hosts in `rails` (default: 8192)")
    parser.add_argument("--commit", default=COMMIT, help=f"commit that `rails` compares with (default: {COMMIT})")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("| command | wall time | processor time | memory |\n|---|---|---|---|")
        write_job(folder / "job.csv")
        if wanted.only in (None, "all"):
            write_all(folder / "all.csv")
            measure(folder, "report", LARGEST, "all.csv")
        if wanted.only in (None, "job"):
            measure(folder, "report", LARGE, "job.csv", "--placement", "random:1")
            measure(folder, "place", LARGE, "job.csv", "--time", "1")
        fits = True
        if wanted.only in (None, "clusters"):
            fits &= measure_clusters(folder)
        if wanted.only in (None, "rails"):
            fits &= compare_rails(folder, wanted.hosts, wanted.commit)
        if wanted.dumps:
            measure(folder, "report", str(wanted.dumps.resolve()), "job.csv", "--placement", "random:1")
        if wanted.only in (None, "bombs"):
            write_bombs(folder)
            measure(folder, "layout", "letters.lst.xz", "job.csv", allowed=(3,))
            shutil.copy(DEMO, folder / "demo.lst")
            table = ("--fdbs", "lines.fdbs.xz", "--placement", "packed")
            measure(folder, "layout", "demo.lst", "job.csv", *table, allowed=(3, 5))
    sys.exit(not fits)


if __name__ == "__main__":
    main()
