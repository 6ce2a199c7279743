# SPDX-License-Identifier: Apache-2.0
"""Compare each message's latency in ibprof and CODES, in disputed cells of the study brown2018 (1,296 hosts).

python benchmarks/codes/cells.py --codes BUILD -o FOLDER [--hours H] [--window MS] [--seed S] [CELL ...]

BUILD is a build folder of CODES (github.com/codes-org/codes), made with CMake for MPICH. Both simulate the same
messages (start times, destinations, pauses) on CODES' own fat-tree, `codes:72,36`. Messages are compared if they have
the same client and number, and start within the window in both simulators. A stopped benchmark continues where it
ended. A cell is repeated if it reached a time limit below H. The program prints a row for each job of a cell.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ibprof_lab.lab_choices import ServerPlacement
from ibprof_lab.simulation.engine.packet_engine import NOBODY, STEP, Client, Job, Simulation
from ibprof_lab.simulation.engine.simulated_network import Hardware, SimulatedNetwork
from ibprof_lab.simulation.study.cell import Cell, NetworkSource, Setting, find_assignment, load_network
from ibprof_lab.simulation.workload.workloads import IO, MPI, Role, Workload

FABRIC = "codes:72,36@100"
LEAVES, HALF = 72, 18
SERVERS = 72
KIB, MIB, US, MS = 1 << 10, 1 << 20, 1e3, 1e6
JITTER = 0.05
STOPPED = 9
"""Exit status if the time limit ended the simulation with CODES."""

BEGIN, BEYOND = 0.2, 0.25
"""Parts of the simulation without compared messages, as fractions of the window: at its beginning, and after it."""


@dataclass(frozen=True)
class Load:
    """A job: bytes of a message, ns from a message's end to the next start, fraction of the compute hosts."""

    bytes: int
    interval_ns: float
    share: float = 0.5


@dataclass(frozen=True)
class Disputed:
    """A cell: jobs, placement of servers, routing, and the default simulated time in ms."""

    io: Load | None
    mpi: Load | None
    adaptive: bool = False
    servers: ServerPlacement = ServerPlacement.ISOLATED
    window_ms: float = 10.0


def list_cells() -> dict[str, Disputed]:
    checkpoint, small = Load(4 * MIB, 0), Load(4 * KIB, 500 * US)
    middle, random = Load(512 * KIB, 500 * US), ServerPlacement.RANDOM
    cells = {
        "6.5: 4 KB MPI alone, random servers": Disputed(None, small, servers=random, window_ms=4),
        "6.5: 4 KB MPI next to a checkpoint, random servers": Disputed(checkpoint, small, servers=random, window_ms=12),
        "6.5: 4 KB MPI next to a checkpoint, isolated servers": Disputed(checkpoint, small, window_ms=12),
    }
    for adaptive in (False, True):
        how = "adaptive" if adaptive else "static"
        cells[f"5.8: 512 KB I/O alone, {how} routing"] = Disputed(middle, None, adaptive, window_ms=6)
        cells[f"5.9: 512 KB MPI alone, {how} routing"] = Disputed(None, middle, adaptive, window_ms=4)
        cells[f"5.8, 5.9: 512 KB I/O next to 512 KB MPI, {how} routing"] = Disputed(
            middle, middle, adaptive, window_ms=6
        )
    for share in (0.25, 0.5, 0.75):
        name = f"5.10: 4 MB I/O alone at 2 ms, {share:.0%} of the hosts"
        cells[name] = Disputed(Load(4 * MIB, 2 * MS, share), None, window_ms=15)
    for share in (0.25, 0.5):
        rare, large = Load(4 * MIB, 128 * MS, share), Load(4 * MIB, 500 * US, 1 - share)
        name = f"{'6.2' if share == 0.5 else '5.10'}: 4 MB I/O at 128 ms, {share:.0%} of the hosts"
        cells[f"{name}, alone"] = Disputed(rare, None, window_ms=100)
        cells[f"{name}, next to 4 MB MPI"] = Disputed(rare, large, window_ms=100)
    return cells


@dataclass(frozen=True)
class Given:
    """A client's messages: host, job, start in ns, size, and the destination and following pause of each message."""

    host: int
    job: str
    start_ns: float
    bytes: int
    to: np.ndarray
    pause_ns: np.ndarray


