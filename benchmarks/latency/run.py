# SPDX-License-Identifier: Apache-2.0
"""What Python adds to a delay that `ibprof-latency measure` reports: the same loop in C beside it, two ranks, in turn.

Run it where ibprof is installed, with an MPI, on a machine that does nothing else:  python benchmarks/latency/run.py
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from pathlib import Path

from ibprof_converter.latency.files import read_delays

_ROUNDS = 7


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "pingpong"
        subprocess.run(["mpicc", "-O2", "-o", program, Path(__file__).with_name("pingpong.c")], check=True)
        in_c, here = [], []
        for _ in range(_ROUNDS):
            done = subprocess.run(["mpirun", "-n", "2", program], check=True, capture_output=True, text=True)
            in_c.append(float(done.stdout))
            path = Path(folder) / "delays.nc"
            line = ["mpirun", "-n", "2", "ibprof-latency", "measure", "--again", "0", "-o", str(path)]
            subprocess.run(line, check=True, capture_output=True)
            here.append(float(read_delays(path).median[0, 0, 1]) * 1e6)
    one, other = statistics.median(in_c), statistics.median(here)
    print(f"half a round trip of 0 bytes: C {one:.2f} us, ibprof-latency {other:.2f} us, {other - one:.2f} us more")
    print(f"C {min(in_c):.2f} to {max(in_c):.2f}, here {min(here):.2f} to {max(here):.2f}, in {_ROUNDS} runs of each")


if __name__ == "__main__":
    main()
