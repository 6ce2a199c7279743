# SPDX-License-Identifier: Apache-2.0
"""Measure the speed of the packet simulation, on growing fat-trees and in the settings of the comparison with CODES.

Run it from a checkout, with ibprof installed:

    python benchmarks/simulation.py [--hops N] [--hosts N] [--baseline LIBRARY]

The result is the engine's processor time per packet-hop, on one core. For each simulated slice of 50 µs, the shortest
time of all runs counts. --baseline names libibprof_kernels.so of another build with the same interface. In this case,
each simulation runs with both libraries in turn, and all bits of results must be equal.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.native import libraries
from ibprof_lab.lab_choices import JobPlacement, ServerPlacement
from ibprof_lab.simulation.engine.packet_engine import Simulation, Stop
from ibprof_lab.simulation.engine.simulated_network import index_network
from ibprof_lab.simulation.workload.host_assignment import assign_hosts, make_clients
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
"""A checkpoint and an MPI job, each on half of the hosts. One host in 18 is a server."""

SLICE_NS = 50e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--hops", type=float, default=1e7, metavar="N", help="packet-hops of each run (default: 1e7)")
    parser.add_argument("--hosts", type=int, default=max(GROWTH), metavar="N", help="hosts of the largest fabric")
    parser.add_argument("--baseline", metavar="LIBRARY", help="libibprof_kernels.so to compare with")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each simulation (default: 3)")
    arguments = parser.parse_args()
    for hosts in GROWTH:
        if hosts <= arguments.hosts:
            for adaptive in (False, True):
                name = f"{hosts} hosts, {'adaptive' if adaptive else 'static'}"
                compare(name, partial(start_growth, hosts, adaptive), arguments)
    for name in SETTINGS:
        compare(name, partial(start_setting, name), arguments)


@dataclass(frozen=True)
class Measured:
    """Number of packet-hops, seconds of each slice, growth of memory in bytes, and a digest of the results."""

    hops: int
    seconds: npt.NDArray[np.float64]
    memory: int
    digest: str


def compare(name: str, start: Callable[[], Simulation], arguments: argparse.Namespace) -> None:
    """Print the time of a packet-hop, and its ratio to the baseline's time.

    Raises:
        SystemExit: the results differ.
    """
    found: dict[str | None, list[Measured]] = {None: []} | ({arguments.baseline: []} if arguments.baseline else {})
    for _ in range(arguments.rounds):
        for library, runs in found.items():
            # Each run has a new process, so that the memory of earlier runs is not measured.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                runs.append(pool.submit(measure, start, arguments.hops, library).result())
    if len({run.digest for runs in found.values() for run in runs}) > 1:
        raise SystemExit(f"{name}: the results differ")
    hops, memory = found[None][0].hops, found[None][0].memory
    times = [np.minimum.reduce([run.seconds for run in runs]).sum() / hops * 1e9 for runs in found.values()]
    baseline = (
        f"; baseline {times[1]:.1f} ns, {times[1] / times[0]:.2f} times as long, same results" if times[1:] else ""
    )
    print(f"{name}: {times[0]:.1f} ns a packet-hop; memory {memory / 1e6:.0f} MB{baseline}", flush=True)


def measure(start: Callable[[], Simulation], hops: float, library: str | None) -> Measured:
    """Run a simulation up to a number of packet-hops."""
    if library:
        vars(libraries)["find_kernels"] = lambda: Path(library)
    began = resident_bytes()
    simulation = start()
    digest, seconds = hashlib.sha256(), []
    while simulation.state.packet_hops < hops and simulation.state.stop != Stop.DONE:
        until = simulation.state.now + simulation.network.ticks(SLICE_NS)
        before = time.process_time()
        samples = simulation.run(until)
        seconds.append(time.process_time() - before)
        digest.update(samples.tobytes())
    ends = simulation.look_at_ends()
    for array in (ends.bytes, ends.busy, ends.queued, ends.most_queued):
        digest.update(array.tobytes())
    state = simulation.state
    digest.update(repr(state).encode())
    return Measured(state.packet_hops, np.array(seconds), resident_bytes() - began, digest.hexdigest())


def start_growth(hosts: int, adaptive: bool) -> Simulation:
    network = index_network(read_subnet(GROWTH[hosts]), HARDWARE)
    random = np.random.default_rng(1)
    assigned = assign_hosts(
        network, JOBS, network.hosts // 18, ServerPlacement.ISOLATED, JobPlacement.RANDOM_NODE, random
    )
    jobs, clients = make_clients(network, JOBS, assigned, ["mpi"], seed=1)
    return Simulation(network, jobs, clients, adaptive=adaptive)


def start_setting(name: str) -> Simulation:
    setting = SETTINGS[name]
    network = index_network(read_subnet(setting.fabric), HARDWARE)
    jobs, clients = make_jobs(setting, network)
    return Simulation(network, jobs, clients, adaptive=setting.adaptive)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


if __name__ == "__main__":
    main()
