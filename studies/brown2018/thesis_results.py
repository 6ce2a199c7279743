# SPDX-License-Identifier: Apache-2.0
"""Find results in `tables`, and compare claims with them by fixed rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from ibprof_lab.simulation.study.result_tables import read_means

PAGE = Path(__file__).resolve().parent / "README.md"
TABLES = PAGE.parent / "tables"
KB, MB = 1024.0, 1048576.0
CLOSE = 0.2  # Largest relative difference from the thesis at which a claim passes.
NONE = 0.1  # A slow-down of 0.9 to 1.1 is negligible, because each mean has an error of 5%.
ALL_SEEDS = 5

Row = Mapping[str, Any]
BORDERLINE = "borderline"  # a claim passes, but would fail at an end of a confidence interval
Verdict = tuple[str, bool | str | None]
OPEN: Verdict = ("not simulated yet", None)

STUDIES = {path.stem: read_means([path]) for path in sorted(TABLES.glob("*.csv"))}


def find(study: str, measured: str, run: str, **wanted: Any) -> Row | None:
    """Return the first row with a result, the `wanted` values, and usual values elsewhere; None if there is none."""
    compared = run == "interference" and study != "throttle"  # for the throttle, times are compared, not slow-downs
    column = "slowdown" if compared else "mean_us"
    return next((row for row in list_rows(study, measured, run, **wanted) if row[column] is not None), None)


def list_rows(study: str, measured: str, run: str, **wanted: Any) -> list[Row]:
    """Return all rows with the values in `wanted`, including rows without a mean."""
    usual = {"server_placement": "isolated", "job_placement": "random-node", "routing": "static", "lane_bytes": 65536.0,
             "packet_bytes": 4096.0, "switch_ns": 90.0, f"{measured}_share": 0.5}  # fmt: skip
    each = {"measured": measured, "run": run, **usual, **wanted}
    return [row for row in STUDIES.get(study, ()) if all(row.get(key) == value for key, value in each.items())]


def find_pair(measured: str, own: tuple[float, float], other: tuple[float, float]) -> Row | None:
    """Return the survey's row of pattern `own` next to pattern `other`. A pattern is (bytes, µs between messages)."""
    other_job = {"io": "mpi", "mpi": "io"}[measured]
    wanted = {f"{measured}_bytes": own[0], f"{measured}_interval_us": own[1],
              f"{other_job}_bytes": other[0], f"{other_job}_interval_us": other[1]}  # fmt: skip
    return find("interference", measured, "interference", **wanted) or find(
        "detail", measured, "interference", **wanted
    )


def find_alone(measured: str, own: tuple[float, float]) -> Row | None:
    """Return the survey's row of a pattern alone."""
    wanted = {f"{measured}_bytes": own[0], f"{measured}_interval_us": own[1]}
    return find("interference", measured, "baseline", **wanted) or find("detail", measured, "baseline", **wanted)


def survey(measured: str) -> list[Row]:
    """Return the survey's rows that state how much the other job slows down the job `measured`."""
    rows = STUDIES.get("interference", ())
    return [row for row in rows if row["run"] == "interference" and row["measured"] == measured and row["slowdown"]]


def slowdown_of(row: Row) -> float:
    return float(row["slowdown"])


_HALF = {"slowdown": "slowdown_half", "mean_us": "mean_half_us"}
_SEEDS = {"slowdown": "slowdown_seeds", "mean_us": "seeds"}


def show(row: Row, column: str = "slowdown", digits: int = 2, unit: str = "") -> str:
    half = row[_HALF[column]]
    said = f"{row[column]:.{digits}f}" + (f" ± {half:.{digits}f}" if half is not None else "")
    return said + unit + tell_seeds(row, of=_SEEDS[column])


def tell_seeds(*rows: Row, of: str = "seeds") -> str:
    """Return the number of seeds of rows as text; empty for the usual number, `ALL_SEEDS`."""
    least, most = (int(pick(row[of] for row in rows)) for pick in (min, max))
    if least == ALL_SEEDS:
        return ""
    return f" ({least} seed{'s' * (least > 1)})" if least == most else f" ({least} to {most} seeds)"


def show_range(rows: list[Row], column: str = "slowdown") -> str:
    low, high = (pick(row[column] for row in rows) for pick in (min, max))
    return f"{low:.2f} to {high:.2f}"


def is_close(simulated: float, printed: float) -> bool:
    """Return whether a simulated value differs by at most `CLOSE` from the thesis's value."""
    return abs(simulated / printed - 1) <= CLOSE


def adds_as(simulated: float, printed: float) -> bool:
    """Return whether a slow-down is close to the thesis's. Slow-down - 1 is compared, so 1.18 is not close to 1.31."""
    return is_close(simulated - 1, printed - 1)


def judge(passes: Callable[..., bool], *rows: Row, column: str = "slowdown") -> bool | str:
    """Return whether the rows' means pass; `BORDERLINE` if they pass, but some ends of confidence intervals do not."""
    if not passes(*(row[column] for row in rows)):
        return False
    ends = product(*((row[column] - _half(row, column), row[column] + _half(row, column)) for row in rows))
    return True if all(passes(*each) for each in ends) else BORDERLINE


def is_none(slowdown: float) -> bool:
    return abs(slowdown - 1) <= NONE


def is_some(slowdown: float) -> bool:
    return slowdown > 1 + NONE


def is_apart(low: Row, high: Row, column: str = "slowdown") -> bool:
    """Return whether `high` is above `low` and the confidence intervals are disjoint. A single seed has no interval."""
    return bool(high[column] - _half(high, column) > low[column] + _half(low, column))


def grows(rows: list[Row], column: str = "slowdown") -> bool:
    """Return whether the means grow from the first to the last row, and no mean is significantly below the previous."""
    goes_back = any(is_apart(two, one, column) for one, two in pairwise(rows))
    return rows[-1][column] > rows[0][column] and not goes_back


def _half(row: Row, column: str) -> float:
    return row[_HALF[column]] or 0.0


def all_there(*rows: Row | None) -> list[Row] | None:
    """Return the rows; None if any row is missing."""
    there = [row for row in rows if row is not None]
    return there if len(there) == len(rows) else None
