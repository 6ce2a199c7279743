# SPDX-License-Identifier: Apache-2.0
"""Compare predicted with measured loads and times of jobs on a routed network of Linux namespaces.

python benchmarks/lab/loads.py -o FOLDER [CASE ...]       (as root)

The program prints a row for each job: range of deviations over link directions, measured time, time at line rate, and
simulated time. A deviation is (bytes by an interface's counter) / (predicted bytes with headers) - 1.
"""

from __future__ import annotations

import argparse
import csv
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ibprof.load import load_profile
from ibprof.profile.profile_data import Direction
from ibprof_testing.lab import routed_network
from ibprof_testing.lab.lab_fabrics import LabRail, make_rail
from ibprof_testing.lab.routed_jobs import LabRun, add_headers, call, compile_program, load_links, report, run_job

HOSTS = tuple(f"host{number:02d}" for number in range(1, 17))
SHUFFLED = tuple(np.random.default_rng(3).permutation(np.array(HOSTS)).tolist())


class LoadCase(NamedTuple):
    """A job: rail, host of each rank, and arguments of the program (pattern, bytes, rounds)."""

    rail: LabRail
    ranks_on: tuple[str, ...]
    words: tuple[str, ...]


def cases() -> dict[str, LoadCase]:
    plain = make_rail()
    slow = make_rail(slow={("L1-3", "L2-1"): 5.0, ("L1-3", "L2-2"): 5.0})
    minhop = make_rail(engine="minhop")
    return {
        "halo, shuffled": LoadCase(plain, SHUFFLED, ("halo", "200000", "4")),
        "halo, in order": LoadCase(plain, HOSTS, ("halo", "200000", "4")),
        "samplesort": LoadCase(plain, HOSTS, ("samplesort", "100000", "2")),
        "samplesort, OpenSM's minhop": LoadCase(minhop, HOSTS, ("samplesort", "100000", "2")),
        "transpose of 4 groups": LoadCase(plain, HOSTS, ("transpose", "300000", "3")),
        "all-to-all, 32 ranks": LoadCase(plain, HOSTS + HOSTS, ("alltoall", "60000", "1")),
        "broadcast, slow uplinks": LoadCase(slow, HOSTS, ("bcast", "1000000", "2")),
        "gather": LoadCase(plain, HOSTS, ("gather", "500000", "1")),
        "pairs across": LoadCase(plain, HOSTS, ("pairs", "500000", "3")),
        "neighbours": LoadCase(plain, HOSTS, ("neighbours", "500000", "3")),
    }


def replay(dumps: Sequence[Path], run: LabRun, ranks_on: Sequence[str]) -> float | None:
    """Return the time at which the last message arrives in the packet simulator's replay; None if no message arrives.

    In the replay, all ranks send equally many messages: a rank with few messages repeats the run. So only the time of
    the ranks with most messages counts.
    """
    folder = run.profile.parent
    profile = load_profile(run.profile)
    sent = np.zeros(len(ranks_on), np.int64)
    rows = profile.counters.direction == Direction.SENT
    np.add.at(sent, profile.counters.rank[rows], profile.counters.messages[rows].astype(np.int64))
    job = f"name: mpi, role: profile, profile: {run.profile}, limit: {sent.max()}"
    effort = "{messages: 5, warm_up: 0, background: 1}"
    (folder / "study.yaml").write_text(f"fabric: {dumps[0]}\nservers: 0\neffort: {effort}\njobs:\n  - {{{job}}}\n")
    call("ibprof-sim", "run", "study.yaml", "-o", "sim", "--workers", "1", folder=folder)
    busiest = {ranks_on[rank] for rank in np.flatnonzero(sent == sent.max()).tolist()}
    with (folder / "sim" / "clients.csv").open() as file:
        rows_of = [row for row in csv.DictReader(file) if row["last_us"] and row["name"].split()[0] in busiest]
    return max((float(row["last_us"]) * 1e-6 for row in rows_of), default=None)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if the load of a link deviates by more than 3%."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="an empty folder for recordings")
    parser.add_argument("case", nargs="*")
    wanted = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # exit normally, to take the network down
    output = wanted.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    program = compile_program("lab_patterns.c", output)
    print(f"load average {os.getloadavg()[0]:.1f} at the beginning", file=sys.stderr)
    heads = (
        "job",
        "bytes, rounds",
        "most loaded link, bytes",
        "links deviate by",
        "measured s",
        "line rate s",
        "simulator s",
    )
    print(f"| {' | '.join(heads)} |")
    print("|---|---|---|---|---|---|---|")
    worst = 0.0
    for name, case in cases().items():
        if wanted.case and name not in wanted.case:
            continue
        folder = output / name.replace(" ", "-").replace(",", "").replace("'", "")
        with tempfile.TemporaryDirectory() as place, routed_network.up([case.rail], Path(place)) as network:
            run = run_job(
                network, case.ranks_on, [program, *case.words], folder / "run", variables={"IBPROF_INTERVAL": "5"}
            )
            dumps = network.write_dumps(folder)
        expected = load_links(dumps, add_headers(network, run))
        most = max(expected.values())
        # Leave out links with little traffic, because a single TCP connection changes their load noticeably.
        used = {end: amount for end, amount in expected.items() if amount > most / 100}
        deviations = [run.counted[end] / amount - 1 for end, amount in used.items()]
        worst = max(worst, *map(abs, deviations))
        line = report(dumps, run)["diagnosis"]["max_time_s"]
        simulated = replay(dumps, run, case.ranks_on)
        print(
            f"| {name} | {' x '.join(case.words[1:])} | {most:,} | {min(deviations):+.1%} to {max(deviations):+.1%} "
            f"({len(used)} of {len(expected)}) | {run.seconds:.2f} | {line:.2f} "
            f"| {'-' if simulated is None else f'{simulated:.2f}'} |",
            flush=True,
        )
        assert not run.lost, run.lost
    print(f"load average {os.getloadavg()[0]:.1f} at the end", file=sys.stderr)
    return int(worst > 0.03)


if __name__ == "__main__":
    sys.exit(main())
