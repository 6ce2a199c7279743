# SPDX-License-Identifier: Apache-2.0
"""What another simulator, CODES, said of the same jobs on the same fabrics; see docs/simulation.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibprof_converter.simulation.engine import NOBODY, STEP, Client, Job
from ibprof_converter.simulation.network import Hardware, SimulatedNetwork

HARDWARE = Hardware(packet_bytes=4096, lane_bytes=65536, switch_ns=90, wire_ns=0, gbps=100)


@dataclass(frozen=True)
class Traffic:
    """Messages of a job: size, mean interval after each, messages of a client, and from start to start at least."""

    bytes: int
    interval_ns: float
    limit: int
    window_ns: float = 0.0


@dataclass(frozen=True)
class Measured:
    """Messages that began within the measured time, and what they took in ns."""

    messages: int
    mean: float
    p95: float


@dataclass(frozen=True)
class Setting:
    """A fabric of switches with `radix` ports, full on three levels, its jobs, and what CODES said of them.

    Attributes:
        radix: ports of a switch; its half: hosts of a leaf, leaves of a pod, links up.
        servers: on the last leaves of equal parts of the machine.
        io, mpi: the jobs; half of the other hosts each, all of them where there is no I/O.
        begin_ns, end_ns: messages that begin in between are measured.
        said: of each job.
        link_bytes: SHA-256 of the bytes that each switch's link ends carried, as little-endian uint64, by link end.
    """

    radix: int
    servers: int
    io: Traffic | None
    mpi: Traffic
    begin_ns: float
    end_ns: float
    said: dict[str, Measured]
    link_bytes: str

    @property
    def fabric(self) -> str:
        half = self.radix // 2
        return f"xgft:3:{half},{half},{self.radix}:1,{half},{half}@100"


SETTINGS = {
    "pairs": Setting(
        radix=8,
        servers=0,
        io=None,
        mpi=Traffic(65536, 20000, 300),
        begin_ns=1e06,
        end_ns=8e06,
        said={"mpi": Measured(31474, 8452.7, 12464.0)},
        link_bytes="e0b8351004a9c1507ff595d4b39603e0041b8a2d0d72677dedcb4c02b3522faf",
    ),
    "pairs512k": Setting(
        radix=12,
        servers=0,
        io=None,
        mpi=Traffic(524288, 50000, 40),
        begin_ns=1e06,
        end_ns=4e06,
        said={"mpi": Measured(10903, 66052.6, 111865.6)},
        link_bytes="c5b60a628bf621882092d57f16bdc7da048351de00a46095e3b46cbef58983d4",
    ),
    "checkpoint": Setting(
        radix=12,
        servers=24,
        io=Traffic(4194304, 0, 16),
        mpi=Traffic(4096, 500000, 100),
        begin_ns=1e07,
        end_ns=5e07,
        said={"io": Measured(2250, 3122508.2, 8020668.6), "mpi": Measured(15636, 21091.2, 111549.7)},
        link_bytes="09da28e4377d3e8dc3d67a650f7c2a87f514cc60427cd3cd1fcf4b34a84cd202",
    ),
    "throttle": Setting(
        radix=12,
        servers=24,
        io=Traffic(4194304, 0, 12, window_ns=4e06),
        mpi=Traffic(4096, 100000, 400),
        begin_ns=8e06,
        end_ns=4e07,
        said={"io": Measured(1625, 1462100.3, 3415369.6), "mpi": Measured(60840, 7219.5, 39127.4)},
        link_bytes="b340dd864bbd94e61a32fbb53ebb4112221503935bfe7627f0925cedaf984923",
    ),
    "checkpoint1024": Setting(
        radix=16,
        servers=56,
        io=Traffic(4194304, 0, 6),
        mpi=Traffic(4096, 100000, 200),
        begin_ns=4e06,
        end_ns=2e07,
        said={"io": Measured(1955, 2571470.7, 6168587.8), "mpi": Measured(65569, 17913.9, 95055.1)},
        link_bytes="ffa990ff980541ed0d38914190d42872b0db45f6bd87dea6fb68c9bf978f1148",
    ),
    "mpi4m": Setting(
        radix=12,
        servers=24,
        io=Traffic(4096, 500000, 60),
        mpi=Traffic(4194304, 1e06, 20),
        begin_ns=5e06,
        end_ns=2.5e07,
        said={"io": Measured(8132, 2944.4, 3077.1), "mpi": Measured(2919, 407567.2, 662117.5)},
        link_bytes="4f280b25a3e1b2db07212705ccd651fc0461993f0fc6192ea51bdf9dfec308e6",
    ),
}


def make_jobs(setting: Setting, network: SimulatedNetwork) -> tuple[list[Job], list[Client]]:
    """Draw who does what and when, as it was drawn for CODES: every start and every interval is the same there."""
    random = np.random.default_rng(1)
    half = setting.radix // 2
    leaves = network.hosts // half
    parts = -(-setting.servers // half)
    servers = np.array(
        [
            host
            for part in range(parts)
            for host in range(((part + 1) * leaves // parts - 1) * half, (part + 1) * leaves // parts * half)
        ],
        int,
    )[: setting.servers]
    free = random.permutation(np.setdiff1d(np.arange(network.hosts), servers))
    writers = free[: len(free) // 2] if setting.io else free[:0]
    talkers = free[len(writers) :][: (len(free) - len(writers)) // 2 * 2]
    drawn: list[tuple[Traffic, int, int, np.ndarray]] = []
    if setting.io:
        spread = int(max(setting.io.interval_ns, setting.io.window_ns or 1e6))
        turns = np.arange(setting.io.limit)
        for host in writers:
            start, first = int(random.integers(0, spread)), int(random.integers(len(servers)))
            drawn.append((setting.io, int(host), start, servers[(first + turns) % len(servers)]))
    order = random.permutation(len(talkers))
    partner = np.empty(len(talkers), int)
    partner[order[::2]], partner[order[1::2]] = order[1::2], order[::2]
    for number, host in enumerate(talkers):
        start = int(random.integers(0, int(setting.mpi.interval_ns)))
        drawn.append((setting.mpi, int(host), start, np.full(setting.mpi.limit, talkers[partner[number]])))
    jobs = [Job(name, limit=each.limit) for name, each in (("io", setting.io), ("mpi", setting.mpi)) if each]
    clients = []
    for traffic, host, start, to in drawn:
        steps = np.zeros(traffic.limit, STEP)
        steps["host"], steps["client"], steps["bytes"] = to, NOBODY, traffic.bytes
        steps["window"] = network.ticks(traffic.window_ns)
        pauses = np.round(traffic.interval_ns * random.uniform(0.5, 1.5, traffic.limit))
        steps["pause"] = np.rint(pauses / network.tick_ns)
        job = next(
            number for number, each in enumerate(jobs) if each.name == ("mpi" if traffic is setting.mpi else "io")
        )
        clients.append(Client(host, job, steps, start=network.ticks(start)))
    return jobs, clients
