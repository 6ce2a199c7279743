# SPDX-License-Identifier: Apache-2.0
"""Measure how fast packets are simulated, on ever larger fat-trees and in the settings of the comparison with CODES.

Run it where ibprof is installed, from a checkout:  python benchmarks/simulation.py [--hops N] [--hosts N]
A rate is packet-hops per second of the engine's processor time, on one core: the best of three runs.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from ibprof_lab.lab_choices import JobPlacement, ServerPlacement
from ibprof_lab.simulation.engine.packet_engine import Simulation, Stop
from ibprof_lab.simulation.engine.simulated_network import index_network
from ibprof_lab.simulation.workload.host_assignment import assign_hosts
from ibprof_lab.simulation.workload.job_clients import make_clients
from ibprof_lab.simulation.workload.workloads import Role, Workload
from ibprof_testing.reference.codes import HARDWARE, SETTINGS, make_jobs
from ibprof_testing.samples.fabrics import read_subnet

GROWTH = {
    324: "xgft:2:18,18:1,18@100",
    1296: "xgft:3:18,18,4:1,18,9@100",
    3888: "xgft:3:18,18,12:1,18,18@100",
    11664: "xgft:3:18,18,36:1,18,18@100",
}
JOBS = (Workload("io", Role.IO, 4 << 20), Workload("mpi", Role.PAIRS, 4096, interval_ns=500e3))
"""A checkpoint and an MPI job, each on half of the hosts; one host in 18 is a server."""

ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--hops", type=float, default=1e7, metavar="N", help="of each run (default: 1e7)")
    parser.add_argument("--hosts", type=int, default=max(GROWTH), metavar="N", help="of the largest fabric")
    arguments = parser.parse_args()
    for hosts, fabric in GROWTH.items():
        if hosts <= arguments.hosts:
            # A process for each, so that memory used earlier does not count.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                print(pool.submit(measure_growth, fabric, arguments.hops).result(), flush=True)
    for name, setting in SETTINGS.items():
        network = index_network(read_subnet(setting.fabric), HARDWARE)
        jobs, clients = make_jobs(setting, network)
        hops, seconds = run(partial(Simulation, network, jobs, clients, adaptive=setting.adaptive), float("inf"))
        print(f"{name}: {hops / seconds / 1e6:.1f} million packet-hops a second; {hops} in {seconds:.3f} s", flush=True)


def measure_growth(fabric: str, hops: float) -> str:
    network = index_network(read_subnet(fabric), HARDWARE)
    began = resident_bytes()
    random = np.random.default_rng(1)
    assigned = assign_hosts(
        network, JOBS, network.hosts // 18, ServerPlacement.ISOLATED, JobPlacement.RANDOM_NODE, random
    )
    jobs, clients = make_clients(network, JOBS, assigned, ["mpi"], seed=1)
    kept: list[Simulation] = []

    def start() -> Simulation:
        kept[:] = [Simulation(network, jobs, clients)]
        return kept[0]

    done, seconds = run(start, hops)
    memory, links = resident_bytes() - began, len(network.end_to) // 2
    return (
        f"{network.hosts} hosts, {links} links: {done / seconds / 1e6:.1f} million packet-hops a second; "
        f"{memory / 1e6:.0f} MB, {memory / network.hosts / 1e3:.1f} kB a host, {memory / links / 1e3:.1f} kB a link"
    )


def run(start: Callable[[], Simulation], hops: float) -> tuple[int, float]:
    """Return the packet-hops and the least seconds of several runs."""
    best = float("inf")
    for _ in range(ROUNDS):
        simulation = start()
        began = time.process_time()
        while simulation.state.packet_hops < hops and simulation.state.stop != Stop.DONE:
            simulation.run(simulation.state.now + simulation.network.ticks(50e3))
        best = min(best, time.process_time() - began)
        done = simulation.state.packet_hops
    return done, best


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


if __name__ == "__main__":
    main()
