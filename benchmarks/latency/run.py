# SPDX-License-Identifier: Apache-2.0
"""Measure the time that Python adds to a delay that `ibprof-latency measure` reports, compared with a loop in C.

Run it on an idle machine, with ibprof and an MPI installed: python benchmarks/latency/run.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from ibprof_lab.latency.files.delay_files import read_delays

_ROUNDS = 7
_LATENCY = Path(sysconfig.get_path("scripts")) / "ibprof-latency"
_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def launch(*command: str | Path) -> str:
    """Run two ranks and return what they printed."""
    line = ["mpirun", "-n", "2", *command]
    done = subprocess.run(line, env=_AS_ROOT | os.environ, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, line))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "pingpong"
        subprocess.run(["mpicc", "-O2", "-o", program, Path(__file__).with_name("pingpong.c")], check=True)
        in_c, here = [], []
        for _ in range(_ROUNDS):
            in_c.append(float(launch(program)))
            path = Path(folder) / "delays.nc"
            launch(_LATENCY, "measure", "--again", "0", "-o", path)
            here.append(float(read_delays(path).median[0, 0, 1]) * 1e6)
    one, other = statistics.median(in_c), statistics.median(here)
    print(f"half a round trip of 0 bytes: {one:.2f} µs in C, {other - one:.2f} µs more by ibprof-latency")
    print(f"{_ROUNDS} runs of each: C {min(in_c):.2f} to {max(in_c):.2f}, ", end="")
    print(f"ibprof-latency {min(here):.2f} to {max(here):.2f}")


if __name__ == "__main__":
    main()
