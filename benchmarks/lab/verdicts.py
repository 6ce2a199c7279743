# SPDX-License-Identifier: Apache-2.0
"""Record jobs with planted causes on routed networks of Linux namespaces, and count correct verdicts.

python benchmarks/lab/verdicts.py -o FOLDER [--seed N] [WORD ...]       (as root)

The program prints a row for each run, and the number of correct verdicts of each kind. With WORDs, only runs whose
names contain a WORD are made. --seed replaces the fixed runs by random runs.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np

from ibprof_testing.lab import routed_network
from ibprof_testing.lab.lab_fabrics import MBIT, LabRail, crowd, make_rail
from ibprof_testing.lab.routed_jobs import JobError, compile_program, report, run_job
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.mpis import FROM_PYPI

HOSTS = tuple(f"host{number:02d}" for number in range(1, 17))
FULL = "xgft:2:4,4:1,4"
NARROW = "xgft:2:4,4:1,1"
SYSTEM, PYPI, MPICH = "Open MPI 4.1.4", f"Open MPI {FROM_PYPI[0]}", "MPICH 4.3.2"
MPIS = (SYSTEM, PYPI, MPICH)


@dataclass(frozen=True, slots=True)
class VerdictRun:
    """A planted run.

    Attributes:
        kind: kind of the correct verdict.
        network: name of the network, a key of `networks`.
        words: the program and its arguments.
        ranks_on: host of each rank.
        causes: allowed causes; empty to allow all causes.
        variables: environment variables.
        with_fabric: true if the report gets the fabric.
        mpi: name of an MPI in `MPIS`.
    """

    kind: str
    network: str
    words: tuple[str, ...]
    ranks_on: tuple[str, ...]
    causes: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    with_fabric: bool = True
    mpi: str = SYSTEM

    @property
    def name(self) -> str:
        mpi = "" if self.mpi == SYSTEM else f", {self.mpi}"
        settings = "".join(f", {name}={value}" for name, value in self.variables.items())
        known = "" if self.with_fabric else ", no fabric"
        return f"{' '.join(self.words)}, {len(self.ranks_on)} ranks, {self.network}{settings}{known}{mpi}"


def networks() -> dict[str, LabRail]:
    plain = make_rail()
    return {
        "tapered": plain,
        "full": make_rail(FULL),
        "one spine": make_rail(NARROW),
        "fast": make_rail(FULL, 500.0),
        "crowded spine": crowd(plain, "L2-1"),
        "slow uplink": make_rail(slow={("L1-3", "L2-1"): 5.0}),
        "slow spine": make_rail(FULL, slow={("L1-2", "L2-3"): 4.0}),
        "uplink gone": make_rail(FULL, MBIT / 2, host_mbit=MBIT, gone=(("L1-2", "L2-2"),), engine="minhop"),
        "slow host": make_rail(FULL, slow={("L1-1", "host03"): 4.0}),
    }


def shuffled(seed: int, hosts: Sequence[str] = HOSTS) -> tuple[str, ...]:
    return tuple(np.random.default_rng(seed).permutation(np.array(hosts)).tolist())


def runs() -> Iterator[VerdictRun]:
    yield from runs_without_the_network()
    yield from runs_by_links()
    yield from runs_of_mpich()


def runs_without_the_network() -> Iterator[VerdictRun]:
    """Yield runs whose time does not depend on links, and runs with too little data for a verdict."""
    twice = HOSTS + HOSTS
    spread = HOSTS[::4] + HOSTS[1::4]
    for count in (2, 4, 8, 16):
        yield VerdictRun("not-mpi", "tapered", ("verdicts", "alone", "1.5"), HOSTS[:count])
    yield VerdictRun("not-mpi", "tapered", ("verdicts", "alone", "3"), twice)
    yield VerdictRun("not-mpi", "full", ("verdicts", "alone", "1.5"), HOSTS[:3] * 2, mpi=PYPI)
    yield VerdictRun("not-mpi", "full", ("verdicts", "alone", "1.5"), HOSTS[:3] * 2, with_fabric=False)
    for plant in ("late", "turns", "server"):
        yield VerdictRun("waiting", "tapered", ("verdicts", plant, "2"), HOSTS)
        yield VerdictRun("waiting", "tapered", ("verdicts", plant, "2"), spread)
        yield VerdictRun("waiting", "full", ("verdicts", plant, "1.5"), HOSTS[:4], mpi=PYPI)
        yield VerdictRun("waiting", "tapered", ("verdicts", plant, "1.5"), HOSTS[:4] * 2, with_fabric=False)
    for hosts in (HOSTS[:2], HOSTS[3:5], ("host01",) * 2, ("host01", "host09")):
        yield VerdictRun("small-messages", "fast", ("verdicts", "small", "1"), hosts)
    yield VerdictRun("small-messages", "fast", ("verdicts", "small", "1"), HOSTS[:2], mpi=PYPI)
    yield VerdictRun("small-messages", "fast", ("verdicts", "small", "1"), HOSTS[:2], with_fabric=False)
    for ranks_on in (("host05",) * 2, ("host01",) * 2 + ("host16",) * 2):
        for words in (("neighbours", "4000000", "60"), ("neighbours", "1000000", "200")):
            yield VerdictRun("on-host", "tapered", ("lab_patterns", *words), ranks_on)
    yield VerdictRun("on-host", "tapered", ("verdicts", "bulk", "1"), ("host05",) * 2)
    yield VerdictRun("on-host", "tapered", ("verdicts", "bulk", "1"), ("host05",) * 2, mpi=PYPI)
    yield VerdictRun("on-host", "tapered", ("verdicts", "bulk", "1"), ("host05",) * 2, with_fabric=False)
    no_times = {"IBPROF_TIME": "0"}
    for plant in ("alone", "late", "small"):
        yield VerdictRun("unknown", "tapered", ("verdicts", plant, "1"), HOSTS[:4], variables=no_times)
    yield VerdictRun("unknown", "tapered", ("verdicts", "bulk", "1"), ("host05",) * 2, variables=no_times)
    for words in (("alltoall", "60000", "1"), ("neighbours", "400000", "2"), ("halo", "100000", "2")):
        yield VerdictRun("unknown", "full", ("lab_patterns", *words), HOSTS, with_fabric=False)
    yield VerdictRun("unknown", "full", ("lab_patterns", "halo", "100000", "2"), HOSTS[:8], with_fabric=False)


def runs_by_links() -> Iterator[VerdictRun]:
    """Yield runs whose time depends on links."""
    twice = HOSTS + HOSTS
    spread = HOSTS[::4] + HOSTS[1::4]
    for words in (("gather", "400000", "1"), ("neighbours", "600000", "2"), ("samplesort", "80000", "2")):
        yield VerdictRun("host-links", "full", ("lab_patterns", *words), HOSTS)
    yield VerdictRun("host-links", "full", ("lab_patterns", "alltoall", "60000", "2"), HOSTS)
    yield VerdictRun("host-links", "full", ("lab_patterns", "alltoall", "30000", "1"), twice)
    yield VerdictRun("host-links", "tapered", ("lab_patterns", "gather", "300000", "1"), HOSTS, mpi=PYPI)
    yield VerdictRun("host-links", "tapered", ("lab_patterns", "neighbours", "400000", "3"), HOSTS)
    yield VerdictRun("host-links", "tapered", ("lab_patterns", "alltoall", "400000", "2"), HOSTS[:4])
    yield VerdictRun("host-links", "slow host", ("lab_patterns", "alltoall", "40000", "1"), HOSTS, ("slow-link",))
    yield VerdictRun("host-links", "slow host", ("lab_patterns", "halo", "150000", "2"), HOSTS, ("slow-link",))
    placement, routing, more = ("placement",), ("routing",), ("oversubscription",)
    for seed in (1, 2, 3):
        yield VerdictRun("switch-links", "tapered", ("lab_patterns", "halo", "150000", "3"), shuffled(seed), placement)
    yield VerdictRun("switch-links", "tapered", ("lab_patterns", "transpose", "200000", "3"), HOSTS, placement)
    yield VerdictRun("switch-links", "one spine", ("lab_patterns", "pairs", "300000", "2"), HOSTS, placement)
    yield VerdictRun("switch-links", "one spine", ("lab_patterns", "transpose", "400000", "1"), spread, placement)
    order = shuffled(4, twice)
    yield VerdictRun("switch-links", "tapered", ("lab_patterns", "halo", "80000", "3"), order, placement)
    for words in (("alltoall", "60000", "1"), ("samplesort", "60000", "2")):
        yield VerdictRun("switch-links", "crowded spine", ("lab_patterns", *words), HOSTS, routing)
    yield VerdictRun(
        "switch-links", "crowded spine", ("lab_patterns", "alltoall", "80000", "1"), HOSTS, routing, mpi=PYPI
    )
    fault = ("slow-link",)
    yield VerdictRun("switch-links", "slow uplink", ("lab_patterns", "alltoall", "60000", "1"), HOSTS, fault)
    yield VerdictRun("switch-links", "slow uplink", ("lab_patterns", "samplesort", "60000", "1"), HOSTS, fault)
    yield VerdictRun("switch-links", "slow spine", ("lab_patterns", "alltoall", "60000", "1"), HOSTS, fault)
    yield VerdictRun(
        "switch-links", "uplink gone", ("lab_patterns", "alltoall", "60000", "1"), HOSTS, ("missing-uplink",)
    )
    yield VerdictRun("switch-links", "tapered", ("lab_patterns", "alltoall", "60000", "2"), HOSTS, more)
    yield VerdictRun("switch-links", "one spine", ("lab_patterns", "alltoall", "60000", "1"), HOSTS, more)
    yield VerdictRun("switch-links", "one spine", ("lab_patterns", "samplesort", "60000", "1"), HOSTS, more)
    yield VerdictRun("switch-links", "one spine", ("lab_patterns", "alltoall", "30000", "1"), twice, more)


def runs_of_mpich() -> Iterator[VerdictRun]:
    """Yield runs of few ranks with MPICH, because MPICH's waiting ranks do not yield cores."""
    for words in (("alltoall", "60000", "1"), ("samplesort", "60000", "1")):
        yield VerdictRun("switch-links", "crowded spine", ("lab_patterns", *words), HOSTS, ("routing",), mpi=MPICH)
    yield VerdictRun("not-mpi", "full", ("verdicts", "alone", "1.5"), HOSTS[:4], mpi=MPICH)
    yield VerdictRun("waiting", "full", ("verdicts", "late", "1.5"), HOSTS[:4], mpi=MPICH)
    yield VerdictRun("waiting", "full", ("verdicts", "server", "1.5"), HOSTS[:4], mpi=MPICH)
    yield VerdictRun("on-host", "full", ("verdicts", "bulk", "1"), ("host05",) * 2, mpi=MPICH)


