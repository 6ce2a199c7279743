# SPDX-License-Identifier: Apache-2.0
"""Rows of a profile, joined from parts and sorted in the order of their class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import (
    UNKNOWN_PEER,
    CallTimes,
    Counters,
    Demands,
    Intervals,
    IntervalTimes,
    MessageSizes,
    RegionTimes,
    Transfers,
)
from ibprof.profile.row_arrays import Columns, Rows

COLUMN_TYPES = {
    name: column
    for rows in (Counters, RegionTimes, MessageSizes, Transfers, Intervals, IntervalTimes, Demands, CallTimes)
    for name, column in rows.column_types().items()
}
"""The numpy type of each column name, the same in all row classes."""

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
    """Return rows in the order of their class; the sort is stable."""
    columns = rows.columns()
    order = _find_order(columns)
    return rows if order is None else type(rows)(**{name: column[order] for name, column in columns.items()})


def join_rows(made: type[Rows], parts: Sequence[Columns]) -> Rows:
    """Return sorted rows from the columns of several parts.

    The parts are emptied, since millions of rows must not be in memory twice.

    Args:
        made: class of the rows.
        parts: arrays by column name; without `site` where no call site is known.
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
    """Yield blocks of some rows, joined from parts."""
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
        # numpy adds signed and unsigned numbers as floats; no key is negative.
        digits = key.view(f"u{key.itemsize}")
        whole += np.minimum(digits, digits.dtype.type(count - 1))
    if (whole[1:] >= whole[:-1]).all():
        return None
    # Rows with equal keys are rare. Without equal keys an unstable sort suffices, which is several times as fast.
    order = np.argsort(whole)
    ordered = whole[order]
    return order if (ordered[1:] > ordered[:-1]).all() else np.argsort(whole, kind="stable")


def _range(key: npt.NDArray[Any]) -> int:
    """Return a number above all values of a key; `UNKNOWN_PEER` counts as the highest other value plus one."""
    highest = int(key.max(initial=0))
    if highest == UNKNOWN_PEER:
        highest = int(key.max(initial=0, where=key != UNKNOWN_PEER)) + 1
    return highest + 1
