#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulates what the tables beside docs/thesis/interference.md lack, and writes them.

    python scripts/thesis-studies.py --minutes 60     goes on with the studies, what takes least first
    python scripts/thesis-studies.py                  only writes the tables, of the outcomes beside them

After it, scripts/thesis-tables.py writes the page's own tables.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ibprof_converter.simulation.study.cell import Cell, Outcome, Setting
from ibprof_converter.simulation.study.cost_estimate import estimate_hops
from ibprof_converter.simulation.study.job_patterns import SURVEY, THESIS_FABRIC
from ibprof_converter.simulation.study.presets import STUDIES
from ibprof_converter.simulation.study.result_tables import average_seeds, list_results, write_table
from ibprof_converter.simulation.study.sweep import STORE, find_stored, open_pool, run_cells

TABLES = Path(__file__).resolve().parents[1] / "docs" / "thesis"
PACKED = "outcomes.jsonl.xz"
"""What `STORE` has of all studies, without what no table shows."""

SEEDS = range(1, 6)
_NOT_SHOWN = ("by_client", "histogram", "over_time")
_AT_ONCE = 8
"""Simulations of each process, after which it is seen whether there is time left."""


def make_cells(study: str) -> list[Cell]:
    """Give the simulations of a study; of the throttle's, I/O jobs of both lengths."""
    setting = Setting(THESIS_FABRIC, effort=SURVEY)
    forms = (False, True) if study == "throttle" else (False,)
    return list(dict.fromkeys(cell for quick in forms for cell in STUDIES[study].make(setting, SEEDS, quick)))


def read_lines(text: bytes) -> dict[str, dict[str, Any]]:
    """Give outcomes by key; a line that was cut when its writer was killed is none."""
    outcomes = {}
    for line in text.splitlines():
        try:
            outcome = json.loads(line)
        except ValueError:
            continue
        outcome.pop("check", None)  # of the whole line
        outcomes[outcome["key"]] = outcome
    return outcomes


def unpack(tables: Path, folder: Path) -> None:
    """Lay the stored outcomes beside those that a folder has, where `run_cells` goes on with all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    store = folder / STORE
    outcomes = read_lines(lzma.decompress((tables / PACKED).read_bytes()))
    if store.exists():
        outcomes |= read_lines(store.read_bytes())
    store.write_text("".join(json.dumps(each) + "\n" for each in outcomes.values()), encoding="ascii")


def pack(folder: Path, cells: Sequence[Cell], tables: Path) -> None:
    """Store the outcomes of the studies' simulations, in the studies' order."""
    outcomes = read_lines((folder / STORE).read_bytes())
    shown = [outcomes[key] for key in dict.fromkeys(cell.key for cell in cells) if key in outcomes]
    for outcome in shown:
        outcome["latency"] |= dict.fromkeys(_NOT_SHOWN, ())
    text = "".join(json.dumps(each) + "\n" for each in shown)
    (tables / PACKED).write_bytes(lzma.compress(text.encode("ascii"), preset=9))


def list_missing(cells: Sequence[Cell], outcomes: dict[str, Outcome]) -> list[Cell]:
    """Give what has not been simulated, what takes least first, as the first seed of it took or as it is estimated."""

    def count_hops(cell: Cell) -> float:
        first = outcomes.get(replace(cell, seed=SEEDS[0]).key)
        return first.packet_hops if first else estimate_hops(cell)

    return sorted({cell.key: cell for cell in cells if cell.key not in outcomes}.values(), key=count_hops)


def simulate(cells: Sequence[Cell], folder: Path, minutes: float, workers: int) -> None:
    """Simulate what is missing, for about so long."""
    missing = list_missing(cells, find_stored(cells, folder))
    ends = time.monotonic() + 60 * minutes
    with open_pool(workers) as pool:
        for begin in range(0, len(missing), _AT_ONCE * workers):
            if pool is None or time.monotonic() > ends:
                return
            run_cells(missing[begin : begin + _AT_ONCE * workers], folder, pool)
            print(f"{min(begin + _AT_ONCE * workers, len(missing))} of {len(missing)}", file=sys.stderr, flush=True)


def average(cells: Sequence[Cell], outcomes: dict[str, Outcome]) -> list[dict[str, Any]]:
    """Give the rows of a study's table: all of the first seed, and of the others what there is."""
    return average_seeds(
        list_results([cell for cell in cells if cell.seed == SEEDS[0] or cell.key in outcomes], outcomes)
    )


def list_studies() -> Iterator[tuple[str, list[Cell]]]:
    """Give the studies that have a table, and their simulations."""
    for path in sorted(TABLES.glob("*.csv")):
        yield path.stem, make_cells(path.stem)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=0.0, help="to simulate for, about (default: 0)")
    parser.add_argument("--study", action="append", choices=STUDIES, help="to go on with alone, again for others too")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    parser.add_argument("--folder", type=Path, default=Path("build/thesis"), help="of unpacked outcomes")
    arguments = parser.parse_args()
    studies = dict(list_studies())
    cells = [cell for each in studies.values() for cell in each]
    unpack(TABLES, arguments.folder)
    if arguments.minutes:
        chosen = [cell for name in arguments.study or studies for cell in studies[name]]
        simulate(chosen, arguments.folder, arguments.minutes, arguments.workers)
    outcomes = find_stored(cells, arguments.folder)
    for name, each in studies.items():
        write_table(TABLES / f"{name}.csv", average(each, outcomes))
    pack(arguments.folder, cells, TABLES)


if __name__ == "__main__":
    main()