def drawn_runs(seed: int) -> Iterator[VerdictRun]:
    """Yield runs with random hosts, sizes and rounds."""
    generator = np.random.default_rng(seed)

    def number(least: int, most: int) -> str:
        return str(int(generator.integers(least, most + 1)))

    def some(least: int) -> tuple[str, ...]:
        return tuple(generator.permutation(HOSTS)[: int(generator.integers(least, 9))].tolist())

    for kind, programs, milliseconds, rounds in (
        ("waiting", ("one", "any", "uneven", "end"), (20, 60), (20, 40)),
        ("not-mpi", ("alone",), (200, 400), (3, 6)),
    ):
        for program in programs:
            words: tuple[str, ...] = (
                "planted",
                program,
                number(*milliseconds),
                number(8, 2048),
                number(*rounds),
                number(0, 9999),
            )
            yield VerdictRun(kind, "full" if program == "any" else "tapered", words, some(3))
    words = ("planted", "asked", number(5, 20), "64", number(10, 20), number(0, 9999))
    yield VerdictRun("waiting", "tapered", words, some(4))
    words = ("planted", "pipeline", number(100, 200), number(8, 20_000), "2", number(0, 9999))
    yield VerdictRun("waiting", "full", words, some(5))
    words = ("planted", "ring", "0", number(1, 512), number(3000, 6000), "0")
    yield VerdictRun("small-messages", "fast", words, some(2)[:2])
    words = ("planted", "transpose", "0", number(250_000, 2_000_000), number(200, 400), "0")
    yield VerdictRun("on-host", "tapered", words, (str(generator.choice(HOSTS)),) * 2)
    # Without a fabric, ibprof assumes that links have at least 100 Mbit/s.
    words = ("planted", "spread", "0", number(100_000, 200_000), "4", "0")
    yield VerdictRun("unknown", "fast", words, HOSTS, with_fabric=False)
    for network, causes in (
        ("crowded spine", ("routing",)),
        ("slow uplink", ("slow-link",)),
        ("slow spine", ("slow-link",)),
        ("uplink gone", ("missing-uplink",)),
        ("one spine", ("oversubscription",)),
    ):
        pattern = str(generator.choice(["alltoall", "samplesort"]))
        words = ("lab_patterns", pattern, number(40_000, 90_000), "1")
        yield VerdictRun("switch-links", network, words, HOSTS, causes)
    words = ("planted", "ring", "0", number(150_000, 400_000), number(3, 5), "0")
    yield VerdictRun("switch-links", "tapered", words, shuffled(seed), ("placement",))
    yield VerdictRun("switch-links", "one spine", words, HOSTS[::4] + HOSTS[1::4], ("placement",))
    words = ("lab_patterns", "gather", number(200_000, 500_000), "1")
    yield VerdictRun("host-links", "full", words, HOSTS)
    words = ("planted", "transpose", "0", number(30_000, 60_000), "2", "0")
    yield VerdictRun("host-links", "full", words, HOSTS)
    words = ("planted", "ring", "0", number(200_000, 500_000), number(3, 5), "0")
    yield VerdictRun("host-links", "full", words, HOSTS)
    words = ("planted", "transpose", "0", number(30_000, 60_000), "2", "0")
    yield VerdictRun("host-links", "slow host", words, HOSTS, ("slow-link",))


