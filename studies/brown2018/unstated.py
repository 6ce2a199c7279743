# SPDX-License-Identifier: Apache-2.0
"""Search for unstated values that reproduce the thesis's figures, and write `unstated.csv`.

python studies/brown2018/unstated.py [--minutes M] [--only CLAIM ...] [--inputs NAME ...] [--seed S]

Each element of `INPUTS` is a plausible set of unstated values, for all figures of both chapters. Each claim of `CLAIMS`
is tested with each set, in simulations with fewer messages than in the studies. No test begins after M minutes. Results
in `unstated.csv` are kept. The studies use the first set. Its results differ from the studies' results only because of
fewer messages.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from thesis_patterns import KIB, MIB, MS, THESIS_FABRIC, US, io, mpi
from thesis_results import NONE, adds_as, is_close, is_some

from ibprof_lab.lab_choices import ServerPlacement
from ibprof_lab.simulation.engine.packet_engine import Client, Job, Simulation, Stop
from ibprof_lab.simulation.engine.simulated_network import Hardware
from ibprof_lab.simulation.study.cell import Cell, Setting, find_assignment
from ibprof_lab.simulation.workload.host_assignment import HostAssignment, make_clients
from ibprof_lab.simulation.workload.workloads import IO, MPI, Workload

TABLE = Path(__file__).resolve().parent / "unstated.csv"
COLUMNS = ("inputs", "claim", "seed", "passes", "figures")


@dataclass(frozen=True)
class Inputs:
    """Values that the thesis does not state.

    Attributes:
        drawn: true if MPI processes choose random partners; false if partners send to each other.
        together: true if all clients start within 1 µs; false for starts spread over an interval.
        lane_bytes, packet_bytes, switch_ns: as in `Hardware`.
        throttled: fraction of the compute hosts on which the throttled I/O of figure 6.7 runs.
        message_step_bytes: as in `Hardware`, for adaptive routing.
        server_ns: time that a server needs for each byte of an arrived request; the request's time includes it.
    """

    drawn: bool = False
    together: bool = False
    lane_bytes: int = 64 * KIB
    packet_bytes: int = 4 * KIB
    switch_ns: float = 90.0
    throttled: float = 0.5
    message_step_bytes: int = 0
    server_ns: float = 0.0


INPUTS = {
    "usual": Inputs(),
    "random partners": Inputs(drawn=True),
    "starts together": Inputs(together=True),
    "random partners, starts together": Inputs(drawn=True, together=True),
    "random partners, buffers of 48 KiB": Inputs(drawn=True, lane_bytes=48 * KIB),
    "random partners, buffers of 48 KiB, switches of 200 ns": Inputs(drawn=True, lane_bytes=48 * KIB, switch_ns=200.0),
    "random partners, buffers of 32 KiB": Inputs(drawn=True, lane_bytes=32 * KIB),
    "random partners, packets of 8 KiB": Inputs(drawn=True, packet_bytes=8 * KIB),
    "I/O on 25% of the hosts in 6.7": Inputs(throttled=0.25),
    "I/O on 20% of the hosts in 6.7": Inputs(throttled=0.2),
    "random partners, buffers of 48 KiB, switches of 200 ns, I/O on 20% of the hosts in 6.7": Inputs(
        drawn=True, lane_bytes=48 * KIB, switch_ns=200.0, throttled=0.2
    ),
    "random partners, starts together, I/O on 25% of the hosts in 6.7": Inputs(
        drawn=True, together=True, throttled=0.25
    ),
    "buffers of 48 KiB": Inputs(lane_bytes=48 * KIB),
    "server at 12.5 GB/s": Inputs(server_ns=1 / 12.5),
    "server at 16 GB/s": Inputs(server_ns=1 / 16),
    "server at 12.5 GB/s, I/O on 25% of the hosts in 6.7": Inputs(server_ns=1 / 12.5, throttled=0.25),
    "server at 12.5 GB/s, I/O on 20% of the hosts in 6.7": Inputs(server_ns=1 / 12.5, throttled=0.2),
    "buffers of 48 KiB, server at 12.5 GB/s": Inputs(lane_bytes=48 * KIB, server_ns=1 / 12.5),
    "adaptive routing per message": Inputs(message_step_bytes=1),
    "adaptive routing per message, steps of 32 KiB": Inputs(message_step_bytes=32 * KIB),
    "adaptive routing per message, steps of 64 KiB": Inputs(message_step_bytes=64 * KIB),
}


@dataclass(frozen=True)
class Run:
    """Latencies of a job's messages, and the clients' mean time of a message plus the pause after it, in µs."""

    latency: npt.NDArray[np.float64]
    cycle_us: float

    @property
    def mean(self) -> float:
        """Return the mean latency, µs."""
        return float(self.latency.mean())

    def percentile(self, percent: float) -> float:
        """Return a percentile of the latencies, µs."""
        return float(np.percentile(self.latency, percent))


@dataclass(frozen=True)
class Laboratory:
    """Run simulations with one set of unstated values.

    Attributes:
        inputs: the set of values.
        seed: random seed of hosts, partners and starts.
    """

    inputs: Inputs
    seed: int

    def run(
        self,
        jobs: Sequence[Workload],
        measured: str,
        alone: bool = False,
        counts: tuple[int, int] = (20, 30),
        adaptive: bool = False,
        servers: ServerPlacement = ServerPlacement.ISOLATED,
        hops: float = 2e8,
    ) -> Run:
        """Return the latencies of a job.

        Args:
            counts: number of each client's first messages to leave out, and number of following messages to measure.
            hops: largest number of packet hops; the run ends then, even if messages remain.
        """
        hardware = Hardware(
            self.inputs.packet_bytes,
            self.inputs.lane_bytes,
            self.inputs.switch_ns,
            message_step_bytes=self.inputs.message_step_bytes,
        )
        served_ns = {job.name: job.bytes * self.inputs.server_ns if job.name == IO else 0.0 for job in jobs}
        jobs = [replace(job, interval_ns=job.interval_ns + served_ns[job.name]) for job in jobs]
        setting = Setting(THESIS_FABRIC, hardware, adaptive, 72, server_placement=servers)
        running = (measured,) if alone else (IO, MPI)
        assigned = find_assignment(Cell(setting, tuple(jobs), running, measured, self.seed))
        chosen = [number for number, job in enumerate(jobs) if job.name in running]
        kept = HostAssignment(assigned.servers, tuple(assigned.jobs[number] for number in chosen))
        network = setting.load()
        made, clients = make_clients(network, [jobs[number] for number in chosen], kept, (measured,), self.seed)
        simulation = Simulation(
            network, made, self._read(made, clients, network.ticks(US)), self.seed, adaptive, None, True
        )
        wanted = np.array([made[client.job].name == measured for client in clients])
        done, latencies = np.zeros(len(clients), int), []
        begun: dict[int, list[int]] = {}
        while (done[wanted] < sum(counts)).mean() > 0.02 and simulation.state.packet_hops < hops:
            for client, start, ticks in simulation.run(simulation.state.now + network.ticks(MS))[
                ["client", "start", "ticks"]
            ].tolist():
                begun.setdefault(client, []).append(start)
                if counts[0] <= done[client] < sum(counts):
                    latencies.append(ticks)
                done[client] += 1
            if simulation.state.stop in {Stop.DONE, Stop.DEADLOCK}:
                break
        cycles = [(starts[-1] - starts[0]) / (len(starts) - 1) for starts in begun.values() if len(starts) > 1]
        latency_ns = np.array(latencies) * network.tick_ns + served_ns[measured]
        return Run(latency_ns / 1e3, float(np.mean(cycles)) * network.tick_ns / 1e3)

    def _read(self, jobs: Sequence[Job], clients: list[Client], within: int) -> list[Client]:
        """Return the clients with start times and partners as `inputs` sets them."""
        random = np.random.default_rng([self.seed, 1])
        if self.inputs.together:
            clients = [replace(client, start=int(random.integers(within))) for client in clients]
        pairs = [number for number, client in enumerate(clients) if jobs[client.job].name == MPI]
        hosts = [clients[number].host for number in pairs]
        for number in pairs if self.inputs.drawn else ():
            to = clients[number].host
            while to == clients[number].host:
                to = hosts[int(random.integers(len(hosts)))]
            clients[number] = replace(clients[number], steps=[replace(clients[number].steps[0], host=to)])
        return clients

    def slow(self, jobs: Sequence[Workload], measured: str, counts: tuple[int, int] = (20, 30), **how: object) -> float:
        """Return the slow-down of a job: mean latency next to the other job / mean latency alone."""
        alone = self.run(jobs, measured, alone=True, counts=counts, **how)  # type: ignore[arg-type]
        return self.run(jobs, measured, counts=counts, **how).mean / alone.mean  # type: ignore[arg-type]


Found = tuple[bool, str]


def find_percentiles(lab: Laboratory) -> Found:
    first, second = (lab.run([io(), mpi(4 * MIB, at * MS)], MPI, alone=True).percentile(75) for at in (5, 1))
    return is_close(first, 351) and is_close(second, 630), f"{first:.0f} and {second:.0f} µs"


def find_small_alone(lab: Laboratory) -> Found:
    mean = lab.run([io(4 * KIB, US), mpi()], IO, alone=True).mean
    return is_close(mean, 3.07), f"{mean:.2f} µs"


def find_small_io(lab: Laboratory) -> Found:
    slow = lab.slow([io(4 * KIB, US), mpi(4 * MIB, 100 * US)], IO, (300, 900), hops=5e7)
    return adds_as(slow, 1.9), f"{slow:.2f}"


def find_largest(lab: Laboratory) -> Found:
    large, middle = (
        lab.slow([io(size, at * US), mpi()], MPI, hops=8e7) for size, at in ((4 * MIB, 100), (512 * KIB, 10))
    )
    return adds_as(large, 7.6) and large > middle, f"C {large:.2f}, B {middle:.2f}"


def find_elevated(lab: Laboratory) -> Found:
    """Check for slow-downs of MPI in charts D and G, with I/O every 1 µs and MPI every 500 µs."""
    slow = [lab.slow([io(4 * KIB, US), mpi(size, 500 * US)], MPI, (5, 20), hops=6e7) for size in (512 * KIB, 4 * MIB)]
    return all(map(is_some, slow)), "D {:.2f}, G {:.2f}".format(*slow)


def find_shares(lab: Laboratory) -> Found:
    means = [
        lab.run([io(4 * MIB, 2 * MS, share), mpi(share=1 - share)], IO, alone=True).mean for share in (0.25, 0.5, 0.75)
    ]
    ratios = [mean / means[0] for mean in means]
    return is_close(ratios[1], 1.8) and is_close(ratios[2], 3), " : ".join(f"{ratio:.1f}" for ratio in ratios)


def find_rare(lab: Laboratory, share: float, printed: float) -> Found:
    alone, other = run_rare(lab, share)
    slow = other.mean / alone.mean
    parts = "{:.0%} alone, {:.0%} next to MPI".format(*(run.latency.std() / run.mean for run in (alone, other)))
    return adds_as(slow, printed), f"{slow:.2f} (deviation {parts})"


def find_deviation(lab: Laboratory) -> Found:
    """Compare the coefficients of variation of a request's time, alone and next to MPI, with the thesis's values."""
    parts = [float(run.latency.std() / run.mean) for run in run_rare(lab, 0.5)]
    return is_close(parts[0], 0.08) and is_close(parts[1], 0.19), "{:.1%} alone, {:.1%} next to MPI".format(*parts)


def run_rare(lab: Laboratory, share: float) -> tuple[Run, Run]:
    """Return the runs of 4 MB I/O every 128 ms: alone, and next to 4 MB MPI."""
    jobs = [io(4 * MIB, 128 * MS, share), mpi(4 * MIB, 500 * US, 1 - share)]
    return lab.run(jobs, IO, alone=True, counts=(1, 3), hops=1e9), lab.run(jobs, IO, counts=(0, 2), hops=1e9)


def find_checkpointed(lab: Laboratory, share: float) -> tuple[float, float]:
    small, large = (
        lab.slow([io(share=1 - share), mpi(size, 500 * US, share)], MPI, hops=1e8) for size in (4 * KIB, MIB)
    )
    return small, large


def find_three_quarters(lab: Laboratory) -> Found:
    small, large = find_checkpointed(lab, 0.75)
    return adds_as(small, 3.2) and adds_as(large, 1.6), f"{large:.2f} to {small:.2f}"


def find_servers(lab: Laboratory) -> Found:
    one, two = (
        lab.slow([io(), mpi()], MPI, servers=where, hops=8e7)
        for where in (ServerPlacement.ISOLATED, ServerPlacement.RANDOM)
    )
    return adds_as(two, one), f"isolated {one:.2f}, random {two:.2f}"


def find_throttled(lab: Laboratory) -> Found:
    """Check figure 6.7: a window of 2 ms halves MPI's time; clients take 9 to 22% longer; requests fit into windows."""
    share, said, passes = lab.inputs.throttled, [], True
    for window in (0.0, 2.0, 2.5, 4.0):
        jobs = [replace(io(share=share), window_ns=window * MS), mpi(share=1 - share)]
        writes, sends = lab.run(jobs, IO, counts=(15, 30)), lab.run(jobs, MPI, counts=(20, 60), hops=8e7)
        if not window:
            usual, cycle = sends.mean, writes.cycle_us
        passes = passes and writes.mean < 1e3 * (window or 1e9)
        passes = passes and (window != 2.0 or (usual / sends.mean >= 2 and 1.09 <= writes.cycle_us / cycle <= 1.22))
        quicker, longer = usual / sends.mean, writes.cycle_us / cycle - 1
        figures = (
            f"MPI {quicker:.2f} times as quick, time of I/O {longer:+.0%}, time of a request {writes.mean / 1e3:.2f} ms"
        )
        said.append(f"window {window:g} ms: {figures}")
    return passes, "; ".join(said)


