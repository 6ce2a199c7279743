# SPDX-License-Identifier: Apache-2.0
"""Rows as arrays of one length, one per column: the base of a profile's tables."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
import numpy.typing as npt

Rows = TypeVar("Rows", bound="RowArrays")

Columns = dict[str, npt.NDArray[Any]]
"""Arrays of one length, by attribute name."""

_NO_SITES: npt.NDArray[np.int32] = np.zeros(0, np.int32)


def no_sites() -> npt.NDArray[np.int32]:
    """Return a placeholder for a column of zeros: rows with unknown call sites."""
    return _NO_SITES


class RowArrays:
    """Base of frozen dataclasses whose attributes are arrays of one length.

    The annotation of an attribute, `npt.NDArray[np.uint64]`, defines the array's type.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        site, rows = getattr(self, "site", None), len(getattr(self, "rank"))  # noqa: B009 (all rows have ranks)
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
    # ndarray[shape, dtype[scalar]] up to numpy 2.4, then NDArray[scalar]: findings/numpy-arrays-annotation-is-an-alias
    last = get_args(array)[-1]
    scalar: type[np.generic] = get_args(last)[0] if get_args(last) else last
    return scalar


def take_rows(rows: Rows, chosen: npt.NDArray[Any]) -> Rows:
    """Return chosen rows, by a mask or by indices."""
    return type(rows)(**{name: column[chosen] for name, column in rows.columns().items()})
