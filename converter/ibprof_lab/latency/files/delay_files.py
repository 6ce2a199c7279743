# SPDX-License-Identifier: Apache-2.0
"""Delay files in all formats, including numpy's; a file's first bytes determine the format."""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_lab.lab_choices import MICROSECOND, NO_CLUSTER, STATISTICS
from ibprof_lab.latency.files.matrix_files import make_median_delays, read_text_matrix, write_text_matrix
from ibprof_lab.latency.files.netcdf_files import (
    CLASSIC_MAGICS,
    NETCDF4_MAGIC,
    check_heaps,
    check_memory,
    has_layout,
    read_classic,
    read_netcdf,
    write_netcdf,
)
from ibprof_lab.latency.model.delays import Delays, clear_diagonal

_NUMPY_MAGIC = (b"\x93NUMPY", b"PK\x03\x04")

_log = logging.getLogger(__name__)


def read_delays(
    path: str | PathLike[str],
    statistics: Sequence[str] = STATISTICS,
    unit: float | None = None,
) -> Delays:
    """Read delays in any format: ibprof's NetCDF-4, clustbench's classic NetCDF, text, or numpy's .npy or .npz.

    Any of clustbench's four files may be named; the others are read with it. Impossible times (negative, infinite)
    become NaN, "not measured", and a warning reports their number. The diagonal becomes 0.

    Args:
        statistics: statistics to read if there are several; the median is always read. Others take no memory.
        unit: seconds per unit of a text or numpy matrix without a stated unit. None for a microsecond, or a nanosecond
            in the format of core-to-core-latency.

    Raises:
        InputError: the file has another format, or is damaged.
        MemoryError: the cubes do not fit into this machine's memory.
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
    elif magic.startswith(_NUMPY_MAGIC):
        delays = _read_numpy(path, unit or MICROSECOND)
    else:
        delays = read_text_matrix(path, unit)
    _forget_impossible(path, delays)
    return delays


def write_delays(path: str | PathLike[str], delays: Delays) -> None:
    """Write delays as NetCDF-4, or as a CSV matrix of one length in microseconds if the name ends with `.csv`.

    The file appears completely or not at all.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
        InputError: CSV cannot hold several lengths.
    """
    path = Path(path)
    if path.suffix == ".csv":
        write_text_matrix(path, delays, MICROSECOND)
    else:
        write_netcdf(path, delays)


def _forget_impossible(path: Path, delays: Delays) -> None:
    """Replace impossible times by NaN, in place, and log their number."""
    for name, cube in delays.present.items():
        impossible: npt.NDArray[np.bool_] = np.isinf(cube) | (cube < 0)
        if found := int(np.count_nonzero(impossible)):
            first = tuple(int(index) for index in np.argwhere(impossible)[0])
            _log.warning(
                "%s: %d values of the %s cannot be times and count as not measured, such as %s at %s",
                path, found, name, quote_found(str(cube[first])), first,
            )  # fmt: skip
            cube[impossible] = np.nan
        clear_diagonal(cube)


def _read_numpy(path: Path, unit: float) -> Delays:
    """Read an array [n, n] or [L, n, n] from .npy, or from .npz with `delays` and, if present, `hosts` and `lengths`.

    Raises:
        InputError: the file has other content.
    """
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            members = dict(loaded) if isinstance(loaded, np.lib.npyio.NpzFile) else {"delays": loaded}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(path, None, "a numpy file", f"a damaged one ({error})") from error
    if {"centroids", "labels"} <= set(members):
        members["delays"], unit = _expand(path, members), 1.0
    if "delays" not in members:
        raise InputError(path, None, "an array `delays`", f"{sorted(members)}")
    values = members["delays"]
    if values.ndim not in (2, 3) or values.shape[-1] != values.shape[-2] or values.dtype.kind not in "fiu":
        raise InputError(path, None, "numbers of the shape [n, n] or [L, n, n]", f"{values.dtype} {values.shape}")
    cube = np.atleast_3d(values) if values.ndim == 3 else values[None]
    hosts = members.get("hosts", np.arange(cube.shape[1]))
    lengths = members.get("lengths", np.arange(len(cube)))
    if hosts.shape != cube.shape[1:2] or lengths.shape != cube.shape[:1] or lengths.dtype.kind not in "iu":
        raise InputError(path, None, f"hosts and lengths of {cube.shape}", f"{hosts.shape} and {lengths.shape}")
    if np.any(np.diff(lengths) <= 0):
        raise InputError(path, None, "lengths that ascend", quote_found(str(lengths.tolist())))
    return make_median_delays(tuple(str(each) for each in hosts), cube * unit, lengths.astype(np.int64))


def _expand(path: Path, members: dict[str, npt.NDArray[np.generic]]) -> npt.NDArray[np.float32]:
    """Return the cube of a file from `ibprof-latency features`: each pair gets its cluster's centroid."""
    centroids, labels = np.asarray(members["centroids"]), np.asarray(members["labels"])
    if centroids.ndim != 2 or labels.ndim != 2 or labels.dtype != np.uint8 or len(centroids) > NO_CLUSTER:
        raise InputError(path, None, "centroids [K, L] and labels [n, n], uint8", f"{centroids.shape}, {labels.shape}")
    if np.any((labels >= len(centroids)) & (labels != NO_CLUSTER)):
        raise InputError(
            path, None, f"labels of {len(centroids)} clusters", f"label {labels[labels != NO_CLUSTER].max()}"
        )
    check_memory((centroids.shape[1], *labels.shape), 2)
    known = np.vstack((centroids, np.full((NO_CLUSTER + 1 - len(centroids), centroids.shape[1]), np.nan)))
    return np.ascontiguousarray(known[labels].transpose(2, 0, 1), np.float32)
