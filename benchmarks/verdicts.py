# SPDX-License-Identifier: Apache-2.0
"""Draw random jobs with planted causes, and count correct verdicts.

python benchmarks/verdicts.py -o FOLDER [--seed N] [WORD ...]

Real programs run on this machine with every installed MPI. Some run on a slow network, which needs root. Other runs are
synthetic profiles on synthetic fabrics. A run and its correct kind of verdict are chosen together. The program prints a
table with a row for each run, and how many verdicts of each kind are correct. With WORDs, only runs whose names contain
a WORD are made. benchmarks/lab/verdicts.py has real runs on networks.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ibprof.load import load_profile
from ibprof.verdict.verdict_data import Verdict, VerdictKind
from ibprof.verdict.verdict_rules import judge_run
from ibprof_converter.routing.subnet import Subnet
from ibprof_testing.lab.lab_fabrics import LabRail, crowd
from ibprof_testing.machine import MissingError
from ibprof_testing.mpi import mpis
from ibprof_testing.samples.planted_runs import (
    Plant,
    everybody,
    judge_plant,
    partners,
    ring,
    slow_cable,
    to_one,
    without_an_uplink,
)
from ibprof_testing.waits.traced_runs import OVER_TCP, launch, slow_loopback

PROGRAM = "planted.c"
ON = {"IBPROF_TIME": "1", "IBPROF_SITES": "1"}
FULL = ("xgft:2:6,5:1,6", "tree:4,2", "xgft:3:3,3,3:1,3,3", "xgft:2:4,9:1,2:1,2")
TAPERED = ("xgft:2:8,6:1,4", "xgft:2:12,4:1,3", "xgft:3:6,3,3:1,3,3", "xgft:2:9,4:1,3")
ANY = (*FULL, *TAPERED, "torus:4x3x3:2", "torus:7x5:1", "dragonfly:3,2,1", "dragonfly:4,2,2,6")

WAITING, NOT_MPI = VerdictKind.WAITING, VerdictKind.NOT_MPI
SLOW = VerdictKind.SLOW_TRANSFER
SMALL, ON_HOST, UNKNOWN = VerdictKind.SMALL_MESSAGES, VerdictKind.ON_HOST, VerdictKind.UNKNOWN
HOST_LINKS, SWITCH_LINKS = VerdictKind.HOST_LINKS, VerdictKind.SWITCH_LINKS

FIRST = "echo -20 2> /dev/null > /proc/self/autogroup; exec"
"""Beginning of an sh command that gives runs priority over other work of the machine."""

ON_ITS_OWN = 'taskset -c "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}"'
"""Command that binds each rank to a different processor."""

REPEATED = 2
"""Number of real runs of each program. MPIs take turns."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A run: name, correct kind and cause, and a function from a folder for files to the verdict."""

    kind: VerdictKind
    name: str
    judge: Callable[[Path], Verdict]
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class Real:
    """A real program, and the ranges of its random arguments.

    Attributes:
        kind: kind of the correct verdict.
        program: program of planted.c.
        ranks, milliseconds, bytes, rounds: minimum and maximum of a random value.
        mbit: possible rates of the only network device, in Mb/s; empty if ranks use shared memory.
    """

    kind: VerdictKind
    program: str
    ranks: tuple[int, int]
    milliseconds: tuple[int, int] = (0, 0)
    bytes: tuple[int, int] = (8, 2048)
    rounds: tuple[int, int] = (10, 40)
    mbit: tuple[int, ...] = ()


