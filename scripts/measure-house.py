# SPDX-License-Identifier: Apache-2.0
"""Measure the size of the Python packages, and the number of files that a report uses.

    scripts/measure-house.py [ibprof-report's arguments...]

It prints the packages' numbers of files and lines, and the number of modules that `ibprof-report --help` imports. It
also prints (CPU time of this command) / (CPU time of `import numpy`). With arguments, it prints the numbers of files
and functions that the report runs, and the same quotient for the report.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"ibprof": ROOT, "ibprof_converter": ROOT / "converter", "ibprof_lab": ROOT / "converter"}
RUNS = 9

TRACE = "\n".join(
    (
        "import sys",
        "from inspect import CO_OPTIMIZED  # set for functions, not for the bodies of classes and modules",
        "from ibprof_converter.cli import report",
        "files, functions = set(), set()",
        "def see(frame, event, _):",
        "    code = frame.f_code",
        '    named = event == "call" and code.co_flags & CO_OPTIMIZED and code.co_name[0] != "<"',
        '    if named and any(f"/{name}/" in code.co_filename for name in PACKAGES):',
        "        files.add(code.co_filename)",
        "        functions.add((code.co_filename, code.co_firstlineno))",
        "sys.setprofile(see)",
        "report.main(sys.argv[1:])",
        "sys.setprofile(None)",
        'recorder = {each for each in files if "/ibprof/" in each}',
        "print(len(files) - len(recorder), len(recorder), len(functions), file=sys.stderr)",
    )
)
MODULES = "\n".join(
    (
        "import sys",
        "from ibprof_converter.cli import report",
        "try:",
        '    report.main(["--help"])',
        "except SystemExit:",
        "    pass",
        'print(sum(name.partition(".")[0] in PACKAGES for name in sys.modules), file=sys.stderr)',
    )
)


def run_python(code: str, *arguments: str) -> list[int]:
    """Return the integers in the last line that a program prints on stderr."""
    preamble = f"PACKAGES = {tuple(PACKAGES)!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", preamble + code, *arguments], capture_output=True, text=True, check=True
    )
    return [int(word) for word in done.stderr.splitlines()[-1].split()]


def median_cpu_s(*command: str) -> float:
    """Return the median CPU seconds of several runs of a command, user and system together."""
    times = []
    for _ in range(RUNS):
        before = os.times()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return sorted(times)[RUNS // 2]


def main() -> int:
    """Print the size of the packages and the cost of a report, one figure per line."""
    files = [path for name, folder in PACKAGES.items() for path in (folder / name).rglob("*.py")]
    print(f"Python files: {len(files)}")
    print(f"Python lines: {sum(len(path.read_text(encoding='utf-8').splitlines()) for path in files):,}")
    print(f"modules of ibprof that ibprof-report --help imports: {run_python(MODULES)[0]}")
    numpy_s = median_cpu_s(sys.executable, "-c", "import numpy")
    report = (sys.executable, "-c", "from ibprof_converter.cli import report; report.main()")
    print(f"CPU time of ibprof-report --help / of import numpy: {median_cpu_s(*report, '--help') / numpy_s:.2f}")
    if arguments := sys.argv[1:]:
        others, recorder, functions = run_python(TRACE, *arguments)
        print(f"files whose functions run in this report: {others} of converter and lab, {recorder} of ibprof")
        print(f"functions that run: {functions}")
        print(f"CPU time of this report / of import numpy: {median_cpu_s(*report, *arguments) / numpy_s:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
