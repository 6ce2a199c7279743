# SPDX-License-Identifier: Apache-2.0
"""Tables with an array for each column, all of equal length, and exact sums of columns."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
import numpy.typing as npt

from ibprof.native.libraries import sum_exactly

Rows = TypeVar("Rows", bound="RowArrays")

Columns = dict[str, npt.NDArray[Any]]
"""Attribute name -> array; all arrays have equal length."""

_NO_SITES: npt.NDArray[np.int32] = np.zeros(0, np.int32)


def no_sites() -> npt.NDArray[np.int32]:
    """Return a placeholder for the column `site` of rows whose call sites are all unknown."""
    return _NO_SITES


class RowArrays:
    """Base of frozen dataclasses whose attributes are arrays of equal length.

    The annotation of an attribute, `npt.NDArray[np.uint64]`, defines the array's type.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        site, rows = getattr(self, "site", None), len(getattr(self, "rank"))  # noqa: B009 (only subclasses have `rank`)
        if site is not None and not len(site) and rows:
            object.__setattr__(self, "site", np.zeros(rows, np.int32))

    @classmethod
    @lru_cache
    def column_types(cls) -> dict[str, type[np.generic]]:
        """Return the numpy type of each column, in the order of the attributes."""
        return {name: _scalar_type(hint) for name, hint in get_type_hints(cls).items()}

    def columns(self) -> Columns:
        """Return the arrays by attribute name."""
        return {name: getattr(self, name) for name in self.column_types()}

    @classmethod
    def empty(cls: type[Rows]) -> Rows:
        """Return an instance without rows."""
        return cls(**{name: np.zeros(0, column) for name, column in cls.column_types().items()})


def _scalar_type(array: Any) -> type[np.generic]:
    # The annotation is ndarray[shape, dtype[scalar]] up to numpy 2.4, and NDArray[scalar] in later versions:
    # findings/numpy-arrays-annotation-is-an-alias
    last = get_args(array)[-1]
    scalar: type[np.generic] = get_args(last)[0] if get_args(last) else last
    return scalar


def take_rows(rows: Rows, chosen: npt.NDArray[Any]) -> Rows:
    """Return chosen rows, by a mask or by indices."""
    return type(rows)(**{name: column[chosen] for name, column in rows.columns().items()})


_PIECE_BITS = 22
"""Numbers of 64 bits are summed in pieces of this many bits: a float64 holds the sum of 2**31 pieces exactly."""

_DENSE = 8
_DENSE_ANYHOW = 1 << 16
"""Keys are dense if all are at most `_DENSE` * rows + `_DENSE_ANYHOW`."""

Keys = npt.NDArray[np.int64]
Counts = npt.NDArray[Any]


def sum_by_key(key: Keys, first: Counts, second: Counts) -> tuple[Keys, Counts, Counts]:
    """Return the sums of two columns over the rows of each key.

    Args:
        key, first, second: arrays of equal length.

    Returns:
        The distinct keys, ascending, and the sums for each key: uint64, or Python integers if a sum exceeds 64 bits.
    """
    if any(column.dtype == np.uint64 and sum_exactly(column) >= 1 << 64 for column in (first, second)):
        first, second = first.astype(object), second.astype(object)
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key)  # the order of equal keys is irrelevant
        key, first, second = key[order], first[order], second[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    if not len(starts):
        return key, first, second
    return key[starts], np.add.reduceat(first, starts), np.add.reduceat(second, starts)


def sum_by_group(group: npt.NDArray[np.integer], groups: int, values: Counts) -> list[int]:
    """Return the exact sum of values over the rows of each group.

    Args:
        group: index of each row's group, below `groups`.
    """
    sums = [0] * groups
    for shift in range(0, 64, _PIECE_BITS):
        pieces = (values >> np.uint64(shift)) & np.uint64((1 << _PIECE_BITS) - 1)
        part = np.bincount(group, weights=pieces, minlength=groups)
        sums = [total + (int(more) << shift) for total, more in zip(sums, part.tolist(), strict=True)]
    return sums


def number_keys(key: npt.NDArray[np.integer]) -> tuple[Keys, npt.NDArray[np.intp]]:
    """Number the distinct keys like `np.unique`, but faster for sorted rows or dense keys.

    Args:
        key: int [row].

    Returns:
        The distinct keys, int64, ascending; and the index of each row's key among the distinct keys, intp [row].
    """
    wide: Keys = key.astype(np.int64, copy=False)
    if not len(wide):
        return wide, np.zeros(0, np.intp)
    if (wide[1:] >= wide[:-1]).all():
        is_first = np.concatenate([[True], wide[1:] != wide[:-1]])
        return wide[is_first], np.cumsum(is_first) - 1
    span = int(wide.max()) + 1
    if span > _DENSE * len(wide) + _DENSE_ANYHOW or wide.min() < 0:
        keys, number = np.unique(wide, return_inverse=True)
        return keys, number.astype(np.intp, copy=False)
    occurs = np.zeros(span, np.bool_)
    occurs[wide] = True
    number_of = np.cumsum(occurs) - 1
    return np.flatnonzero(occurs), number_of[wide]


def add_by_key(key: npt.NDArray[np.integer], amounts: npt.NDArray[np.uint64]) -> tuple[Keys, npt.NDArray[np.uint64]]:
    """Return the distinct keys, ascending, and the sum of amounts for each key. No sum may reach 2**64.

    Args:
        key: int [row].
    """
    keys, number = number_keys(key)
    sums = np.zeros(len(keys), np.uint64)
    np.add.at(sums, number, amounts)
    return keys, sums


def find_distinct(*columns: npt.NDArray[np.integer]) -> npt.NDArray[np.intp]:
    """Return the distinct integers in some columns, ascending. The integers must be small and not negative."""
    occurs = np.zeros(1 + max((int(column.max()) for column in columns if len(column)), default=-1), np.bool_)
    for column in columns:
        occurs[column] = True
    return np.flatnonzero(occurs)
