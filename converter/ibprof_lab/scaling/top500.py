# SPDX-License-Identifier: Apache-2.0
"""Effective Linpack bandwidth of systems in a TOP500-like list, and correlations of quantities with the rank.

Source: slides 22 to 24 (see `scaling_model`).
"""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass
from pathlib import Path

from ibprof.errors import InputError, quote_found
from ibprof_lab.scaling.scaling_model import WORD

UNITS = {"flop/s": 1.0, "gflop/s": 1e9, "tflop/s": 1e12, "pflop/s": 1e15}
"""Unit of R_max in a header, in lower case -> Flop/s."""

_COLUMNS = {
    "rank": "rank",
    "name": "name|computer|system|site",
    "cores": "(total ?)?cores|processors",
    "rmax": "r_?max",
    "nmax": "n_?max",
}
_NEEDED = ("rmax", "nmax")

_EXPECTED = {"rank": "a whole number", "cores": "a whole number", "rmax": "a number above 0", "nmax": "a number"}


@dataclass(frozen=True, slots=True)
class ListedSystem:
    """A row of a list.

    Attributes:
        rank: rank in the list, from 1; the row number if the list has no ranks.
        name: name of the system, untrusted text.
        cores: number of processors; None if unknown.
        r_max: R_max, in Flop/s.
        n_max: size of the system of equations; None where unknown.
        bandwidth: b_eff of slide 22, in Byte/s; None if N_max is unknown.
    """

    rank: int
    name: str
    cores: int | None
    r_max: float
    n_max: float | None
    bandwidth: float | None

    @property
    def per_core(self) -> float | None:
        """R_max / cores, in Flop/s; slide 22 calls it l_peak."""
        return self.r_max / self.cores if self.cores else None


def read_systems(path: Path, unit: str | None = None, word: float = WORD) -> list[ListedSystem]:
    """Read a list.

    Args:
        path: CSV with a header; columns `Rmax` and `Nmax`, and optionally `Rank`, `Name` and `Cores`.
        unit: unit of R_max, from `UNITS`; None for the unit in the header, `Rmax [TFlop/s]`.
        word: bytes of a number.

    Raises:
        InputError: a column is missing, a value is not a number, or the list has no system.
    """
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        rows = csv.reader(file)
        try:
            header = next(rows, [])
            columns = _find_columns(path, header)
            factor = UNITS[unit.lower()] if unit else _unit_of(path, header[columns["rmax"]])
            systems = [_read_row(path, rows.line_num, row, columns, factor, word) for row in rows if any(row)]
        except csv.Error as error:
            raise InputError(path, rows.line_num, "CSV", str(error)) from error
        if not systems:
            raise InputError(path, rows.line_num + 1, "a system", "nothing")
        return systems


def _find_columns(path: Path, header: list[str]) -> dict[str, int]:
    found = {
        name: number
        for name, pattern in _COLUMNS.items()
        for number, title in reversed(list(enumerate(header)))
        if re.match(rf"\s*({pattern})\b", title, re.IGNORECASE)
    }
    for name in _NEEDED:
        if name not in found:
            raise InputError(path, 1, f"a column {name}", quote_found(",".join(header)))
    return found


def _unit_of(path: Path, title: str) -> float:
    for unit, factor in UNITS.items():
        if re.search(rf"(?<![a-z]){unit}", title, re.IGNORECASE):
            return factor
    raise InputError(
        path, 1, f"Rmax with its unit, as in Rmax [TFlop/s] (or --unit {'|'.join(UNITS)})", quote_found(title)
    )


def _read_row(
    path: Path, line: int, row: list[str], columns: dict[str, int], factor: float, word: float
) -> ListedSystem:
    def number(name: str) -> float | None:
        text = row[columns[name]].strip().replace(",", "") if name in columns and columns[name] < len(row) else ""
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        is_valid = value.is_integer() if name in ("rank", "cores") else math.isfinite(value)
        if not is_valid or value < 0 or (name == "rmax" and value == 0):
            raise InputError(path, line, f"{_EXPECTED[name]} as {name}", quote_found(text))
        return value or None

    r_max, n_max, cores, rank = (number(name) for name in ("rmax", "nmax", "cores", "rank"))
    if r_max is None:
        raise InputError(path, line, f"{_EXPECTED['rmax']} as rmax", "nothing")
    return ListedSystem(
        rank=int(rank or line - 1),
        name=row[columns["name"]] if "name" in columns and columns["name"] < len(row) else "",
        cores=int(cores) if cores else None,
        r_max=r_max * factor,
        n_max=n_max,
        bandwidth=effective_bandwidth(r_max * factor, n_max, word) if n_max else None,
    )


def effective_bandwidth(r_max: float, n_max: float, word: float = WORD) -> float:
    """Return b_eff = R_max 3 w 10 / (9 N_max), in Byte/s: the l_max of slide 21, solved for b_c (slide 22).

    Args:
        r_max: largest Linpack performance, in Flop/s.
        n_max: problem size of the largest performance.
        word: bytes of a number.
    """
    return r_max * 3 * word * 10 / (9 * n_max)


def correlate_with_rank(systems: list[ListedSystem]) -> dict[str, float]:
    """Return Spearman's correlation of each quantity with the rank in the list.

    The correlation is nan if the quantity is known for fewer than three systems, or is the same for all.

    If the correlation is near -1, the quantity is a good predictor: a larger value means a better rank.
    """
    from scipy.stats import spearmanr  # noqa: PLC0415  (slow to import)

    correlations = {}
    for name, values in (
        ("effective bandwidth", [each.bandwidth for each in systems]),
        ("performance per core", [each.per_core for each in systems]),
    ):
        pairs = [(each.rank, value) for each, value in zip(systems, values, strict=True) if value is not None]
        is_defined = len(pairs) > 2 and len({value for _, value in pairs}) > 1
        ranks, ranked = ([float(pair[side]) for pair in pairs] for side in (0, 1))
        correlations[name] = float(spearmanr(ranks, ranked).statistic) if is_defined else math.nan
    return correlations