def find_adaptive(lab: Laboratory, measured: str) -> Found:
    ratios = []
    for at in (5 * MS, 500 * US, 10 * US):
        jobs = [io(512 * KIB, at), mpi(512 * KIB, at)]
        static, adaptive = (lab.run(jobs, measured, alone=True, adaptive=way, hops=5e7).mean for way in (False, True))
        ratios.append(adaptive / static)
    return min(ratios) > 1, ", ".join(f"{ratio:.2f}" for ratio in ratios)


BEFORE = {5 * MS: (0, 2), 1 * MS: (4, 8), 500 * US: (12, 20)}
"""Interval of 512 KB I/O above the threshold -> numbers of a client's first messages to leave out, and to measure."""

OTHERS = (5 * MS, 500 * US, 10 * US)
"""Intervals of MPI next to 512 KB I/O."""


def pair_512_kb(
    lab: Laboratory, at: float, other: float, measured: str, adaptive: bool = True, alone: bool = False
) -> Run:
    """Return the run of I/O or MPI of 512 KB. I/O has the interval `at`, MPI the interval `other`."""
    counts = BEFORE.get(at, (12, 20)) if measured == IO else (12, 30)
    jobs = [io(512 * KIB, at), mpi(512 * KIB, other)]
    return lab.run(jobs, measured, alone, counts, adaptive, hops=8e7)


