# SPDX-License-Identifier: Apache-2.0
"""Compare measured times and costs of ibprof, of mpiP, and of a timer of every call.

Without PROGRAM, the output is the cost of a message (self-send of 8 bytes) with each variant, in alternating runs. With
PROGRAM, ibprof and the other timer measure the program's time in MPI in the same run. The output is by operation; with
--callers 1, by call site. The timer of every call reads the clock inside of ibprof's wrappers, and measures the time
inside MPI. mpiP is preloaded before libibprof.so, so that mpiP's time includes ibprof's work. The last column is the
difference of both times per call, in ns. Run it where ibprof is installed:

    python benchmarks/overhead/side_by_side.py [--mpip libmpiP.so] [--rounds N] [--messages N]
    python benchmarks/overhead/side_by_side.py [--mpip libmpiP.so | --callers N] [--ranks N] -- PROGRAM [ARGUMENT...]

libmpiP.so must be built from mpiP's sources. Without --mpip, the other timer is every_call.c.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench import HERE, MONITORED, WITH, WITHOUT, WRAPPED, Bench, ratio_interval, show_table, take_turns

from ibprof.load import load_profile
from ibprof.native.installed_files import find_library
from ibprof.profile.efficiency import elapsed_s
from ibprof.profile.profile_data import Profile
from ibprof.text.quantities import shorten_site

LARGE = 0.01
"""Call sites with less than this fraction of the run's time are not compared."""

MPIP_WITHOUT_WALK = "-k 0"
"""Options of mpiP that turn off its stack walk, because mpiP's time would include it."""

MPIP_ROW = re.compile(r"^(\w+)\s+(\d+)\s+\*\s+(\d+)\s+\S+\s+(\S+)\s", re.MULTILINE)
"""A row of mpiP's callsite time statistics: operation, number of the site, calls of all ranks, mean time in ms."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Calls of an operation at a call site, by all ranks.

    Attributes:
        name: name of the call site; empty if only the address is known.
        key: identifier of the call site, the same for both timers.
    """

    operation: str
    name: str
    key: tuple[str, int]
    calls: int
    seconds: float


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Set environment variables, which launchers pass on to ranks."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    yield
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


def show_costs(bench: Bench, mpip: Path | None, rounds: int, messages: int) -> None:
    """Print the time of a message with each variant."""
    program = bench.build("selfsend")
    variants: dict[str, tuple[str, dict[str, str], tuple[Path, ...]]] = {
        WITHOUT: (WITHOUT, {}, ()),
        WRAPPED: (WRAPPED, {}, ()),
        "ibprof, `IBPROF_SITES=0`": (WITH, {"IBPROF_SITES": "0"}, ()),
        "with sites": (WITH, {"IBPROF_SITES": "1"}, ()),
        "`IBPROF_TIME=1 IBPROF_SITES=0`": (WITH, {"IBPROF_TIME": "1", "IBPROF_SITES": "0"}, ()),
        "with both, the default": (WITH, {"IBPROF_TIME": "1", "IBPROF_SITES": "1"}, ()),
    }
    if MONITORED in bench.variants:
        variants["Open MPI's monitoring"] = (MONITORED, {}, ())
    if mpip:
        variants["mpiP, `-k 0`"] = (WITHOUT, {"MPIP": f"{MPIP_WITHOUT_WALK} -f {bench.folder}"}, (mpip,))
        variants["mpiP, its default"] = (WITHOUT, {"MPIP": f"-f {bench.folder}"}, (mpip,))

    def measure(name: str) -> float:
        variant, variables, preloaded = variants[name]
        with environment(**variables):
            said = bench.run(variant, 1, program, str(messages), preloaded=preloaded)
        return float(next(line for line in said.splitlines() if re.fullmatch(r"[\d.]+", line)))

    measured = take_turns(list(variants), rounds, measure)
    rows = []
    for name, values in measured.items():
        ratio, low, high = ratio_interval(values, measured[WITHOUT])
        rows.append([name, f"{np.median(values):.1f}", f"{ratio:.3f}", f"{low:.3f} to {high:.3f}"])
    print(f"Self-send of 8 bytes (Irecv, Send, Wait), medians of {rounds} rounds of {messages:,} messages\n")
    show_table(["", "ns a message", "ratio", "95% interval"], rows)


def of_ibprof(run: Profile, outer: str) -> list[Timed]:
    """Return ibprof's timed calls, by the innermost caller outside of `outer`, the other timer's library."""
    sums: defaultdict[tuple[str, str, tuple[str, int]], list[float]] = defaultdict(lambda: [0, 0.0])
    times = run.times
    for row in range(len(times.calls)):
        site = run.sites[times.site[row] - 1] if times.site[row] else None
        places = [each for each in (site, *site.callers) if Path(each.object).name != outer] if site else []
        operation, name = run.operations[times.operation[row]], places[0].name if places else "(unknown)"
        found = sums[operation, name, (places[0].object, places[0].address) if places else ("", 0)]
        found[0] += int(times.calls[row])
        found[1] += int(times.time_ns[row]) * 1e-9
    return [Timed(*of, int(calls), seconds) for of, (calls, seconds) in sums.items()]


def _of_every_call(folder: Path) -> list[Timed]:
    sums: defaultdict[tuple[str, tuple[str, int]], list[int]] = defaultdict(lambda: [0, 0])
    for file in folder.glob("every.*"):
        for line in file.read_text().splitlines():
            operation, path, address, calls, ns = line.split()
            found = sums[operation.upper(), (path, int(address))]
            found[0] += int(calls)
            found[1] += int(ns)
    return [Timed(operation, "", key, calls, ns * 1e-9) for (operation, key), (calls, ns) in sums.items()]


