# SPDX-License-Identifier: Apache-2.0
"""On a routed network of Linux namespaces, apply the advice of reports, and measure whether jobs get faster.

python benchmarks/lab/advice.py -o FOLDER [CASE ...]       (as root)

The program prints a row for each planted case: communication times before and after the change (medians of several
runs), and the report's predicted times at line rate.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ibprof_converter.routing.route_choice import route_by_opensm
from ibprof_testing.lab import routed_network
from ibprof_testing.lab.applied_advice import AdviceError, Setting, apply
from ibprof_testing.lab.lab_fabrics import MBIT, LabRail, crowd, make_rail
from ibprof_testing.lab.routed_jobs import JobError, LabRun, compile_program, report, run_job

HOSTS = tuple(f"host{number:02d}" for number in range(1, 17))
FULL = "xgft:2:4,4:1,4"
"""A fat-tree; each leaf switch has as many uplinks as hosts."""

NARROW = "xgft:2:4,4:1,1"
"""A fat-tree; each leaf switch has one uplink for four hosts."""

_FOLDERS = re.compile(r"(?<=\s)/\S*/(?=\S)")
"""Pattern of the folder in a path; the table leaves folders out."""


@dataclass(frozen=True, slots=True)
class AdviceCase:
    """A job on a network.

    Attributes:
        planted: planted causes. A report is right if its first cause is planted.
        setting: network and placement of the job.
        healthy: as `setting`, but on rails without a planted cause.
        words: arguments of the program: pattern, bytes, rounds.
        options: the report's options.
    """

    planted: tuple[str, ...]
    setting: Setting
    healthy: Setting
    words: tuple[str, ...]
    options: tuple[str, ...] = ()


def shuffled(seed: int, hosts: Sequence[str] = HOSTS) -> tuple[str, ...]:
    return tuple(np.random.default_rng(seed).permutation(np.array(hosts)).tolist())


def cases() -> dict[str, AdviceCase]:
    plain = Setting((make_rail(),), HOSTS)
    full = Setting((make_rail(FULL),), HOSTS)
    both = Setting((make_rail(), make_rail(number=1)), HOSTS)
    four = Setting((make_rail(FULL, MBIT / 2, host_mbit=MBIT, engine="minhop"),), HOSTS, engine="minhop")
    gone = replace(four, rails=(make_rail(FULL, MBIT / 2, host_mbit=MBIT, gone=(("L1-2", "L2-2"),), engine="minhop"),))
    two = Setting((make_rail(engine="minhop"),), HOSTS, engine="minhop")
    one_of_two = replace(two, rails=(make_rail(gone=(("L1-2", "L2-2"),), engine="minhop"),))
    single = Setting((make_rail(NARROW),), HOSTS)
    slow = replace(plain, rails=(make_rail(slow={("L1-3", "L2-1"): 5.0}),))
    crowded = replace(plain, rails=(crowd(plain.rails[0], "L2-1"),))
    twice = replace(plain, ranks_on=HOSTS + HOSTS)
    scattered = replace(single, ranks_on=tuple(HOSTS[leaf * 4 + each] for each in range(2) for leaf in range(4)))
    within = ("neighbours", "600000", "3")
    return {
        "tables": AdviceCase(("routing",), crowded, plain, ("alltoall", "60000", "2")),
        "shuffled halo": AdviceCase(
            ("placement",), replace(plain, ranks_on=shuffled(3)), plain, ("halo", "200000", "4")
        ),
        "shuffled transpose": AdviceCase(("placement",), plain, plain, ("transpose", "200000", "3")),
        "missing uplink of four": AdviceCase(("missing-uplink",), gone, four, ("alltoall", "60000", "2")),
        "missing uplink of two": AdviceCase(
            ("missing-uplink", "oversubscription"), one_of_two, two, ("alltoall", "60000", "2")
        ),
        "slow link": AdviceCase(("slow-link",), slow, plain, ("alltoall", "60000", "1")),
        "ranks on hosts": AdviceCase(
            ("placement",), replace(twice, ranks_on=shuffled(5, HOSTS + HOSTS)), plain, ("halo", "100000", "4")
        ),
        "pairs of ranks": AdviceCase(
            ("placement",), replace(twice, ranks_on=shuffled(7, HOSTS + HOSTS)), plain, within
        ),
        "far hosts": AdviceCase(("placement",), scattered, single, ("transpose", "400000", "2")),
        "one rail": AdviceCase(
            ("one-rail",), replace(both, used=(0,)), both, ("alltoall", "200000", "1"), ("--rails", "first")
        ),
        "innocent: full tree": AdviceCase((), full, full, ("alltoall", "60000", "2")),
        "innocent: within leaves": AdviceCase((), plain, plain, within),
    }


def tries_of_innocents(setting: Setting) -> dict[str, Setting]:
    """Return plausible changes of a case without a planted cause: name -> changed setting."""
    rail = setting.rails[0]
    ftree = LabRail(rail.fabric, route_by_opensm(rail.fabric, "ftree").subnet.tables)
    return {
        "another order": replace(setting, ranks_on=shuffled(11, setting.ranks_on)),
        "opensm -R ftree": replace(setting, rails=(ftree,)),
    }


def measure(
    setting: Setting, words: Sequence[str], program: Path, folder: Path, repeats: int
) -> tuple[float, LabRun, list[Path]]:
    """Run a job several times; return the median time, the last run, and the dumps."""
    folder.mkdir(parents=True)
    seconds = []
    with tempfile.TemporaryDirectory() as place, routed_network.up(setting.rails, Path(place)) as network:
        dumps = network.write_dumps(folder)
        for number in range(repeats):
            run = run_job(network, setting.ranks_on, [program, *words], folder / f"run{number}", rails=setting.used)
            seconds.append(run.seconds)
            assert not run.lost, run.lost
    return statistics.median(seconds), run, dumps


def try_case(name: str, case: AdviceCase, program: Path, folder: Path, repeats: int) -> dict[str, Any]:
    """Run a case, apply the report's advice, and run the case again; return the measured and predicted times."""
    before, run, dumps = measure(case.setting, case.words, program, folder / "before", repeats)
    document = report(dumps, run, *case.options)
    diagnosis = document["diagnosis"] or {"causes": [], "max_time_s": 0.0}
    found: dict[str, Any] = {
        "case": name, "job": " ".join(case.words), "planted": ", ".join(case.planted) or "-", "before_s": before,
        "line_before_s": diagnosis["max_time_s"], "verdict": document["verdict"]["kind"],
    }  # fmt: skip
    causes = diagnosis["causes"]
    found["named"] = causes[0]["cause"] if causes else "-"
    if not causes:
        after = {
            what: measure(other, case.words, program, folder / what.replace(" ", "-"), repeats)[0]
            for what, other in (tries_of_innocents(case.setting) if not case.planted else {}).items()
        }
        best = min(after, key=lambda what: after[what], default="")
        return found | {
            "change": f"(tried: {best})",
            "after_s": after.get(best),
            "line_after_s": found["line_before_s"],
        }
    first = causes[0]
    found |= {"change": first["change"], "line_after_s": first["max_time_after_s"]}
    try:
        setting = apply(first, case.setting, case.healthy.rails, [*dumps, run.profile])
    except (AdviceError, JobError) as error:
        return found | {"after_s": None, "change": f"{first['change']}: not applied: {error}"}
    found["after_s"] = measure(setting, case.words, program, folder / "after", repeats)[0]
    return found


