# SPDX-License-Identifier: Apache-2.0
"""Measure time and largest memory of reports and placements on the largest fabrics, and of compression bombs.

python benchmarks/large_fabrics.py [--only all|job|bombs] [--dumps FOLDER]

The fabrics are synthetic: 46,656 hosts, each with 6 random peers, and a job of 512 ranks on 11,664 hosts whose network
is the bottleneck. `--dumps` adds the same job on a folder of dumps, read without a cache of tables.
"""

from __future__ import annotations

import argparse
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import ibprof_converter

HOSTS = 46_656
LARGEST = "xgft:3:36,36,36:1,18,18"
LARGE = "xgft:3:18,18,36:1,6,6"
PEERS = 6
RANKS = 512
DEMO = Path(ibprof_converter.__file__).parent / "data" / "demo-fabric" / "opensm-subnet.lst"


def measure(folder: Path, *words: str, allowed: tuple[int, ...] = (0,)) -> None:
    """Run `python -m ibprof`, and print its times and its largest resident memory."""
    begun = time.monotonic()
    environment = {**os.environ, "IBPROF_CACHE": "off"}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        [sys.executable, "-m", "ibprof", *words], cwd=folder, env=environment, stdout=quiet, stderr=quiet
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in allowed:
        sys.exit(f"ibprof {' '.join(words)}: status {process.returncode}")
    cpu, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6
    wall = time.monotonic() - begun
    print(f"| `{' '.join(words)}` | {wall:.1f} s | {cpu:.1f} s | {memory:.2f} GB |", flush=True)


def write_all(path: Path) -> None:
    """Write flows from each of the largest fabric's hosts to `PEERS` random ones."""
    draw = np.random.default_rng(1)
    lid = np.arange(1, HOSTS + 1)
    rows = ["src_lid,dst_lid,bytes"]
    for _ in range(PEERS):
        to, amount = draw.permutation(lid), draw.integers(1, 1_000_000, HOSTS)
        rows += [f"{a},{b},{c}" for a, b, c in zip(lid, to, amount, strict=True) if a != b]
    path.write_text("\n".join(rows))


def write_job(path: Path) -> None:
    """Write bytes between ranks, 30 random peers each."""
    draw = np.random.default_rng(1)
    rows = ["src,dst,bytes,messages"]
    for rank in range(RANKS):
        peers = draw.choice(RANKS, 30, replace=False)
        rows += [f"{rank},{peer},{draw.integers(1, 1_000_000)},1" for peer in peers if peer != rank]
    path.write_text("\n".join(rows))


def write_bombs(folder: Path) -> None:
    """Write small files that expand to 3 GB: of one letter, and of blank lines after the head of a table."""
    head = {"letters.lst.xz": b"", "lines.fdbs.xz": b"osm: Switch 0x0002c90200f00000\nLID : Port : Hops : Optimal\n"}
    for name, begin in head.items():
        part = (b"\n" if begin else b"a") * (1 << 24)
        with lzma.open(folder / name, "wb", preset=0) as bomb:
            bomb.write(begin)
            for _ in range(190):
                bomb.write(part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("all", "job", "bombs"))
    parser.add_argument("--dumps", type=Path)
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
        if wanted.dumps:
            measure(folder, "report", str(wanted.dumps.resolve()), "job.csv", "--placement", "random:1")
        if wanted.only in (None, "bombs"):
            write_bombs(folder)
            measure(folder, "layout", "letters.lst.xz", "job.csv", allowed=(3,))
            shutil.copy(DEMO, folder / "demo.lst")
            table = ("--fdbs", "lines.fdbs.xz", "--placement", "packed")
            measure(folder, "layout", "demo.lst", "job.csv", *table, allowed=(3, 5))


if __name__ == "__main__":
    main()
