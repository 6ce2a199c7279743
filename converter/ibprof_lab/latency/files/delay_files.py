# SPDX-License-Identifier: Apache-2.0
"""Reading and writing delays in all formats; a file's first bytes determine its format."""

from __future__ import annotations

import logging
import mmap
import os
import re
import struct
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_lab.latency.files.classic_netcdf import CLASSIC_MAGICS, has_layout, read_classic, write_classic
from ibprof_lab.latency.files.matrix_files import NUMPY_MAGIC, read_numpy, read_text_matrix, write_text_matrix
from ibprof_lab.latency.files.netcdf4_files import NETCDF4_MAGIC, read_netcdf, write_netcdf
from ibprof_lab.latency.model.delays import LOCATIONS, STATISTICS, Delays, clear_diagonal

MICROSECOND = 1e-6

UNITS = {"s": 1.0, "ms": 1e-3, "us": MICROSECOND, "ns": 1e-9}
"""Units that a CSV or numpy matrix may be in -> seconds."""

_log = logging.getLogger(__name__)


def read_delays(
    path: str | PathLike[str],
    statistics: Sequence[str] = STATISTICS,
    unit: float = MICROSECOND,
) -> Delays:
    """Read delays: NetCDF-4 as ibprof writes it, clustbench's classic NetCDF, a CSV matrix, or numpy's .npy or .npz.

    Any of clustbench's four files may be named; its siblings are read with it. Values that no time can have (negative,
    infinite) become NaN, "not measured", and are counted in a warning. The diagonal becomes 0.

    Args:
        path: the file.
        statistics: to read where there are several; the median is always read. Others take no memory.
        unit: seconds of 1 in a CSV or numpy matrix, which do not say; microseconds by default. Ignored for NetCDF.

    Raises:
        InputError: the file has another format, or is damaged.
        MemoryError: its cubes do not fit into this machine's memory.
    """
    path = Path(path)
    wanted = tuple(name for name in STATISTICS if name == "median" or name in statistics)
    try:
        with path.open("rb") as file:
            magic = file.read(8)
        if magic.startswith(NETCDF4_MAGIC):
            check_heaps(path)
    except OSError as error:
        raise InputError(path, None, "a readable file", error.strerror or str(error)) from error
    if magic.startswith(CLASSIC_MAGICS) or (magic.startswith(NETCDF4_MAGIC) and has_layout(path)):
        delays = read_classic(path, wanted)
    elif magic.startswith(NETCDF4_MAGIC):
        delays = read_netcdf(path, wanted)
    elif magic.startswith(NUMPY_MAGIC):
        delays = read_numpy(path, unit)
    else:
        delays = read_text_matrix(path, unit)
    _forget_impossible(path, delays)
    return delays


def write_delays(path: str | PathLike[str], delays: Delays) -> None:
    """Write delays as NetCDF-4, or by the name's end as a CSV matrix of one length (`.csv`, microseconds).

    The file appears completely or not at all.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
        InputError: a CSV was asked for and there are several lengths.
    """
    path = Path(path)
    if path.suffix == ".csv":
        write_text_matrix(path, delays, MICROSECOND)
    else:
        write_netcdf(path, delays)


def write_classic_delays(prefix: str | PathLike[str], delays: Delays) -> list[Path]:
    """Write `PREFIX_average.nc`, `_median.nc`, `_deviation.nc`, `_min.nc`, `_hosts.txt`, as clustbench does."""
    return write_classic(Path(os.fspath(prefix)), delays)


def _forget_impossible(path: Path, delays: Delays) -> None:
    """Replace values that cannot be a time by NaN, in place, and log their number."""
    for name, cube in delays.present.items():
        impossible: npt.NDArray[np.bool_] = np.isinf(cube) | (cube < 0)
        if found := int(np.count_nonzero(impossible)):
            first = tuple(int(index) for index in np.argwhere(impossible)[0])
            _log.warning(
                "%s: %d values of the %s cannot be times and count as not measured, such as %s at %s",
                path, found, name, quote_found(str(cube[first])), first,
            )  # fmt: skip
            cube[impossible] = np.nan
        if name in LOCATIONS or name == "deviation":
            clear_diagonal(cube)


__all__ = ["InputError", "read_delays", "write_classic_delays", "write_delays"]


_HEAP = re.compile(rb"GCOL\x01\0\0\0")
_HEAP_HEAD = struct.Struct("<8xQ")
"""Of a heap: its size, which includes this head."""
_OBJECT_HEAD = struct.Struct("<HHxxxxQ")
"""Of an object: its number, its references, its size."""
_FREE = 0
"""The number of what is no object but free space, whose size includes its head."""


def check_heaps(path: Path) -> None:
    """Refuse a file with a heap that the library would never leave.

    Raises:
        InputError: there is one.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for heap in _HEAP.finditer(data):
            if len(data) - heap.start() < _HEAP_HEAD.size or not _has_end(data, heap.start()):
                raise InputError(path, None, "delays as NetCDF-4", f"a damaged heap at byte {heap.start()}")


def _has_end(data: mmap.mmap, start: int) -> bool:
    """Return whether the steps from object to object leave a heap, or the file."""
    (size,) = _HEAP_HEAD.unpack_from(data, start)
    end, place = min(start + size, len(data)), start + _HEAP_HEAD.size
    while place + _OBJECT_HEAD.size <= end:
        number, _, length = _OBJECT_HEAD.unpack_from(data, place)
        step = length if number == _FREE else _OBJECT_HEAD.size + -(-length // 8) * 8
        if step % (1 << 64) == 0:
            return False
        place += step
    return True
