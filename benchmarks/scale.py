# SPDX-License-Identifier: Apache-2.0
"""Measure the time and memory of commands, as users type them, for the recording of a large job.

python benchmarks/scale.py [--ranks 10000] [--destinations 500] [--regions 3] [--fabric xgft:3:18,18,36:1,18,18]

The recording is synthetic, written by ibprof_testing.lab.synthetic_recording.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path


def measure(what: str, command: list[str], folder: Path) -> None:
    """Run a command and print its time, its processor time and its largest resident memory."""
    begun = time.monotonic()
    child = os.spawnvpe(os.P_NOWAIT, command[0], command, {**os.environ, "PWD": str(folder)})
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit(f"{' '.join(command)} ended with status {os.waitstatus_to_exitcode(status)}")
    cpu = used.ru_utime + used.ru_stime
    print(
        f"{what:32} {time.monotonic() - begun:6.1f} s  {cpu:6.1f} s cpu  {used.ru_maxrss / 1024:6.0f} MiB", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=10_000)
    parser.add_argument("--destinations", type=int, default=500)
    parser.add_argument("--regions", type=int, default=3)
    parser.add_argument("--fabric", default="xgft:3:18,18,36:1,18,18")
    parser.add_argument("--recording", type=Path, help="read this recording, not a synthetic one")
    parser.add_argument("--only", help="run only matrix, layout, collect or read")
    wanted = parser.parse_args()
    python = [sys.executable, "-m"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recording = wanted.recording or folder / "synthetic.ibprof"
        if not recording.exists():
            size = [f"--{key}={getattr(wanted, key)}" for key in ("ranks", "destinations", "regions")]
            measure(
                "writing the recording",
                [*python, "ibprof_testing.lab.synthetic_recording", str(recording), *size],
                folder,
            )
        archive = str(recording.with_suffix(".otf2"))
        placed = [wanted.fabric, str(recording), "--placement", "packed", "-o", f"{name}/links.csv"]
        commands = {
            "matrix": [*python, "ibprof", "matrix", str(recording), "-o", f"{name}/matrix.csv"],
            "layout": [*python, "ibprof", "layout", *placed],
            "collect": [*python, "ibprof", "collect", str(recording), "-o", archive],
            "read": [*python, "ibprof", "matrix", archive, "-o", f"{name}/matrix2.csv"],
        }
        shown = {"matrix": "ibprof matrix", "layout": "ibprof-layout", "collect": "ibprof collect"}
        for key, command in commands.items():
            if wanted.only in (None, key):
                measure(shown.get(key, "ibprof matrix of the archive"), command, folder)


if __name__ == "__main__":
    main()