def judge(found: dict[str, Any]) -> str:
    """Return "yes" if the report names a planted cause, and at least half of the predicted gain was measured.

    Without a planted cause, return "yes" if the report names no cause, and no change saves more than 10%.
    """
    if found["after_s"] is None:
        return "no"
    saved = found["before_s"] - found["after_s"]
    claimed = found["line_before_s"] - found["line_after_s"]
    if found["planted"] == "-":
        return "yes" if found["named"] == "-" and saved <= 0.1 * found["before_s"] else "no"
    return "yes" if found["named"] in found["planted"] and claimed > 0 and saved >= claimed / 2 else "no"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="an empty folder for recordings and reports")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("case", nargs="*")
    wanted = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # exit normally, to take the network down
    wanted.output = wanted.output.resolve()
    wanted.output.mkdir(parents=True, exist_ok=True)
    program = compile_program("lab_patterns.c", wanted.output)
    print(f"load average {os.getloadavg()[0]:.1f} at the beginning", file=sys.stderr)
    heads = "case", "job", "named first", "change, as printed", "before s", "after s", "saved", "predicted s"
    print(f"| {' | '.join((*heads, 'predicted saved', 'came true'))} |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    bad = 0
    for name, case in cases().items():
        if wanted.case and name not in wanted.case:
            continue
        found = try_case(name, case, program, wanted.output / name.replace(" ", "-").replace(":", ""), wanted.repeats)
        after = found["after_s"]
        true = judge(found)
        bad += true == "no"
        shown = "-" if after is None else f"{after:.2f}"
        saved = "-" if after is None else f"{1 - after / found['before_s']:.0%}"
        claimed = 1 - found["line_after_s"] / found["line_before_s"] if found["line_before_s"] else 0.0
        print(
            f"| {name} | {found['job']} | {found['named']} | "
            f"{_FOLDERS.sub('', found['change'])} | {found['before_s']:.2f} | {shown} | {saved} "
            f"| {found['line_before_s']:.2f} to {found['line_after_s']:.2f} | {claimed:.0%} | {true} |",
            flush=True,
        )
    print(f"load average {os.getloadavg()[0]:.1f} at the end", file=sys.stderr)
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