def find_adaptive_slow(lab: Laboratory, measured: str) -> Found:
    """Check that the other job slows no job of 512 KB, with adaptive routing and I/O above the threshold."""
    slow = [
        pair_512_kb(lab, at, other, measured).mean / pair_512_kb(lab, at, other, measured, alone=True).mean
        for at in BEFORE
        for other in OTHERS
    ]
    return max(slow) <= 1 + NONE, f"slow-down {min(slow):.2f} to {max(slow):.2f} in {len(slow)} cases"


def find_adaptive_past(lab: Laboratory, measured: str) -> Found:
    """Compare a job's times with adaptive and with static routing, at I/O intervals below the threshold."""
    runs = [(at, other, False) for at in (100 * US, 10 * US) for other in OTHERS]
    runs += [(at, OTHERS[0], True) for at in (100 * US, 10 * US) if measured == IO]
    ratios = []
    for at, other, alone in runs:
        static, adaptive = (
            pair_512_kb(lab, at, other, measured, adaptive=way, alone=alone).mean for way in (False, True)
        )
        ratios.append(adaptive / static)
    said = f"{min(ratios):.2f} to {max(ratios):.2f} times as long in {len(ratios)} cases"
    return all(is_close(ratio, 1) for ratio in ratios), said


def find_threshold(
    lab: Laboratory, size: int, before: float, past: float, last: float, adaptive: bool = False
) -> Found:
    """Check that the threshold of I/O alone lies between the intervals `before` and `past`.

    The threshold is the longest interval with at least 90% of the throughput at the interval `last`.
    """
    counts = (12, 20)
    runs = [
        lab.run([io(size, at), mpi()], IO, alone=True, counts=counts, adaptive=adaptive) for at in (before, past, last)
    ]
    rates = [1 / run.cycle_us for run in runs]
    said = f"a request takes {runs[0].mean:.0f} µs at {before / US:g} µs, {runs[1].mean:.0f} µs at {past / US:g} µs"
    return rates[0] < 0.9 * rates[2] <= rates[1], said


