# SPDX-License-Identifier: Apache-2.0
"""Measure CPU time and memory of this and an older `ibprof-layout` on 11,664 hosts, with tables in the cache.

python benchmarks/layout_from_cache.py [--runs N] [--commit COMMIT] [--traffic TRAFFIC]

The fat-tree is generated, and written in the format of OpenSM's dumps. The installed version and the older version run
in turn, and must write the same links.csv. The older version runs from sources, with kernels built from these sources.
The exit status is 1 if the ratio of CPU times or the memory is above a limit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from spread import LARGE, write_fdbs, write_lst

from ibprof_converter.routing.subnet import join_subnet
from ibprof_converter.routing.synthetic.spec import generate

ROOT = Path(__file__).parents[1]
COMMIT = "d2f2f1ec"
"""The last commit that made a Python object for each port of a fabric."""

RATIO = 0.4
MEMORY_MB = 300
COMMAND = """
import sys
from ibprof_converter.cli.layout import main
status = main()
# The largest memory of this program. wait4 also counts the parent's memory, from before this program was loaded.
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
sys.exit(status)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="number of runs of each version (default: 5)")
    parser.add_argument("--commit", default=COMMIT, help=f"the older version (default: {COMMIT})")
    parser.add_argument("--traffic", default="pattern:shift:1", help="default: pattern:shift:1")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, tree = Path(name), Path(name, "tree")
        write_dumps(folder)
        run(["git", "worktree", "add", "--quiet", "--detach", tree, wanted.commit], ROOT)
        try:
            build_kernels(tree)
            versions = {"this version": os.environ.get("PYTHONPATH", ""), wanted.commit: f"{tree}:{tree}/converter"}
            measured = measure(versions, folder, wanted.traffic, wanted.runs)
        finally:
            run(["git", "worktree", "remove", "--force", tree], ROOT)
    (cpu, memory), (old_cpu, old_memory) = measured.values()
    for version, (seconds, megabytes) in measured.items():
        print(f"{version:>12}: {seconds:.2f} s of CPU, {megabytes:.0f} MB")
    print(
        f"this version / older version: CPU time {cpu / old_cpu:.2f} (limit {RATIO}), memory {memory / old_memory:.2f}"
    )
    sys.exit(cpu / old_cpu > RATIO or memory > MEMORY_MB)


def run(command: Sequence[str | Path], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def write_dumps(folder: Path) -> None:
    """Write the links and the tables of the fat-tree."""
    made = generate(LARGE)
    subnet = join_subnet(made.fabric, made.tables)
    write_lst(subnet, folder / "opensm-subnet.lst")
    write_fdbs(subnet, folder / "opensm.fdbs")
    long_ago = time.time() - 60  # the cache ignores recently changed files, because they may still change
    os.utime(folder / "opensm.fdbs", (long_ago, long_ago))


def build_kernels(tree: Path) -> None:
    """Build the kernels of a tree, so that packages can be imported from the tree's sources."""
    run(["cmake", "-S", tree, "-B", tree / "build", "-DCMAKE_BUILD_TYPE=Release"], tree)
    run(["cmake", "--build", tree / "build", "--target", "ibprof_kernels"], tree)
    lib = tree / "ibprof/lib"
    lib.mkdir()
    shutil.copy(tree / "build/csrc/kernels/libibprof_kernels.so", lib)
    if (maker := tree / "csrc/make_interface.py").exists():
        run([sys.executable, maker, lib / "kernels_interface.py", tree / "csrc/include/ibprof_kernels.h"], tree)
    (tree / "ibprof/include").symlink_to(tree / "csrc/include")


def measure(versions: dict[str, str], folder: Path, traffic: str, runs: int) -> dict[str, tuple[float, float]]:
    """Return version -> median CPU time in s, and largest memory in MB; `versions` has each version's PYTHONPATH."""
    seconds: dict[str, list[float]] = {version: [] for version in versions}
    megabytes: dict[str, list[float]] = {version: [] for version in versions}
    for number in range(runs + 1):  # the first run of a version fills its cache
        for version, path in versions.items():
            environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(folder / version)}
            command = [sys.executable, "-c", COMMAND, "opensm-subnet.lst", traffic, "-o", f"{version}.csv"]
            with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout
                kilobytes = int(process.stdout.read())
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                sys.exit(f"{version}: status {process.returncode}")
            if number:
                seconds[version].append(used.ru_utime + used.ru_stime)
                megabytes[version].append(kilobytes / 1e3)
    if len({(folder / f"{version}.csv").read_bytes() for version in versions}) > 1:
        sys.exit("the versions write different links.csv")
    return {version: (statistics.median(seconds[version]), max(megabytes[version])) for version in versions}


if __name__ == "__main__":
    main()
