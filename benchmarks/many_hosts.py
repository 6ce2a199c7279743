# SPDX-License-Identifier: Apache-2.0
"""Measure time and memory of commands that infer a fabric from many hosts' delays, or use the inferred fabric.

Run it from a checkout, with ibprof installed. 10,000 hosts take 2 GB in the folder:

    python benchmarks/many_hosts.py [--hosts 10000] [--folder DIR]

The fabric has 20 hosts on each leaf switch, 25 leaf switches on each pod switch, and one top switch. Errors are 5%.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sysconfig
import tempfile
import time
from pathlib import Path

import numpy as np

from ibprof_lab.latency.files.delay_files import write_delays
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.topology.model.topology_files import read_topology
from ibprof_lab.topology.throughput.link_throughput import ThroughputMeasurement

LEAF, POD = 20, 500
SCRIPTS = Path(sysconfig.get_path("scripts"))


def write_input(folder: Path, hosts: int) -> None:
    """Write plan.dot, the plan of a fabric, and delays.nc, the delays computed for this fabric."""
    host = np.arange(hosts)
    matrix = np.full((hosts, hosts), 6e-6, np.float32)
    for row in range(hosts):
        matrix[row, host // POD == row // POD] = 4e-6
        matrix[row, host // LEAF == row // LEAF] = 2e-6
    draw = np.random.default_rng(1)
    for row in range(hosts):
        matrix[row] *= np.exp(0.05 * draw.standard_normal(hosts, np.float32))
        matrix[row, row] = 0
    write_delays(folder / "delays.nc", Delays(tuple(f"n{each}" for each in host), np.array([8]), matrix[None]))
    lines = [f"n{each} -- leaf{each // LEAF} [gbps=100];" for each in host]
    lines += [f"leaf{each} -- pod{each * LEAF // POD} [gbps=400];" for each in range(-(-hosts // LEAF))]
    lines += [f"pod{each} -- top [gbps=400];" for each in range(-(-hosts // POD))]
    (folder / "plan.dot").write_text("\n".join(["graph plan {", *lines, "}"]))


def run(folder: Path, *words: str) -> None:
    begun = time.perf_counter()
    with subprocess.Popen([SCRIPTS / words[0], *words[1:]], cwd=folder, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    took = time.perf_counter() - begun
    if process.returncode:
        raise SystemExit(f"{' '.join(words)}: status {process.returncode}")
    show(" ".join(words), took, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6)


def show(what: str, took: float, used: float, gigabytes: float | None = None) -> None:
    memory = "" if gigabytes is None else f"{gigabytes:.2f} GB"
    print(f"| `{what}` | {took:.1f} s | {used:.1f} s | {memory} |", flush=True)


def plan_throughput(folder: Path) -> None:
    topology = read_topology(folder / "topology.json")
    begun, used = time.perf_counter(), time.process_time()
    rounds = ThroughputMeasurement(topology).rounds
    show(f"throughput: plan {rounds} rounds", time.perf_counter() - begun, time.process_time() - used)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        write_input(folder, arguments.hosts)
        print("| command | wall time | processor time | memory |\n|---|---|---|---|")
        run(folder, "ibprof-topology", "infer", "delays.nc", "-o", "topology.json", "-o", "topology.lst")
        run(folder, "ibprof-topology", "view", "topology.json", "-o", "space.html")
        run(folder, "ibprof-layout", "topology.lst", "pattern:shift:20:1000", "-o", "links.csv")
        run(folder, "ibprof-layout", "topology.lst", "pattern:all-to-all:1000", "-o", "links.csv")
        run(folder, "ibprof-topology", "compare", "delays.nc", "plan.dot", "--fail")
        plan_throughput(folder)


if __name__ == "__main__":
    main()