def find_equal_times(lab: Laboratory) -> Found:
    large, congested = (
        lab.run([io(4 * MIB, at, share), mpi(share=1 - share)], IO, alone=True).mean
        for at, share in ((2 * MS, 0.75), (100 * US, 0.5))
    )
    return is_close(large, congested), f"{large:.0f} and {congested:.0f} µs"


CLAIMS: dict[str, Callable[[Laboratory], Found]] = {
    "5.5 I: 75th percentiles of 4 MB MPI alone are 351 and 630 µs": find_percentiles,
    "5.3: threshold of 4 MB I/O": lambda lab: find_threshold(lab, 4 * MIB, 5 * MS, 1 * MS, 100 * US),
    "5.3: threshold of 512 KB I/O": lambda lab: find_threshold(lab, 512 * KIB, 500 * US, 100 * US, 10 * US),
    "5.5: largest slow-down of MPI is 7.6, in chart C": find_largest,
    "5.3 C: 4 KB I/O alone takes 3.07 µs": find_small_alone,
    "5.3 C: 4 KB I/O is slowed 1.9 times": find_small_io,
    "5.11: MPI with 75% of the hosts is slowed 1.6 to 3.2 times": find_three_quarters,
    "6.5: slow-downs of MPI with random and isolated servers are similar": find_servers,
    "5.10: times of I/O alone with 25, 50, 75% of the hosts are 1 : 1.8 : 3": find_shares,
    "5.10: I/O with 75% of the hosts at 2 ms takes as long as with 50% at 100 µs": find_equal_times,
    "5.10: I/O with 25% of the hosts at 128 ms is slowed 1.18 times": lambda lab: find_rare(lab, 0.25, 1.18),
    "6.2: I/O with 50% of the hosts at 128 ms is slowed 1.12 times": lambda lab: find_rare(lab, 0.5, 1.118),
    "6.2: deviation of I/O at 128 ms is 8% alone and 19% next to MPI": find_deviation,
    "6.7: effects of the throttle": find_throttled,
    "5.5 D, G: MPI is slowed": find_elevated,
    "5.9: MPI alone takes longer with adaptive routing": lambda lab: find_adaptive(lab, MPI),
    "5.8: I/O alone takes longer with adaptive routing": lambda lab: find_adaptive(lab, IO),
    "5.8: with adaptive routing, I/O is not slowed at intervals above its threshold": lambda lab: find_adaptive_slow(
        lab, IO
    ),
    "5.9: with adaptive routing, MPI is not slowed at I/O intervals above the threshold": lambda lab: (
        find_adaptive_slow(lab, MPI)
    ),
    "5.8: I/O at intervals below its threshold is as fast with adaptive routing": lambda lab: find_adaptive_past(
        lab, IO
    ),
    "5.9: MPI next to I/O at intervals below its threshold is as fast with adaptive routing": lambda lab: (
        find_adaptive_past(lab, MPI)
    ),
    "5.8: threshold of I/O is the same with adaptive routing": lambda lab: find_threshold(
        lab, 512 * KIB, 500 * US, 100 * US, 10 * US, adaptive=True
    ),
}


def read_table() -> list[dict[str, str]]:
    if not TABLE.exists():
        return []
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--only", nargs="*", default=[], metavar="CLAIM", help="beginnings of claims' names")
    parser.add_argument("--inputs", nargs="*", default=list(INPUTS), choices=INPUTS, metavar="NAME")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    until = time.monotonic() + 60 * wanted.minutes
    there = {(row["inputs"], row["claim"], row["seed"]) for row in read_table()}
    if not TABLE.exists():
        TABLE.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    for claim, find in CLAIMS.items():
        for name in wanted.inputs:
            is_wanted = not wanted.only or claim.startswith(tuple(wanted.only))
            if not is_wanted or (name, claim, str(wanted.seed)) in there or time.monotonic() > until:
                continue
            passes, figures = find(Laboratory(INPUTS[name], wanted.seed))
            with TABLE.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerow([name, claim, wanted.seed, int(passes), figures])
            print(f"{claim} | {name} | {'pass' if passes else 'mismatch'} | {figures}", flush=True)


if __name__ == "__main__":
    main()
