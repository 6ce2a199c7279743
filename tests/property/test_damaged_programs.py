# SPDX-License-Identifier: Apache-2.0
"""ibprof reads the source lines of a damaged program without an error, even if lines are missing or wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ibprof.sites.code_location import Limits, ObjectAddresses, resolve_objects
from ibprof.sites.elf_file import ElfFile

ADDRESSES = (0, 0x1130, 0x1140, 1 << 63)
COPIES = 32


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("program") / "program"
    source = "int main(int count, char **words) { (void)words; return count; }"
    subprocess.run(["gcc", "-g", "-x", "c", "-", "-o", path], input=source, text=True, check=True)
    return path.read_bytes()


def damages() -> st.SearchStrategy[tuple[int, list[tuple[int, int]]]]:
    """Draw the length to cut off (in 1/256 of the file), and changes: (position in 1/65536 of the file, new byte)."""
    bytes_at = st.tuples(st.integers(0, 65535), st.integers(0, 255))
    return st.tuples(st.one_of(st.just(0), st.integers(0, 255)), st.lists(bytes_at, max_size=20))


def damage(program: bytes, cut: int, changes: list[tuple[int, int]]) -> bytes:
    changed = bytearray(program)
    for place, value in changes:
        # Half of the changes are in the first or last 512 bytes of the file, where tables are.
        where = place * len(program) >> 16 if place & 1 else (place % 1024) - 512
        changed[where] = value
    return bytes(changed[: len(program) - (cut * len(program) >> 8)])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(damages())
def test_elf_file(program: bytes, tmp_path: Path, damaged: tuple[int, list[tuple[int, int]]]) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(damage(program, *damaged))
    try:
        file = ElfFile(str(path))
    except ValueError:
        return
    try:
        file.find_symbols(ADDRESSES)
        assert isinstance(file.has_lines, bool)
        assert file.debug_link is None or file.debug_link[0]
    except ValueError:
        pass
    finally:
        file.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=5)
@given(st.lists(damages(), min_size=COPIES, max_size=COPIES))
def test_all_in_one_process(program: bytes, tmp_path: Path, damaged: list[tuple[int, list[tuple[int, int]]]]) -> None:
    asked = []
    for number, each in enumerate(damaged):
        path = tmp_path / str(number)
        path.write_bytes(damage(program, *each))
        asked.append(ObjectAddresses(str(path), "", ADDRESSES))
    found = resolve_objects(asked, Limits(seconds=10))
    assert [(len(each.frames), len(each.symbols)) for each in found] == [(len(ADDRESSES), len(ADDRESSES))] * COPIES