def _is_wanted(run: VerdictRun, words: Sequence[str]) -> bool:
    return not words or any(word in run.name or word == run.kind for word in words)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if fewer than 95% of the verdicts are correct."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="an empty folder for recordings")
    parser.add_argument("--seed", type=int, help="make random runs with this seed")
    parser.add_argument("word", nargs="*")
    wanted = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # exit normally, to take the network down
    output = wanted.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    installed = {SYSTEM: mpis.find_mpi(mpis.SYSTEM)}
    if wanted.seed is None:
        installed |= {PYPI: mpis.find_mpi(FROM_PYPI[0]), MPICH: mpis.find_mpich_like(mpis.MPICH_FROM_PYPI[0])}
    programs = {}
    for name, mpi in installed.items():
        folder = output / name.replace(" ", "-")
        folder.mkdir(exist_ok=True)
        for program in ("lab_patterns", "planted", "verdicts"):
            programs[program, name] = compile_program(f"{program}.c", folder, str(mpi.program("mpicc")))
    planted_runs = runs() if wanted.seed is None else drawn_runs(wanted.seed)
    chosen = [run for run in planted_runs if _is_wanted(run, wanted.word)]
    rails = networks()
    right, total = Counter[str](), Counter[str]()
    print(f"load average {os.getloadavg()[0]:.1f} at the beginning", file=sys.stderr)
    print("| planted | run | verdict | right |")
    print("|---|---|---|---|")
    number = 0
    for network_name, group in groupby(sorted(chosen, key=lambda run: run.network), key=lambda run: run.network):
        with tempfile.TemporaryDirectory() as place, routed_network.up([rails[network_name]], Path(place)) as network:
            folder = output / network_name.replace(" ", "-")
            folder.mkdir(exist_ok=True)
            dumps = network.write_dumps(folder)
            for run in group:
                number += 1
                words: list[str | Path] = [programs[run.words[0], run.mpi], *run.words[1:]]
                try:
                    done = run_job(
                        network,
                        run.ranks_on,
                        words,
                        output / f"run{number}",
                        mpirun=str(installed[run.mpi].program("mpirun")),
                        hydra=installed[run.mpi] if run.mpi == MPICH else None,
                        # Each of two ranks has a processor, and must not yield it to other programs.
                        parameters={"mpi_yield_when_idle": int(len(run.ranks_on) > 2)},
                        timeout=120,
                        variables={**installed[run.mpi].variables, **run.variables},
                    )
                    verdict = report(dumps if run.with_fabric else [], done)["verdict"]
                except (JobError, subprocess.TimeoutExpired) as error:
                    print(f"{run.name}: {error}", file=sys.stderr)
                    verdict = {"kind": "failed", "cause": None}
                good = verdict["kind"] == run.kind and (not run.causes or verdict["cause"] in run.causes)
                total[run.kind] += 1
                right[run.kind] += good
                planted = f"{run.kind}{': ' if run.causes else ''}{', '.join(run.causes)}"
                found = f"{verdict['kind']}{': ' if verdict['cause'] else ''}{verdict['cause'] or ''}"
                print(f"| {planted} | {run.name} | {found} | {'yes' if good else 'NO'} |", flush=True)
                if not good:
                    print(f"run{number}: {verdict.get('text')}", file=sys.stderr)
    print()
    print("| kind | right | of |")
    print("|---|---|---|")
    for kind, count in total.items():
        print(f"| {kind} | {right[kind]} | {count} |")
    print(f"| total | {right.total()} | {total.total()} |")
    print(f"load average {os.getloadavg()[0]:.1f} at the end", file=sys.stderr)
    return int(right.total() < 0.95 * total.total())


if __name__ == "__main__":
    sys.exit(main())
