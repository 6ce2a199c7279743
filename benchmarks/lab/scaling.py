# SPDX-License-Identifier: Apache-2.0
"""Compare predicted with measured run times of 2 to 32 ranks on a routed network of Linux namespaces.

python benchmarks/lab/scaling.py -o FOLDER [--only KIND]    (as root)

The benchmark measures delays, records a program on few ranks, predicts the time on more ranks, and measures this time.
Ranks sleep instead of computing, because all ranks share the processors of one machine. The benchmark prints a table
with a row for each prediction.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ibprof.load import load_profile
from ibprof_lab.scaling.measured.call_costs import read_calls
from ibprof_testing import processes
from ibprof_testing.lab import routed_network
from ibprof_testing.lab.lab_fabrics import make_rail
from ibprof_testing.lab.routed_jobs import SCRIPTS, JobError, compile_program, run_job
from ibprof_testing.lab.routed_network import RoutedNetwork

HOSTS = tuple(f"host{number:02d}" for number in range(1, 17))
ROUNDS = 3
REPEATS = 2
"""Number of runs of each recorded case. Other work on the machine changes the times of equal runs."""

REFUSED = 5
"""Exit status of `ibprof-scaling predict` if it refuses to predict beyond its range."""

STRONG_SIZE = 6e6
WEAK_SIZE = 0.75e6
"""Bytes per rank in weak scaling. With 1.5e6 bytes, 32 ranks queue data longer than TCP's retransmission timeout."""


class Series(NamedTuple):
    """Recorded runs and runs to predict, each as (size, ranks)."""

    scaling: str
    recorded: tuple[tuple[float, int], ...]
    predicted: tuple[tuple[float, int], ...]


def list_series() -> Iterator[Series]:
    """Yield the runs of strong scaling, then the runs of weak scaling."""
    strong = [(STRONG_SIZE, ranks) for ranks in (2, 4, 6, 8, 12, 16, 32)]
    yield Series("strong", tuple(strong[:4]), tuple(strong[4:]))
    weak = [(WEAK_SIZE * ranks, ranks) for ranks in (2, 4, 6, 8, 12, 16, 32)]
    yield Series("weak", tuple(weak[:4]), tuple(weak[4:]))


def places(ranks: int) -> tuple[str, ...]:
    """Return the host of each rank. Ranks are placed in order, with as few ranks on a host as possible."""
    each = -(-ranks // len(HOSTS))
    return tuple(host for host in HOSTS for _ in range(each))[:ranks]


def measure_delays(network: RoutedNetwork, folder: Path) -> Path:
    """Measure delays between four hosts on two leaf switches, one pair at a time. Return the file's path."""
    hosts = [HOSTS[0], HOSTS[1], HOSTS[4], HOSTS[5]]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hosts").write_text("".join(f"{host}\n" for host in hosts))
    settings = {
        "plm_rsh_agent": network.hosts.agent,
        "plm_rsh_no_tree_spawn": 1,
        "oob_tcp_if_include": "eth0",
        "btl_tcp_if_include": "rail0",
        "btl": "tcp,vader,self",
        "btl_tcp_flags": 1,
        "pml": "ob1",
        "mpi_yield_when_idle": 1,
    }
    options = [str(word) for name, value in settings.items() for word in ("--mca", name, value)]
    line: list[str | Path] = [
        "nice",
        "-n",
        "-10",
        "/usr/bin/mpirun",
        "-n",
        "4",
        "--hostfile",
        folder / "hosts",
        "--map-by",
        "seq",
    ]
    line += ["--bind-to", "none", *options, SCRIPTS / "ibprof-latency", "measure", "--schedule", "sequential"]
    line += ["--lengths", "0,1K,8K,32K,128K,512K", "--repetitions", "3", "--again", "0", "-o", folder / "delays.nc"]
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = network.hosts.run(hosts[0], line, environment, folder, 300)
    if done.returncode:
        raise JobError(f"{done.stdout}\n{done.stderr}")
    return folder / "delays.nc"


def record(network: RoutedNetwork, program: Path, size: float, ranks: int, folder: Path) -> Path:
    """Record a run; return its profile."""
    return run_job(network, places(ranks), [program, f"{size:.0f}", str(ROUNDS)], folder).profile


def predict(words: Sequence[str], folder: Path) -> dict[str, Any] | None:
    """Return the row of a prediction; None if the command refuses to predict."""
    done = processes.run([SCRIPTS / "ibprof-scaling", *words], cwd=folder, timeout=300)
    if done.returncode == REFUSED:
        print(done.stderr.strip(), file=sys.stderr)
        return None
    found: dict[str, Any] = json.loads(done.stdout)["curve"][0]
    return found


def _show(row: dict[str, Any] | None) -> str:
    return "-" if row is None else f"{row['seconds']:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a measured time is outside of the predicted interval."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="an empty folder for recordings")
    parser.add_argument("--only", choices=("strong", "weak"), help="measure only this kind of scaling")
    wanted = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # exit normally, to take the network down
    output = wanted.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    program = compile_program("divided_work.c", output)
    print(f"load average {os.getloadavg()[0]:.1f} at the beginning", file=sys.stderr)
    print("| scaling | ranks | predicted s (95% interval) | without the tables s | measured s | inside |")
    print("|---|---|---|---|---|---|")
    outside = 0
    with tempfile.TemporaryDirectory() as place, routed_network.up([make_rail()], Path(place)) as network:
        (fabric,) = network.write_dumps(output)
        delays = measure_delays(network, output / "delays")
        for series in list_series():
            if wanted.only and series.scaling != wanted.only:
                continue
            recorded = [
                (size, record(network, program, size, ranks, output / f"{series.scaling}{ranks}-{repeat}"))
                for size, ranks in series.recorded
                for repeat in range(REPEATS)
            ]
            line = ["predict", *(f"{size:g}:{profile}" for size, profile in recorded), "--operations", "n"]
            line += ["--delays", str(delays), "--scaling", series.scaling, "--json"]
            for size, ranks in series.predicted:
                profile = record(network, program, size, ranks, output / f"{series.scaling}{ranks}")
                measured = read_calls(load_profile(profile), size).seconds
                line_of_row = [*line, "--processes", str(ranks)]
                row = predict([*line_of_row, "--fabric", str(fabric)], output)
                plain = predict(line_of_row, output)
                is_inside = None if row is None else bool(row["low"] <= measured <= row["high"])
                outside += is_inside is False
                print(
                    f"| {series.scaling} | {ranks} | {_show(row)} | {_show(plain)} | {measured:.2f} "
                    f"| {'refused' if is_inside is None else 'yes' if is_inside else 'NO'} |",
                    flush=True,
                )
    print(f"load average {os.getloadavg()[0]:.1f} at the end", file=sys.stderr)
    return int(outside > 0)


if __name__ == "__main__":
    sys.exit(main())
