# SPDX-License-Identifier: Apache-2.0
"""Try all cases of damaged fabrics and recordings, check ibprof's answers, and write the table of docs/damage.md.

Run it from a checkout, with ibprof installed:  python benchmarks/damage.py -o FOLDER [--page docs/damage.md]

FOLDER keeps each outcome, so that a stopped run can continue. After a change of ibprof, use a new folder.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import multiprocessing
import re
import shutil
import sys
import time
from pathlib import Path

from ibprof_testing.samples.damage import SILENT
from ibprof_testing.samples.damage_table import Outcome, list_subjects, tabulate

PARTS = 20
"""Number of parts into which the cases of each fabric or recording are divided. Parts alternate: a stopped run has
tried about the same fraction of each fabric's or recording's cases."""


def read_outcomes(folder: Path) -> dict[tuple[str, int], Outcome]:
    """Return the outcomes of finished cases, by (name of the fabric or recording, index of the case)."""
    found = {}
    for path in folder.glob("outcomes-*.csv"):
        whole_lines = path.read_text().rpartition("\n")[0].splitlines()  # a killed process may leave half a line
        for subject, number, kind, how in csv.reader(whole_lines):
            found[subject, int(number)] = subject, kind, how
    order = [*list_subjects()]
    return dict(sorted(found.items(), key=lambda item: (order.index(item[0][0]), item[0][1])))


def try_share(folder: Path, share: int, shares: int) -> None:
    """Try every `shares`-th unfinished case. Each of `PARTS` passes tries some cases of every fabric and recording."""
    done, scratch = read_outcomes(folder).keys(), folder / f"scratch-{share}"
    shutil.rmtree(scratch, ignore_errors=True)
    subjects = {name: make(scratch / f"{at}") for at, (name, make) in enumerate(list_subjects().items())}
    path = folder / f"outcomes-{share}-{time.time_ns()}.csv"
    with path.open("w", buffering=1) as file:
        out = csv.writer(file, lineterminator="\n")
        for part, (name, subject) in itertools.product(range(PARTS), subjects.items()):
            for number in range(part, len(subject.cases), PARTS):
                if number // PARTS % shares == share and (name, number) not in done:
                    kind = subject.cases[number].kind
                    out.writerow((name, number, kind, subject.judge(number, scratch / "case")))
    shutil.rmtree(scratch)


def main(arguments: list[str] | None = None) -> int:
    """Try the cases and print the table. Return 1 if damage changed a result and no message reported it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--page", type=Path, help="page to write the table into")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    start = multiprocessing.get_context("spawn").Process
    workers = [start(target=try_share, args=(options.output, at, options.processes)) for at in range(options.processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        return 2
    outcomes = [*read_outcomes(options.output).values()]
    table = "\n".join(tabulate(outcomes))
    print(table)
    if options.page:
        text = options.page.read_text()
        options.page.write_text(re.sub(r"\| damage \|.*\| total \|[^\n]*", lambda _: table, text, flags=re.DOTALL))
    return int(any(how == SILENT for _, _, how in outcomes))


if __name__ == "__main__":
    sys.exit(main())