def make_messages(cell: Disputed, seed: int, window_ns: float) -> list[Given]:
    """Draw the messages of each client. A job's messages do not depend on the other job."""
    loads = {IO: cell.io, MPI: cell.mpi}
    shares = {name: load.share if load else 0.5 for name, load in loads.items()}
    if cell.io and not cell.mpi:
        shares[MPI] = 1 - shares[IO]
    jobs = tuple(Workload(name, Role.IO, 1, share=share) for name, share in shares.items())
    setting = Setting(FABRIC, servers=SERVERS, server_placement=cell.servers)
    assigned = find_assignment(Cell(setting, jobs, (IO,), IO, seed))
    found = []
    for number, (name, load) in enumerate(loads.items()):
        random = np.random.default_rng([seed, number])
        hosts = assigned.jobs[number]
        order = random.permutation(len(hosts))[: len(hosts) // 2 * 2]
        partner = np.full(len(hosts), -1)
        partner[order[::2]], partner[order[1::2]] = order[1::2], order[::2]
        if load is None:
            continue
        shortest_ns = load.bytes * 8 / 100
        count = int(window_ns * (1 + BEYOND) / (shortest_ns + load.interval_ns * (1 - JITTER))) + 2
        spread = load.interval_ns + shortest_ns + 1000
        for host, other in zip(hosts.tolist(), partner.tolist(), strict=True):
            start = float(random.integers(int(spread)))
            pause = np.round(load.interval_ns * random.uniform(1 - JITTER, 1 + JITTER, count))
            first = int(random.integers(SERVERS))
            to = assigned.servers[(first + np.arange(count)) % SERVERS]
            if name == MPI:
                if other < 0:
                    continue
                to = np.full(count, hosts[other])
            found.append(Given(host, name, start, load.bytes, to, pause))
    return found


Latencies = dict[tuple[int, int], tuple[float, float]]
"""(host, index of the host's message) -> start and latency, ns."""


def run_ibprof(cell: Disputed, given: Sequence[Given], end_ns: float, seed: int) -> tuple[Latencies, float]:
    """Return ibprof's latencies, and its processor time in s."""
    begin = time.process_time()
    network = load_network(NetworkSource(FABRIC), Hardware())
    clients = []
    for each in given:
        steps = np.zeros(len(each.to), STEP)
        steps["host"], steps["client"], steps["bytes"] = each.to, NOBODY, each.bytes
        pause = np.concatenate([each.pause_ns[-1:], each.pause_ns[:-1]])  # the pause before each message
        pause[0] = 0
        steps["pause"] = np.rint(pause / network.tick_ns)
        clients.append(Client(each.host, 0, steps, start=network.ticks(each.start_ns)))
    simulation = Simulation(network, [Job("all")], clients, seed, cell.adaptive)
    count = np.zeros(len(given), np.int64)
    found: Latencies = {}
    while simulation.state.now < network.ticks(end_ns):
        for client, start, ticks in simulation.run(network.ticks(end_ns))[["client", "start", "ticks"]].tolist():
            found[given[client].host, int(count[client])] = network.to_ns(start), network.to_ns(ticks)
            count[client] += 1
    return found, time.process_time() - begin


def compile_program(build: Path, folder: Path) -> Path:
    """Compile the program against a build of CODES, with the same options as CODES' CMake."""
    cache = dict(
        line.split("=", 1)
        for line in (build / "CMakeCache.txt").read_text().splitlines()
        if "=" in line and line[0] not in "#/"
    )
    plain = {name.partition(":")[0]: value for name, value in cache.items()}
    source = Path(plain["CMAKE_HOME_DIRECTORY"])
    ross = Path(plain["ROSS_DIR"]).parents[2]
    program = folder / "given_messages"
    makes = Path(__file__).with_name("given_messages.c")
    line: list[str | Path] = [
        plain["CMAKE_C_COMPILER"],
        "-std=gnu11",
        "-O3",
        "-c",
        makes,
        "-o",
        program.with_suffix(".o"),
    ]
    line += [f"-I{source}", f"-I{build}", f"-I{source}/codes", f"-I{ross}/include/ross"]
    subprocess.run(line, check=True)
    link: list[str | Path] = [
        plain["CMAKE_CXX_COMPILER"],
        program.with_suffix(".o"),
        "-o",
        program,
        build / "src" / "libcodes.a",
    ]
    subprocess.run([*link, ross / "lib" / "libROSS.a", "-lm"], check=True)
    return program


def write_configuration(folder: Path, network: SimulatedNetwork, adaptive: bool) -> Path:
    """Write the configuration and forwarding tables for CODES."""
    tables = folder / "tables"
    tables.mkdir(exist_ok=True)
    for switch, ports in enumerate(network.egress.tolist()):
        level = min(switch // LEAVES, 2)
        lines = [f"0x{(64 << 32) + host:016x} {port}\n" for host, port in enumerate(ports)]
        (tables / f"0x{((level + 1) << 32) + switch:016x}.lft").write_text("".join(lines))
    path = folder / ("adaptive.conf" if adaptive else "static.conf")
    path.write_text(f"""\
LPGROUPS
{{
   MODELNET_GRP
   {{
      repetitions="{LEAVES}";
      nw-lp="{HALF}";
      modelnet_fattree="{HALF}";
      fattree_switch="3";
   }}
}}
PARAMS
{{
   ft_type="0";
   packet_size="4096";
   message_size="592";
   chunk_size="4096";
   modelnet_scheduler="fcfs";
   modelnet_order=( "fattree" );
   num_levels="3";
   switch_count="{LEAVES}";
   switch_radix="{2 * HALF}";
   router_delay="90";
   terminal_radix="1";
   soft_delay="0";
   nic_seq_delay="0";
   vc_size="65536";
   cn_vc_size="65536";
   link_bandwidth="12.5";
   cn_bandwidth="12.5";
   routing="{"adaptive" if adaptive else "static"}";
   routing_folder="{tables}";
}}
""")
    return path


def _may_go_on(done: Path, hours: float) -> bool:
    """Return whether the earlier run reached its time limit, and the new limit is higher."""
    _, came, had = done.read_text().split()
    return came == "0" and hours > float(had)


def run_codes(
    program: Path, folder: Path, name: str, cell: Disputed, given: Sequence[Given], end_ns: float, hours: float
) -> tuple[Latencies, float, bool]:
    """Return CODES' latencies, its processor time in s, and whether the run finished."""
    stem = folder / "".join(letter if letter.isalnum() else "-" for letter in name)
    done, output = stem.with_suffix(".done"), stem.with_suffix(".txt")
    if not done.exists() or _may_go_on(done, hours):
        network = load_network(NetworkSource(FABRIC), Hardware())
        configuration = write_configuration(folder, network, cell.adaptive)
        with stem.with_suffix(".given").open("w") as file:
            for each in given:
                file.write(f"{each.host} {each.start_ns:.0f} {each.bytes} {len(each.to)}\n")
                file.writelines(f"{to} {pause:.0f}\n" for to, pause in zip(each.to, each.pause_ns, strict=True))
        line: list[str | Path] = [
            "nice",
            "-n",
            "19",
            program,
            "--sync=1",
            "--extramem=2000000",
            f"--end={end_ns:.0f}",
            "--",
        ]
        line += [configuration, stem.with_suffix(".given"), output, str(hours)]
        before = os.times()
        with stem.with_suffix(".log").open("w") as log:
            status = subprocess.run(line, stdout=log, stderr=log, cwd=folder, check=False).returncode
        after = os.times()
        if status not in {0, STOPPED}:
            raise SystemExit(f"{name}: CODES ended with status {status}, see {stem}.log")
        done.write_text(f"{after.children_user - before.children_user:.1f} {int(status == 0)} {hours}\n")
    seconds, came, _ = done.read_text().split()
    found: Latencies = {}
    for text in output.read_text().splitlines():
        words = text.split()
        if len(words) == 4:  # the last line of a stopped run can be incomplete
            found[int(words[0]), int(words[1])] = float(words[2]), float(words[3])
    return found, float(seconds), came == "1"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codes", type=Path, required=True, help="build folder of CODES")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of results; old results are kept")
    parser.add_argument("--hours", type=float, default=8.0, help="limit of a cell's wall time, in hours (default: 8)")
    parser.add_argument("--window", type=float, help="simulated time in ms (default: depends on the cell)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("cell", nargs="*", help="run only cells whose names begin with CELL (default: all)")
    wanted = parser.parse_args(argv)
    folder = wanted.output.resolve() / f"seed{wanted.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    program = compile_program(wanted.codes.resolve(), folder)
    print("| cell | job | messages | mean, µs: CODES | ibprof | difference | alike within 1% | CODES, s | ibprof, s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, cell in list_cells().items():
        if wanted.cell and not name.startswith(tuple(wanted.cell)):
            continue
        window_ns = (wanted.window or cell.window_ms) * MS
        end_ns = window_ns * (1 + BEYOND)
        given = make_messages(cell, wanted.seed, window_ns)
        by_codes, codes_s, came = run_codes(program, folder, name, cell, given, end_ns, wanted.hours)
        if not came:
            last = max(start + took for start, took in by_codes.values())
            window_ns, end_ns = last / (1 + BEYOND), last
        by_ibprof, ibprof_s = run_ibprof(cell, given, end_ns, wanted.seed)
        for job in (IO, MPI):
            hosts = {each.host for each in given if each.job == job}
            begun = [
                {key for key, (start, _) in side.items() if key[0] in hosts and BEGIN * window_ns <= start < window_ns}
                for side in (by_codes, by_ibprof)
            ]
            if not hosts or not all(begun):
                continue
            one, other = (
                np.mean([side[key][1] for key in keys]) for side, keys in zip((by_codes, by_ibprof), begun, strict=True)
            )
            both = begun[0] & begun[1]
            alike = np.mean([abs(by_ibprof[key][1] / by_codes[key][1] - 1) < 0.01 for key in both])
            print(
                f"| {name} | {job} | {len(begun[0]):,} | {one / 1e3:,.2f} | {other / 1e3:,.2f} "
                f"| {other / one - 1:+.1%} | {alike:.0%} | {codes_s:.0f} | {ibprof_s:.1f} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
