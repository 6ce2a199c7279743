# SPDX-License-Identifier: Apache-2.0
"""HDF5 files with damaged heaps are refused before the HDF5 library reads them: some reads would never end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InputError
from ibprof_lab.latency.files.delay_files import read_delays, write_delays
from ibprof_lab.latency.files.netcdf_files import check_heaps
from ibprof_lab.latency.model.delays import Delays

READ = "import sys; from ibprof_lab.latency.files.delay_files import read_delays; read_delays(sys.argv[1])"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Write delays with names of hosts; HDF5 stores the names in a heap."""
    cube = np.ones((1, 2, 2), np.float32)
    write_delays(tmp_path / "delays.nc", Delays(("n1", "n2"), np.zeros(1, np.int64), median=cube))
    return tmp_path / "delays.nc"


def change(path: Path, offset: int, value: bytes) -> int:
    """Change bytes of the file's first heap; return the heap's offset."""
    content = bytearray(path.read_bytes())
    start = content.index(b"GCOL")
    content[start + offset : start + offset + len(value)] = value
    path.write_bytes(content)
    return start


def test_whole_files_are_read(written: Path) -> None:
    check_heaps(written)
    assert read_delays(written).hosts == ("n1", "n2")


def test_an_object_that_became_free_space_without_a_size_is_refused_at_once(written: Path) -> None:
    start = change(written, 16, bytes(16))
    command = [sys.executable, "-c", READ, str(written)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    said = f"InputError: {written}: expected delays as NetCDF-4, found a damaged heap at byte {start}"
    assert done.stderr.splitlines()[-1].endswith(said)


@pytest.mark.parametrize("size", [2**64 - 16, 2**64 - 20])
def test_a_step_that_overflows_to_nothing_is_refused(size: int, written: Path) -> None:
    change(written, 24, size.to_bytes(8, "little"))
    with pytest.raises(InputError, match="a damaged heap"):
        check_heaps(written)


@pytest.mark.parametrize(("offset", "value"), [(8, b"\xff" * 8), (8, bytes(8)), (24, b"\xff\xff\xff")])
def test_heaps_of_other_sizes_are_left_to_the_library(offset: int, value: bytes, written: Path) -> None:
    change(written, offset, value)
    check_heaps(written)


def test_a_file_that_ends_within_the_head_of_a_heap_is_refused(written: Path) -> None:
    content = written.read_bytes()
    written.write_bytes(content[: content.index(b"GCOL") + 12])
    with pytest.raises(InputError, match="a damaged heap"):
        check_heaps(written)
