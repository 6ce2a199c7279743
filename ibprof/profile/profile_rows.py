# SPDX-License-Identifier: Apache-2.0
"""Join, sort and choose rows of a profile."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.profile.profile_data import (
    UNKNOWN_PEER,
    CallTimes,
    Counters,
    Demands,
    Intervals,
    IntervalTimes,
    MessageSizes,
    Profile,
    RegionTimes,
    Site,
    Transfers,
)
from ibprof.profile.row_arrays import Columns, Rows, take_rows

COLUMN_TYPES = {
    name: column
    for rows in (Counters, RegionTimes, MessageSizes, Transfers, Intervals, IntervalTimes, Demands, CallTimes)
    for name, column in rows.column_types().items()
}
"""Column name -> numpy type, which is equal in all row classes."""

_BLOCK_ROWS = 1 << 14

_ROW_ORDER = (
    "rank",
    "region",
    "operation",
    "site",
    "direction",
    "kind",
    "source",
    "peer",
    "partner",
    "opcode",
    "pair",
    "begin_ns",
    "first_peer",
)


def order_rows(rows: Rows) -> Rows:
    """Return rows in the sort order of their class (`_ROW_ORDER`); the sort is stable."""
    columns = rows.columns()
    order = _find_order(columns)
    return rows if order is None else type(rows)(**{name: column[order] for name, column in columns.items()})


def join_rows(made: type[Rows], parts: Sequence[Columns]) -> Rows:
    """Return sorted rows from the columns of several parts.

    The parts are emptied, since millions of rows must not be in memory twice.

    Args:
        parts: arrays by column name. A part without known call sites may lack `site`.
    """
    names = list(made.column_types())
    for part in parts if "site" in names else ():
        part.setdefault("site", np.zeros(len(part["rank"]), np.int32))
    # Blocks are sorted one by one, while they are in the CPU cache.
    blocks = [_join_block(names, block) for block in _split_parts(parts)]
    in_order = all(
        one["rank"].max(initial=-1) < other["rank"].min(initial=np.iinfo(np.int32).max)
        for one, other in pairwise(blocks)
    )
    columns = _concatenate(names, blocks)
    if not in_order:
        _order_columns(columns)
    return made(**columns)


def _split_parts(parts: Sequence[Columns]) -> Iterator[list[Columns]]:
    """Yield the parts in blocks of at least `_BLOCK_ROWS` rows; the last block may be smaller."""
    block: list[Columns] = []
    rows = 0
    for part in parts:
        block.append(part)
        rows += len(part["rank"])
        if rows >= _BLOCK_ROWS:
            yield block
            block, rows = [], 0
    if block:
        yield block


def _join_block(names: Sequence[str], parts: Sequence[Columns]) -> Columns:
    columns = _concatenate(names, parts)
    _order_columns(columns)
    return columns


def _concatenate(names: Sequence[str], parts: Sequence[Columns]) -> Columns:
    columns = {}
    for name in names:
        pieces = [part.pop(name) for part in parts] or [np.empty(0)]
        whole = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        columns[name] = whole.astype(COLUMN_TYPES[name], copy=False)
        pieces.clear()
    return columns


def _order_columns(columns: Columns) -> None:
    order = _find_order(columns)
    if order is not None:
        for name in columns:
            columns[name] = columns[name][order]


def _find_order(columns: Columns) -> npt.NDArray[np.intp] | None:
    """Return the sort order of rows by `_ROW_ORDER`; None for sorted rows."""
    keys = [columns[name] for name in _ROW_ORDER if name in columns]
    ranges = [_range(key) for key in keys]
    if prod(ranges) >= 1 << 64:
        return np.lexsort(keys[::-1])
    # A combined key sorts several times as fast as a sort by each key in turn.
    whole = np.zeros(len(keys[0]), np.uint64)
    for key, count in zip(keys, ranges, strict=True):
        whole *= np.uint64(count)
        # View keys (at least 0) as unsigned, because numpy adds signed and unsigned integers as floats.
        digits = key.view(f"u{key.itemsize}")
        whole += np.minimum(digits, digits.dtype.type(count - 1))
    if (whole[1:] >= whole[:-1]).all():
        return None
    # Try an unstable sort first, which is several times as fast. Only equal keys, which are rare, need a stable sort.
    order = np.argsort(whole)
    ordered = whole[order]
    return order if (ordered[1:] > ordered[:-1]).all() else np.argsort(whole, kind="stable")


def _range(key: npt.NDArray[Any]) -> int:
    """Return a number above all values of a key. `UNKNOWN_PEER` counts as the largest other value plus 1."""
    highest = int(key.max(initial=0))
    if highest == UNKNOWN_PEER:
        highest = int(key.max(initial=0, where=key != UNKNOWN_PEER)) + 1
    return highest + 1


ByCall = Counters | CallTimes | Demands | MessageSizes
"""Classes of rows with an operation, a region and a call site."""


NO_SITES = "call sites were not recorded: run again without IBPROF_SITES=0"

UNKNOWN_SITE = "(unknown)"
"""Name for calls with an unknown site."""

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class RowChoice:
    """A choice of rows.

    Attributes:
        operation, region: names; None for all.
        site: name of a call site, such as `FILE:LINE`; None for all.
    """

    operation: str | None = None
    region: str | None = None
    site: str | None = None

    def __bool__(self) -> bool:
        return any(name is not None for name in (self.operation, self.region, self.site))

    def __str__(self) -> str:
        return " ".join(self._options())

    def _options(self) -> Iterator[str]:
        for option in ("operation", "region", "site"):
            if (name := getattr(self, option)) is not None:
                yield f"--{option} {name}"

    @property
    def divides_calls(self) -> bool:
        """True if the choice depends on the call that moved the bytes, not only on the region."""
        return self.operation is not None or self.site is not None

    def choose(self, run: Profile, rows: ByCall) -> npt.NDArray[np.bool_]:
        """Return a mask of chosen rows: bool [row].

        Raises:
            UsageError: the profile has no such operation, region or site.
        """
        chosen = np.ones(len(rows.rank), np.bool_)
        if self.operation is not None:
            chosen &= rows.operation == find_operation(run, self.operation)
        if self.region is not None:
            chosen &= rows.region == find_name("region", self.region, run.regions, run.regions)
        if self.site is not None:
            chosen &= np.isin(rows.site, list(find_sites(run, self.site)))
        return chosen

    def restrict(self, run: Profile) -> Profile:
        """Return a profile of the chosen rows.

        Traffic over time is left out, because its calls are unknown. Work requests are left out too, unless
        only a region is chosen.

        Raises:
            UsageError: the profile has no such operation, region or site.
        """
        if not self:
            return run
        if self.divides_calls:
            transfers = Transfers.empty()
        else:
            region = find_name("region", self.region or "", run.regions, run.regions)
            transfers = take_rows(run.transfers, run.transfers.region == region)
        return replace(
            run,
            counters=take_rows(run.counters, self.choose(run, run.counters)),
            times=take_rows(run.times, self.choose(run, run.times)),
            demands=take_rows(run.demands, self.choose(run, run.demands)),
            sizes=take_rows(run.sizes, self.choose(run, run.sizes)),
            transfers=transfers,
            intervals=Intervals.empty(),
            interval_times=IntervalTimes.empty(),
        )


ALL_ROWS = RowChoice()


def find_operation(run: Profile, text: str) -> int:
    """Return the index of an operation. `text` may be in any case, with or without `MPI_`.

    Raises:
        UsageError: the profile has no such operation.
    """
    name = text.upper().removeprefix("MPI_")
    # Compare in upper case: NCCL's names also have lower-case letters.
    name = next((each for each in run.operations if each.upper() == name), name)
    used = {run.operations[number] for rows in (run.counters, run.times) for number in np.unique(rows.operation)}
    return find_name("operation", name, run.operations, used)


def find_name(what: str, name: str, names: Sequence[str], known: Collection[str]) -> int:
    """Return the index of `name` in `names`. `what` is the noun for error messages.

    Raises:
        UsageError: the name is unknown. The message lists the `known` names.
    """
    if name not in names:
        raise UsageError(f"the profile has no {what} {name!r}; it has {', '.join(sorted(known)) or 'none'}")
    return names.index(name)


def name_sites(run: Profile) -> tuple[str, ...]:
    """Return the name of each site number, with callers; 0 is an unknown site."""
    return (UNKNOWN_SITE, *(site.label for site in run.sites))


def find_sites(run: Profile, text: str) -> frozenset[int]:
    """Return the numbers of the sites with a name, such as `solver.c:212` or `src/solver.c:212`.

    Several sites can have one line: calls in different objects, or from different callers. The line of a caller selects
    all sites that were called from this line. A name with callers selects one site.

    Raises:
        UsageError: sites were not recorded, no site has this name, or several source files have such sites.
    """
    if not run.sites:
        raise UsageError(f"--site {text}: {NO_SITES}")
    if text == UNKNOWN_SITE:
        return frozenset({0})
    if same := frozenset(number for number, site in enumerate(run.sites, 1) if site.label == text and site.callers):
        return same
    named = {number: _named_by(text, site) for number, site in enumerate(run.sites, 1)}
    names = sorted(set().union(*named.values()))
    if not names:
        known = sorted({site.label for site in run.sites})
        more = f" and {len(known) - _SHOWN:,} more" if len(known) > _SHOWN else ""
        raise UsageError(f"the profile has no site {text!r}; it has {', '.join(known[:_SHOWN])}{more}")
    if len(names) > 1 and text not in names:
        raise UsageError(f"--site {text}: several files have this name; choose one of {', '.join(names)}")
    chosen = text if text in names else names[0]
    return frozenset(number for number, found in named.items() if chosen in found)


def _named_by(text: str, site: Site) -> set[str]:
    """Return the names that match a text, among the names of a site and of its callers."""
    return {each.name for each in (site, *site.callers) if text in _names_of(each)}


def _names_of(site: Site) -> Iterator[str]:
    """Yield all texts that identify a site: its name, and `PATH:LINE` with the last 1, 2, ... parts of the path."""
    yield site.name
    if site.line:
        parts = site.file.split("/")
        for first in range(len(parts)):
            yield f"{'/'.join(parts[first:])}:{site.line}"