REAL = (
    # Let ranks sleep for long: then late wake-ups matter little.
    Real(NOT_MPI, "alone", (2, 8), (200, 400), (8, 1 << 18), (3, 6)),
    Real(WAITING, "one", (3, 8), (10, 50)),
    Real(WAITING, "any", (3, 8), (10, 50), rounds=(24, 64)),
    Real(WAITING, "uneven", (3, 8), (20, 60)),
    Real(WAITING, "pipeline", (4, 8), (100, 200), (8, 1 << 16), (1, 2)),
    Real(WAITING, "asked", (3, 8), (5, 20)),
    Real(WAITING, "end", (3, 8), (20, 60)),
    # Use two ranks: with more ranks than processors, ranks would wait for a processor.
    Real(SMALL, "ring", (2, 2), bytes=(1, 4096), rounds=(100_000, 200_000)),
    Real(SMALL, "sum", (2, 2), rounds=(100_000, 300_000)),
    Real(ON_HOST, "ring", (2, 2), bytes=(1 << 18, 4 << 20), rounds=(200, 400)),
    Real(ON_HOST, "transpose", (2, 2), bytes=(1 << 18, 2 << 20), rounds=(300, 600)),
    Real(ON_HOST, "spread", (2, 2), bytes=(1 << 18, 2 << 20), rounds=(300, 600)),
    Real(ON_HOST, "fields", (2, 2), bytes=(1 << 18, 2 << 20), rounds=(200, 400)),
    # Runs on a network with 1/100 of the usual rate: balanced ranks spend time in transfer, uneven ranks wait.
    Real(SLOW, "ring", (2, 4), bytes=(1 << 18, 1 << 20), rounds=(10, 20), mbit=(50, 100, 400)),
    Real(SLOW, "transpose", (2, 4), bytes=(1 << 18, 1 << 20), rounds=(6, 12), mbit=(50, 100, 400)),
    Real(SLOW, "fields", (2, 4), bytes=(1 << 19, 2 << 20), rounds=(6, 12), mbit=(50, 100, 400)),
    Real(WAITING, "one", (3, 4), (20, 60), mbit=(50, 100, 400)),
    Real(UNKNOWN, "checkpoint", (2, 4), bytes=(1 << 20, 4 << 20), rounds=(10, 20)),
)


def installed() -> list[mpis.Mpi]:
    found = []
    for find, names in ((mpis.find_mpi, mpis.NAMES), (mpis.find_mpich_like, mpis.MPICH_LIKE)):
        for name in names:
            with suppress(MissingError):
                found.append(find(name))
    return found


