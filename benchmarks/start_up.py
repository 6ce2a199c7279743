# SPDX-License-Identifier: Apache-2.0
"""Compare the CPU time of commands with the CPU time of `import numpy`.

python benchmarks/start_up.py [--demo FOLDER] [--runs N]

FOLDER is the result of `ibprof demo`. If FOLDER does not exist, the demo runs first. Commands run in turn: other work
of the machine affects them equally. The table shows medians. The exit status is 1 if a ratio is above a limit.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

UNIT = "import numpy"
PLACED = ("fabric/opensm-subnet.lst", "profile.otf2", "--placement", "fabric/order.csv")
COMMANDS = {
    "ibprof --help": ("from ibprof.cli.main import main", ("--help",), 1.6),
    "ibprof-report --help": ("from ibprof_converter.cli.report import main", ("--help",), 1.6),
    "ibprof-report --placement on the demo": ("from ibprof_converter.cli.report import main", PLACED, 4.5),
    "ibprof-report --placement --json on the demo": (
        "from ibprof_converter.cli.report import main",
        (*PLACED, "--json"),
        4.5,
    ),
    "ibprof info on the demo": ("from ibprof.cli.info import main", ("profile.otf2",), None),
} | {
    f"ibprof {name} --help": (f"from {package}.cli.{name} import main", ("--help",), 1.6)
    for package, names in (
        ("ibprof", ("run", "env", "lib", "collect", "completion", "calls", "matrix", "doctor", "info")),
        ("ibprof_converter", ("layout", "place", "view", "diff", "watch", "demo", "routes")),
        ("ibprof_lab", ("latency", "scaling", "sim", "topology")),
    )
    for name in names
}
"""Command -> (Python statement that imports the command's `main`; arguments; limit of the ratio, None for no limit)."""


def measure_cpu_s(code: str, arguments: tuple[str, ...], folder: Path) -> float:
    """Return the CPU time (user and system) of a program, in seconds."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True
    )
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", metavar="FOLDER", type=Path, help="result of `ibprof demo`")
    parser.add_argument("--runs", metavar="N", type=int, default=9, help="number of runs of each command (default: 9)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.demo or Path(made) / "demo"
        if not (folder / "profile.otf2").exists():
            subprocess.run([sys.executable, "-m", "ibprof", "demo", str(folder)], stdout=subprocess.DEVNULL, check=True)
        programs = {UNIT: (UNIT, ())} | {
            name: (f"{load}; raise SystemExit(main())", words) for name, (load, words, _) in COMMANDS.items()
        }
        for code, words in programs.values():  # warm-up: compile modules and load files into memory
            measure_cpu_s(code, words, folder)
        times: dict[str, list[float]] = {name: [] for name in programs}
        for _ in range(arguments.runs):
            for name, (code, words) in programs.items():
                times[name].append(measure_cpu_s(code, words, folder))
    unit_s = statistics.median(times[UNIT])
    print(f"| command | CPU time | CPU time / that of `{UNIT}` | limit |\n|---|---|---|---|")
    above = 0
    for name, each in times.items():
        limit = COMMANDS[name][2] if name in COMMANDS else None
        ratio = statistics.median(each) / unit_s
        above += limit is not None and ratio > limit
        print(f"| `{name}` | {statistics.median(each):.3f} s | {ratio:.2f} | {limit or ''} |")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
