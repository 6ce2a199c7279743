# SPDX-License-Identifier: Apache-2.0
"""Only the annotations of the row classes define the columns' types."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from ibprof.profile.profile_data import Counters, Intervals, MessageSizes, RegionTimes, Transfers
from ibprof.profile.profile_rows import COLUMN_TYPES
from ibprof.profile.row_arrays import RowArrays

ROWS = (Counters, RegionTimes, MessageSizes, Transfers, Intervals)


@pytest.mark.parametrize("rows", ROWS)
def test_empty_rows_have_the_columns_that_are_annotated(rows: type[RowArrays]) -> None:
    columns = rows.empty().columns()
    assert {name: column.dtype for name, column in columns.items()} == {
        name: np.dtype(column) for name, column in rows.column_types().items()
    }
    assert all(column.shape == (0,) for column in columns.values())


def test_types_are_those_of_the_annotations() -> None:
    assert Transfers.column_types() == {
        "rank": np.int32,
        "region": np.int32,
        "opcode": np.uint8,
        "pair": np.int32,
        "bytes": np.uint64,
        "messages": np.uint64,
    }


def test_columns_of_one_name_have_one_type() -> None:
    for rows in ROWS:
        assert rows.column_types().items() <= COLUMN_TYPES.items()


def test_types_are_read_from_both_of_numpys_forms() -> None:
    """Up to numpy 2.4, an annotation is `ndarray[shape, dtype[scalar]]`; from 2.5 on, an alias has the scalar only."""
    shape_and_type = np.ndarray[Any, np.dtype[np.uint64]]
    alias: Any = type("NDArray", (), {"__class_getitem__": classmethod(types.GenericAlias)})
    for annotation in (shape_and_type, alias[np.uint64]):
        rows: Any = type("Rows", (RowArrays,), {"__annotations__": {"bytes": annotation}})
        assert rows.column_types() == {"bytes": np.uint64}