def draw_real(generator: np.random.Generator, folder: Path) -> Iterator[Drawn]:
    """Yield runs of real programs: each program `REPEATED` times, with MPIs in turn."""
    available = installed()
    turn = int(generator.integers(len(available)))
    for real in (each for each in REAL for _ in range(REPEATED)):
        mpi = available[turn % len(available)]
        turn += 1
        ranks, milliseconds, size, rounds = (
            int(generator.integers(least, most + 1))
            for least, most in (real.ranks, real.milliseconds, real.bytes, real.rounds)
        )
        words = [real.program, milliseconds, size // 8 * 8 + 8, rounds, int(generator.integers(1 << 20))]
        mbit = int(generator.choice(real.mbit)) if real.mbit else 0

        def judge(
            place: Path,
            mpi: mpis.Mpi = mpi,
            ranks: int = ranks,
            words: list[object] = words,
            mbit: int = mbit,
        ) -> Verdict:
            programs = folder / f"programs-{mpi.name}"
            programs.mkdir(exist_ok=True)
            program = mpis.build(mpi, PROGRAM, programs, "-g")
            record = place / "recording"
            is_alone = ranks <= (os.cpu_count() or 1)
            shell = f'{FIRST} {ON_ITS_OWN if is_alone else ""} "$0" "$@"'
            settings = ON | {"OMPI_MCA_mpi_yield_when_idle": str(int(not is_alone))}
            command: list[str | Path] = ["sh", "-c", shell, program, *map(str, words)]
            if mbit:
                settings |= OVER_TCP | {"LD_PRELOAD": str(mpis.library()), "IBPROF_OUTPUT": str(record)}
                with slow_loopback(mbit) as around:
                    launch(mpi, ranks, command, settings, around, place)
            else:
                mpis.run_mpi(mpi, ranks, command, recording=record, env=settings, cwd=place)
            return judge_run(load_profile(record))

        network = f", {mbit} Mb/s" if mbit else ""
        yield Drawn(real.kind, f"{' '.join(map(str, words))}, {ranks} ranks, {mpi.name}{network}", judge)


def crowded(subnet: Subnet) -> Subnet:
    """Route all traffic that leaves leaf switches over one spine."""
    rail = crowd(LabRail(subnet.fabric, subnet.tables), "L2-1")
    return Subnet(rail.fabric, rail.tables, ())


def opposite(ranks: int) -> list[tuple[int, int]]:
    """Return pairs of ranks; the distance between the two ranks of a pair is `ranks` // 2."""
    return [(rank, (rank + ranks // 2) % ranks) for rank in range(ranks)]


def multiple(times: float) -> Callable[[float], float]:
    """Return a function that multiplies the time of the most loaded link by `times`; the product is the time in MPI."""
    return lambda line: times * line


def at_least(seconds: float, times: float = 0.0) -> Callable[[float], float]:
    """Return a function that multiplies the time of the most loaded link by `times`, and returns at least `seconds`."""
    return lambda line: max(seconds, times * line)


def late_at(late: int) -> Callable[[int], Sequence[float]]:
    """Return `Plant.inside` for one late rank: ranks' times in MPI as fractions of `mpi_s`, small for `late`."""
    return lambda ranks: [0.02 if rank == late else 1.0 for rank in range(ranks)]


def draw_put(generator: np.random.Generator) -> Iterator[Drawn]:
    """Yield runs as synthetic profiles: each case three times, with random sizes and link rates."""
    for _ in range(3):
        full, tapered, any_shape = (str(generator.choice(shapes)) for shapes in (FULL, TAPERED, ANY))
        gbps = float(generator.choice([25, 100, 200, 400]))
        size = int(generator.integers(10**8, 10**10))
        busy, little = float(generator.uniform(1.1, 2.8)), float(generator.uniform(0.01, 0.08))
        much, seed = float(generator.uniform(0.3, 0.95)), int(generator.integers(1000))
        take = multiple(busy)
        rows: tuple[tuple[str, Plant], ...] = (
            ("to one", Plant(HOST_LINKS, "many-to-few", any_shape, to_one)),
            ("all to all", Plant(HOST_LINKS, None, full, everybody)),
            ("slow cable", Plant(SWITCH_LINKS, "slow-link", "xgft:2:5,6:1,5", everybody, fault=slow_cable)),
            ("lost", Plant(SWITCH_LINKS, "missing-uplink", "xgft:2:6,4:1,6", everybody, fault=without_an_uplink)),
            ("poor tables", Plant(SWITCH_LINKS, "routing", "xgft:2:5,4:1,5", everybody, fault=crowded)),
            ("tapered", Plant(SWITCH_LINKS, "oversubscription", tapered, everybody)),
            ("far partners", Plant(SWITCH_LINKS, "placement", "xgft:2:8,4:1,2", opposite)),
            ("shuffled ring", Plant(SWITCH_LINKS, "placement", "xgft:2:12,4:1,3", ring, order=seed)),
        )  # fmt: skip
        for name, plant in rows:
            yield _put(f"{name}, {plant.fabric}", plant, size, gbps, mpi_s=take, share=much)
        few, seconds = int(generator.integers(64, 10**5)), float(generator.uniform(1, 100))
        last = at_least(seconds)
        late = int(generator.integers(4))
        waiting: tuple[tuple[str, Callable[[int], Sequence[float]]], ...] = (
            ("one is late", late_at(late)),
            ("work is uneven", lambda ranks: [1 - rank / (ranks - 1) for rank in range(ranks)]),
            ("late in turn", lambda ranks: [1.0] * ranks),
        )
        for name, inside in waiting:
            operation = str(generator.choice(["ALLREDUCE", "WAITALL", "BARRIER", "RECV"]))
            plant = Plant(WAITING, None, any_shape, ring, inside=inside, operation=operation, message=1 << 16)
            yield _put(f"{name}, {operation}, {any_shape}", plant, few, gbps, mpi_s=last, share=much)
        each, count = float(generator.uniform(1e-6, 60e-6)), int(generator.integers(10**4, 10**6))
        message, pairs = int(generator.integers(1, 4096)), (ring, partners)[int(generator.integers(2))]
        yield _put(
            f"{message} bytes, {any_shape}",
            Plant(SMALL, None, any_shape, pairs, message=message, hosts=(0, 5)),
            *(message * count, gbps),
            mpi_s=at_least(each * count, 4),
            share=much,
        )
        ranks, rate = int(2 ** generator.integers(1, 7)), float(generator.uniform(1e9, 2e10))
        within = size * (ranks - 1) / rate
        host = Plant(ON_HOST, None, any_shape, everybody, hosts=(3,), each=ranks)
        yield _put(f"{ranks} ranks on one host", host, size, gbps, mpi_s=at_least(within), share=much)
        alone = Plant(NOT_MPI, None, any_shape, ring)
        yield _put(f"little MPI, {any_shape}", alone, size, gbps, mpi_s=take, share=little)
        slowed = Plant(UNKNOWN, None, full, everybody)
        times = float(generator.uniform(4, 14))
        yield _put(f"slowed {times:.0f} times, {full}", slowed, size, gbps, mpi_s=multiple(times), share=much)


def _put(name: str, plant: Plant, size: int, gbps: float, mpi_s: Callable[[float], float], share: float) -> Drawn:
    run = replace(plant, size=size, gbps=gbps, mpi_s=mpi_s, share=share)
    return Drawn(plant.kind, f"{name}, {size:,} B, {gbps:g} Gb/s", lambda place: judge_plant(run, place), plant.cause)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if fewer than 95% of the verdicts are correct."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="an empty folder for recordings")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random runs")
    parser.add_argument("word", nargs="*")
    wanted = parser.parse_args(argv)
    output = wanted.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):
        os.nice(-20)  # so that other work of the machine does not look like waiting
    generator = np.random.default_rng(wanted.seed)
    drawn = [*draw_put(generator), *draw_real(generator, output)]
    right, found = Counter[str](), Counter[tuple[str, str]]()
    print("| planted | run | verdict | right |\n|---|---|---|---|")
    for number, run in enumerate(drawn):
        if wanted.word and not any(word in run.name or word == run.kind.value for word in wanted.word):
            continue
        place = output / f"run{number}"
        place.mkdir()
        try:
            verdict = run.judge(place)
            kind, cause, text = verdict.kind.value, verdict.cause, verdict.text
        except (AssertionError, subprocess.TimeoutExpired) as error:
            kind, cause, text = "failed", None, str(error)
        good = kind == run.kind.value and run.cause in (None, cause)
        right[run.kind.value] += good
        found[run.kind.value, kind] += 1
        planted, verdict_on_it = _name(run.kind.value, run.cause), _name(kind, cause)
        print(f"| {planted} | {run.name} | {verdict_on_it} | {'yes' if good else 'NO'} |", flush=True)
        if not good:
            print(f"run{number}: {text}", file=sys.stderr)
    print_confusion(right, found)
    return int(right.total() < 0.95 * found.total())


def _name(kind: str, cause: str | None) -> str:
    return f"{kind}: {cause}" if cause else kind


def print_confusion(right: Counter[str], found: Counter[tuple[str, str]]) -> None:
    """Print a table: correct kind, number of runs, and number of runs with each verdict."""
    kinds = [kind.value for kind in VerdictKind]
    columns = [*kinds, *sorted({verdict for _, verdict in found} - set(kinds))]
    print(f"\n| planted | {' | '.join(columns)} | right |\n|---{'|---' * len(columns)}|---|")
    for kind in kinds:
        counts = [found[kind, verdict] for verdict in columns]
        print(f"| {kind} | {' | '.join(str(count or '') for count in counts)} | {right[kind]} of {sum(counts)} |")
    print(f"| all |{' |' * len(columns)} {right.total()} of {found.total()} |")


if __name__ == "__main__":
    sys.exit(main())