def _of_mpip(folder: Path) -> list[Timed]:
    (report,) = folder.glob("*.mpiP")
    text = report.read_text(errors="replace").split("@--- Callsite Time statistics")[1].split("@---")[0]
    return [
        Timed(operation.upper(), "", (site, 0), int(calls), int(calls) * float(mean) * 1e-3)
        for operation, site, calls, mean in MPIP_ROW.findall(text)
    ]


def _by_operation(timed: Sequence[Timed]) -> list[Timed]:
    return [
        Timed(name, "", (name, 0), sum(each.calls for each in same), sum(each.seconds for each in same))
        for name in sorted({each.operation for each in timed})
        for same in [[each for each in timed if each.operation == name]]
    ]


def pair(recorded: Sequence[Timed], timed: Sequence[Timed]) -> list[tuple[Timed, Timed]]:
    """Return pairs (ibprof's, other timer's) of call sites that both timers saw, sorted by time, descending."""
    found = {(each.operation, each.key): each for each in timed}
    most = sorted(recorded, key=lambda each: -each.seconds)
    return [(each, found[each.operation, each.key]) for each in most if (each.operation, each.key) in found]


def _build_timer(bench: Bench, name: str, *options: str) -> Path:
    """Build the library that times every call, or the library that stores the return addresses of calls."""
    library = bench.folder / f"libevery_call_{name}.so"
    sources = HERE.parents[1] / "csrc"
    includes = (f"-I{sources}/preload", f"-I{sources}/include")
    line: list[str | Path] = [
        "cc",
        "-O2",
        "-fPIC",
        "-shared",
        *options,
        *includes,
        "-o",
        library,
        HERE / "every_call.c",
        "-ldl",
    ]
    subprocess.run(line, check=True)
    return library


def show_sites(bench: Bench, mpip: Path | None, ranks: int, callers: int, command: Sequence[str]) -> None:
    """Show the time of a program by call site, from both timers in one run."""
    outer, inside = (
        (mpip, []) if mpip else (_build_timer(bench, "outside", "-DOUTSIDE"), [_build_timer(bench, "inside")])
    )
    with environment(
        IBPROF_TIME="1",
        IBPROF_SITES="1",
        IBPROF_CALLERS=str(callers),
        MPIP=f"{MPIP_WITHOUT_WALK} -f {bench.folder}",
        EVERY_CALL=str(bench.folder / "every"),
    ):
        bench.run(WITH, ranks, *command, first=[outer], preloaded=inside)
    run = load_profile(bench.recording)
    recorded = of_ibprof(run, outer.name)
    timed = _of_mpip(bench.folder) if mpip else _of_every_call(bench.folder)
    if mpip or not callers:
        recorded, timed = _by_operation(recorded), _by_operation(timed)
    wrapped = {each.operation for each in recorded}
    timed = [each for each in timed if each.operation in wrapped]
    run_s = sum(elapsed_s(rank) for rank in run.ranks)
    other = "mpiP" if mpip else "full timing"
    rows = []
    for one, two in pair(recorded, timed):
        if two.seconds >= LARGE * run_s:
            rows.append(_row(one.operation, shorten_site(one.name), one, two))
    total = [Timed("", "", ("", 0), sum(e.calls for e in es), sum(e.seconds for e in es)) for es in (recorded, timed)]
    rows.append(_row("all", "", *total))
    print(f"`{' '.join(command)}`, {ranks} ranks, {run_s / ranks:.2f} s; call sites with at least {LARGE:.0%} of it\n")
    show_table(["operation", "site", "calls", f"{other}, s", "ibprof, s", "difference", "difference a call, ns"], rows)


def _row(operation: str, name: str, recorded: Timed, timed: Timed) -> list[str]:
    ratio = recorded.seconds / timed.seconds - 1 if timed.seconds else 0.0
    each_ns = (recorded.seconds - timed.seconds) / max(timed.calls, 1) * 1e9
    seconds = (f"{timed.seconds:.3f}", f"{recorded.seconds:.3f}")
    return [operation, name, f"{timed.calls:,}", *seconds, f"{ratio:+.2%}", f"{each_ns:+.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mpip", type=Path, metavar="FILE", help="libmpiP.so that was built for this MPI")
    parser.add_argument(
        "--mpi", type=Path, default=Path("/usr/bin"), metavar="FOLDER", help="folder of mpirun (default: /usr/bin)"
    )
    parser.add_argument("--rounds", type=int, default=12, metavar="N", help="rounds of each variant")
    parser.add_argument("--messages", type=int, default=500_000, metavar="N", help="messages of each run")
    parser.add_argument("--ranks", type=int, default=2, metavar="N", help="ranks of PROGRAM")
    parser.add_argument(
        "--callers",
        type=int,
        default=0,
        metavar="N",
        help="number of callers to record; 0: compare operations, not call sites",
    )
    parser.add_argument("command", nargs="*", metavar="PROGRAM", help="PROGRAM and its arguments, after --")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(wanted.mpi, Path(folder), find_library())
        print(f"{bench.version}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}\n")
        if wanted.command:
            show_sites(bench, wanted.mpip, wanted.ranks, wanted.callers, wanted.command)
        else:
            show_costs(bench, wanted.mpip, wanted.rounds, wanted.messages)


if __name__ == "__main__":
    main()
