# SPDX-License-Identifier: Apache-2.0
"""Compare predicted times of recorded jobs with measured times on a routed network of Linux namespaces.

python benchmarks/lab/replay.py -o FOLDER [JOB ...]       (as root)

The program records a job on two leaf switches. `ibprof-sim replay` predicts the job's time in several settings: same
hosts, hosts on all leaf switches, poor forwarding tables, and next to another job. Then the job runs in each setting.
The program prints a table with a row for each setting. Ranks sleep instead of computing, because all ranks share the
processors of one machine.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ibprof.load import load_profile
from ibprof_testing.lab import routed_network
from ibprof_testing.lab.lab_fabrics import crowd, make_rail
from ibprof_testing.lab.routed_jobs import LabRun, call, compile_program, run_job
from ibprof_testing.lab.routed_network import RoutedNetwork

TOGETHER = tuple(f"host{number:02d}" for number in range(1, 9))
SPREAD = tuple(f"host{number:02d}" for number in (1, 5, 9, 13, 2, 6, 10, 14))
OTHERS = tuple(f"host{number:02d}" for number in (3, 7, 11, 15, 4, 8, 12, 16))
REPEATS = 3

SETTLE = 4.0
"""Seconds to wait after the start of the other job, until it surely runs."""

Words = tuple[str, ...]

JOBS: dict[str, Words] = {
    "halo": ("lab_patterns.c", "halo", "60000", "8", "150"),
    "all-to-all": ("lab_patterns.c", "alltoall", "60000", "5", "200"),
    "samplesort": ("lab_patterns.c", "samplesort", "60000", "5", "200"),
    "broadcast": ("lab_patterns.c", "bcast", "400000", "5", "150"),
    "transpose": ("lab_patterns.c", "transpose", "120000", "6", "150"),
    "divided work": ("divided_work.c", "4e6", "4"),
}
"""Name -> program and arguments."""

OTHER: Words = ("lab_patterns.c", "alltoall", "60000")
SHORT, LONG = ("5", "50"), ("60", "50")
"""Rounds and sleeping time of the other job: SHORT for recording this job, LONG for running next to a measured job."""


class Setting(NamedTuple):
    """A setting: forwarding tables, hosts of the job, presence of another job, and options of `ibprof-sim replay`."""

    name: str
    tables: str
    hosts: tuple[str, ...]
    has_other: bool
    options: Callable[[Path], list[str]]


def list_settings(others: Path) -> list[Setting]:
    """Return the settings; `options(folder of dumps)` returns options of `ibprof-sim replay`."""
    spread = ["--to-hosts", ",".join(SPREAD)]
    return [
        Setting("as recorded", "good", TOGETHER, False, lambda _: []),
        Setting("spread", "good", SPREAD, False, lambda _: spread),
        Setting("spread, poor tables", "poor", SPREAD, False, lambda folder: [*spread, "--to-fabric", str(folder)]),
        Setting("spread, next to another job", "good", SPREAD, True, lambda _: [*spread, "--next-to", str(others)]),
    ]


def run(network: RoutedNetwork, hosts: Sequence[str], words: Sequence[str | Path], folder: Path) -> LabRun:
    """Record a job with its time line."""
    return run_job(network, hosts, words, folder, variables={"IBPROF_INTERVAL": "10"})


def run_with_other(
    network: RoutedNetwork, hosts: Sequence[str], words: Sequence[str | Path], other: Sequence[str | Path], folder: Path
) -> LabRun:
    """Record a job while the other job runs."""
    thread = threading.Thread(target=run, args=(network, OTHERS, other, folder / "other"))
    thread.start()
    time.sleep(SETTLE)
    found = run(network, hosts, words, folder)
    if not thread.is_alive():
        print("the other job ended before the measured job", file=sys.stderr)
    thread.join()
    return found


def find_seconds(profile: Path) -> float:
    """Return the longest wall time of any rank."""
    return max((rank.stop_ns or rank.start_ns) - rank.start_ns for rank in load_profile(profile).ranks) / 1e9


def predict(profile: Path, fabric: Path, options: Sequence[str]) -> dict[str, Any]:
    line = ["replay", str(profile), "--fabric", str(fabric), *options, "--workers", "1", "--json"]
    found: dict[str, Any] = json.loads(call("ibprof-sim", *line, folder=profile.parent))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a measured time is outside of the predicted interval."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="an empty folder for recordings")
    parser.add_argument("job", nargs="*", help=", ".join(JOBS))
    wanted = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # exit normally, to take the network down
    output = wanted.output.resolve()
    rails = {"good": make_rail(), "poor": crowd(make_rail(), "L2-1")}
    for tables in rails:
        (output / tables).mkdir(parents=True)
    programs = {name: compile_program(name, output) for name in ("lab_patterns.c", "divided_work.c")}
    jobs: dict[str, list[str | Path]] = {
        name: [programs[words[0]], *words[1:]] for name, words in JOBS.items() if name in (wanted.job or JOBS)
    }
    other: list[str | Path] = [programs[OTHER[0]], *OTHER[1:]]
    settings = list_settings(output / "neighbour" / "profile.otf2")
    measured: dict[tuple[str, str], list[Path]] = {}
    print(f"load average {os.getloadavg()[0]:.1f} at the beginning", file=sys.stderr)
    for tables, rail in rails.items():
        with tempfile.TemporaryDirectory() as place, routed_network.up([rail], Path(place)) as network:
            network.write_dumps(output / tables)
            if tables == "good":
                run(network, OTHERS, [*other, *SHORT], output / "neighbour")
            for name, words in jobs.items():
                for setting in settings:
                    if setting.tables != tables:
                        continue
                    for repeat in range(REPEATS):
                        folder = output / f"{name}-{setting.name}-{repeat}".replace(" ", "-").replace(",", "")
                        found = (
                            run_with_other(network, setting.hosts, words, [*other, *LONG], folder)
                            if setting.has_other
                            else run(network, setting.hosts, words, folder)
                        )
                        measured.setdefault((name, setting.name), []).append(found.profile)
    print("| job | setting | measured s, median of 3 (minimum to maximum) | predicted s (interval) | error | inside |")
    print("|---|---|---|---|---|---|")
    outside = 0
    for name in jobs:
        for setting in settings:
            seconds = [find_seconds(profile) for profile in measured[name, setting.name]]
            middle = statistics.median(seconds)
            recorded = measured[name, settings[0].name][0]
            answer = predict(recorded, output / "good" / "rail0.lst", setting.options(output / "poor" / "rail0.lst"))
            is_inside = answer["low"] <= middle <= answer["high"]
            outside += not is_inside
            print(
                f"| {name} | {setting.name} | {middle:.2f} ({min(seconds):.2f} to {max(seconds):.2f}) "
                f"| {answer['seconds']:.2f} ({answer['low']:.2f} to {answer['high']:.2f}) "
                f"| {answer['seconds'] / middle - 1:+.0%} | {'yes' if is_inside else 'NO'} |",
                flush=True,
            )
    print(f"load average {os.getloadavg()[0]:.1f} at the end", file=sys.stderr)
    return int(outside > 0)


if __name__ == "__main__":
    sys.exit(main())
