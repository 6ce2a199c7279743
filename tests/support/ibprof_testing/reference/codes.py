# SPDX-License-Identifier: Apache-2.0
"""Results of another simulator, CODES, for the same jobs on the same fabrics; see benchmarks/codes/README.md."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ibprof_lab.simulation.engine.packet_engine import NOBODY, STEP, Client, Job
from ibprof_lab.simulation.engine.simulated_network import Hardware, SimulatedNetwork

HARDWARE = Hardware(packet_bytes=4096, lane_bytes=65536, switch_ns=90, wire_ns=0, gbps=100)


@dataclass(frozen=True)
class Traffic:
    """The messages that each client of a job sends.

    Attributes:
        bytes: size of a message.
        interval_ns: mean pause after a message.
        limit: number of messages.
        window_ns: minimum time from the start of a message to the start of the next.
    """

    bytes: int
    interval_ns: float
    limit: int
    window_ns: float = 0.0


@dataclass(frozen=True)
class Measured:
    """The number of messages that began within the measured time, and their latencies in ns."""

    messages: int
    mean: float
    p95: float


@dataclass(frozen=True)
class Setting:
    """A full three-level fabric of switches with `radix` ports, its jobs, and CODES' results.

    Attributes:
        radix: ports of a switch; half of the ports lead up. Each leaf has radix/2 hosts, each pod has radix/2 leaves.
        servers: number of I/O servers. The servers are on the last leaf of each of several equal parts of the machine.
        io, mpi: the jobs. Two jobs each get half of the hosts that are not servers; a single job gets all of them.
        begin_ns, end_ns: messages that begin between these times are measured.
        said: CODES' results for each job.
        link_bytes: SHA-256 of the bytes of each switch port (little-endian uint64, sorted by port); empty if routing
            is adaptive.
        adaptive: True if packets take the least occupied port.
    """

    radix: int
    servers: int
    io: Traffic | None
    mpi: Traffic
    begin_ns: float
    end_ns: float
    said: dict[str, Measured]
    link_bytes: str = ""
    adaptive: bool = False

    @property
    def fabric(self) -> str:
        half = self.radix // 2
        return f"xgft:3:{half},{half},{self.radix}:1,{half},{half}@100"


_PAIRS_512K = Setting(
    radix=12,
    servers=0,
    io=None,
    mpi=Traffic(524288, 50000, 40),
    begin_ns=1e06,
    end_ns=4e06,
    said={"mpi": Measured(10903, 66052.6, 111865.6)},
    link_bytes="c5b60a628bf621882092d57f16bdc7da048351de00a46095e3b46cbef58983d4",
)

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
    "pairs512k": _PAIRS_512K,
    "pairs512k-adaptive": replace(
        _PAIRS_512K, said={"mpi": Measured(12654, 45142.5, 46721.6)}, link_bytes="", adaptive=True
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
    """Draw the jobs' hosts, starts and messages. Starts and intervals are the same as in the runs with CODES."""
    random = np.random.default_rng(1)
    servers = _place_servers(setting, network.hosts)
    free = random.permutation(np.setdiff1d(np.arange(network.hosts), servers))
    writers = free[: len(free) // 2] if setting.io else free[:0]
    talkers = free[len(writers) :][: (len(free) - len(writers)) // 2 * 2]
    drawn = _draw_writers(setting.io, writers, servers, random) if setting.io else []
    drawn += _draw_talkers(setting.mpi, talkers, random)
    jobs = [Job(name, limit=each.limit) for name, each in (("io", setting.io), ("mpi", setting.mpi)) if each]
    number = {job.name: index for index, job in enumerate(jobs)}
    return jobs, [_make_client(each, number[each.job], network, random) for each in drawn]


@dataclass(frozen=True)
class _Drawn:
    """A client: job, host, start in ns, and the destination host of each message."""

    job: str
    traffic: Traffic
    host: int
    start_ns: int
    to: np.ndarray


def _place_servers(setting: Setting, hosts: int) -> np.ndarray:
    """Divide the machine into equal parts, and return the hosts of the last leaf of each part."""
    half = setting.radix // 2
    leaves, parts = hosts // half, -(-setting.servers // half)
    last = [(part + 1) * leaves // parts - 1 for part in range(parts)]
    found = np.array([leaf * half + port for leaf in last for port in range(half)], int)
    return found[: setting.servers]


def _draw_writers(
    traffic: Traffic, hosts: np.ndarray, servers: np.ndarray, random: np.random.Generator
) -> list[_Drawn]:
    spread = int(max(traffic.interval_ns, traffic.window_ns or 1e6))
    turns = np.arange(traffic.limit)
    drawn = []
    for host in hosts:
        start, first = int(random.integers(0, spread)), int(random.integers(len(servers)))
        drawn.append(_Drawn("io", traffic, int(host), start, servers[(first + turns) % len(servers)]))
    return drawn


def _draw_talkers(traffic: Traffic, hosts: np.ndarray, random: np.random.Generator) -> list[_Drawn]:
    order = random.permutation(len(hosts))
    partner = np.empty(len(hosts), int)
    partner[order[::2]], partner[order[1::2]] = order[1::2], order[::2]
    return [
        _Drawn("mpi", traffic, int(host), int(random.integers(0, int(traffic.interval_ns))), np.full(traffic.limit, to))
        for host, to in zip(hosts, hosts[partner], strict=True)
    ]


def _make_client(drawn: _Drawn, job: int, network: SimulatedNetwork, random: np.random.Generator) -> Client:
    traffic = drawn.traffic
    steps = np.zeros(traffic.limit, STEP)
    steps["host"], steps["client"], steps["bytes"] = drawn.to, NOBODY, traffic.bytes
    steps["window"] = network.ticks(traffic.window_ns)
    pauses = np.round(traffic.interval_ns * random.uniform(0.5, 1.5, traffic.limit))
    steps["pause"] = np.rint(pauses / network.tick_ns)
    return Client(drawn.host, job, steps, start=network.ticks(drawn.start_ns))
