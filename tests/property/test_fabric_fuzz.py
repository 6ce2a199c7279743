# SPDX-License-Identifier: Apache-2.0
"""Damaged dumps are read or refused; nothing else ever happens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from fabric_samples import read_sample_bytes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ibprof.errors import InconsistentError, InputError
from ibprof_converter.fabric.guid2lid import read_lid_ranges
from ibprof_converter.fabric.reader import read_fabric
from ibprof_converter.routing.fdbs import read_fdbs

READERS: list[tuple[str, Callable[[Path], object]]] = [
    ("ibdiagnet.lst", read_fabric),
    ("opensm-subnet.lst", read_fabric),
    ("ibdiagnet.fdbs", read_fdbs),
    ("opensm.fdbs", read_fdbs),
    ("guid2lid", read_lid_ranges),
]

Edit = tuple[str, int, bytes]
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "overwrite", "delete", "cut", "double"]),
        st.integers(0, 1 << 16),
        st.one_of(st.binary(max_size=8), st.sampled_from([b"\n", b" ", b"{", b"}", b"0", b"F", b":", b"0x", b"#"])),
    ),
    min_size=1,
    max_size=4,
)


def damage(data: bytes, edits: list[Edit]) -> bytes:
    for kind, place, piece in edits:
        at = place % (len(data) + 1)
        line = data[at : data.find(b"\n", at) + 1]
        data = {
            "insert": data[:at] + piece + data[at:],
            "overwrite": data[:at] + piece + data[at + len(piece) :],
            "delete": data[:at] + data[at + len(piece) :],
            "cut": data[:at],
            "double": data[:at] + line + data[at:],
        }[kind]
    return data


@pytest.mark.parametrize(("name", "read"), READERS)
@given(edits=EDITS)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_dumps_are_read_or_refused(
    tmp_path: Path, name: str, read: Callable[[Path], object], edits: list[Edit]
) -> None:
    path = tmp_path / name
    path.write_bytes(damage(read_sample_bytes("quirks-small", name), edits))
    with contextlib.suppress(InputError, InconsistentError):
        read(path)
