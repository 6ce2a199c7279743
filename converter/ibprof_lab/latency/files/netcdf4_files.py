# SPDX-License-Identifier: Apache-2.0
"""Delays as NetCDF-4, see docs/formats/delays.md."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_converter.outputs.atomic_write import write_atomically
from ibprof_lab.latency.model.delays import STATISTICS, Delays

NETCDF4_MAGIC = b"\x89HDF\r\n\x1a\n"
FORMAT = "ibprof delays 1"

_CUBE = ("length", "sender", "receiver")
_SIDE = 16
_CHUNK = 1 << 16
"""Values of a chunk: with few lengths it holds more than 16 x 16 pairs, or 10,000 hosts would make a million chunks."""

_RESERVED = ("format", "units")


def write_netcdf(path: Path, delays: Delays) -> None:
    """Write delays as NetCDF-4.

    The file is composed in memory and then written in one piece: HDF5 does not survive a full disk.

    Raises:
        OSError: the file cannot be written.
    """
    from netCDF4 import Dataset  # noqa: PLC0415  (slow to import)

    dataset = Dataset(os.fspath(path), "w", format="NETCDF4", memory=1 << 16)
    dataset.setncatts({"format": FORMAT, "units": "s"} | dict(delays.attributes))
    dataset.createDimension("length", len(delays.lengths))
    for axis in _CUBE[1:]:
        dataset.createDimension(axis, delays.processes)
    dataset.createVariable("length", np.int64, ("length",))[:] = delays.lengths
    for name, values in (("host", delays.hosts), ("core", delays.cores)):
        if values:
            dataset.createVariable(name, str, ("sender",))[:] = np.array(values, dtype=object)
    for name, cube in (*delays.present.items(), ("repetitions", delays.repetitions)):
        if cube is not None:
            _write_cube(dataset, name, cube)
    write_atomically(path, dataset.close())


def _write_cube(dataset: Any, name: str, cube: npt.NDArray[np.generic]) -> None:
    lengths, side, _ = cube.shape
    if not cube.size:  # HDF5 has no chunks of nothing
        return
    pairs = max(_SIDE, math.isqrt(_CHUNK // lengths))
    variable = dataset.createVariable(
        name,
        cube.dtype,
        _CUBE,
        chunksizes=(lengths, min(side, pairs), min(side, pairs)),
        compression="zlib",
        complevel=4,
        shuffle=True,
        fill_value=np.nan if name in STATISTICS else False,
    )
    if name in STATISTICS:
        variable.units = "s"
    variable[:] = cube


def read_netcdf(path: Path, statistics: tuple[str, ...]) -> Delays:
    """Read delays as `write_netcdf` writes them.

    Raises:
        InputError: the file is damaged, or has another layout.
        MemoryError: the cubes do not fit into this machine's memory.
    """
    from netCDF4 import Dataset  # noqa: PLC0415  (slow to import)

    try:
        with Dataset(os.fspath(path)) as dataset:
            dataset.set_auto_mask(False)
            return _read(path, dataset, statistics)
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError, IndexError, UnicodeError) as error:
        # The library raises many kinds of errors for a damaged file.
        raise InputError(path, None, "delays as NetCDF-4", f"a damaged file ({error})") from error


def _read(path: Path, dataset: Any, statistics: tuple[str, ...]) -> Delays:
    form = str(getattr(dataset, "format", ""))
    if form != FORMAT:
        found = f"format {quote_found(form)}" if form else "a file with no attribute `format`"
        raise InputError(path, None, f"NetCDF-4 of the format {FORMAT!r}", found)
    if "median" not in dataset.variables and len(dataset.dimensions["sender"]) * len(dataset.dimensions["length"]):
        raise InputError(path, None, "a variable `median`", f"{sorted(dataset.variables)}")
    shape = tuple(len(dataset.dimensions[axis]) for axis in _CUBE)
    wanted = [name for name in (*statistics, "repetitions") if name in dataset.variables]
    check_memory(shape, len(wanted))
    cubes: dict[str, Any] = {}
    for name in wanted:
        variable = dataset.variables[name]
        if variable.shape != shape:
            raise InputError(path, None, f"`{name}` of the shape {shape}", f"{variable.shape}")
        kind = np.uint32 if name == "repetitions" else np.float32
        cubes[name] = np.ascontiguousarray(variable[:], dtype=kind)
    lengths = np.asarray(dataset.variables["length"][:], dtype=np.int64)
    if np.any(np.diff(lengths) <= 0) or np.any(lengths < 0):
        raise InputError(path, None, "message lengths that ascend", quote_found(str(lengths.tolist())))
    cubes.setdefault("median", np.empty(shape, np.float32))
    return Delays(
        hosts=_read_names(dataset, "host"),
        lengths=lengths,
        cores=_read_names(dataset, "core"),
        attributes={
            name: value if isinstance(value := dataset.getncattr(name), str) else value.item()
            for name in dataset.ncattrs()
            if name not in _RESERVED
        },
        **cubes,
    )


def _read_names(dataset: Any, name: str) -> tuple[str, ...]:
    return tuple(str(each) for each in dataset.variables[name][:]) if name in dataset.variables else ()


def check_memory(shape: tuple[int, ...], cubes: int) -> None:
    """Refuse cubes that do not fit into memory: a few bytes of a damaged header can ask for any size.

    Raises:
        MemoryError: they do not fit.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    need = 4 * math.prod(shape) * cubes
    if need > memory:
        raise MemoryError(f"{cubes} cubes of {' x '.join(map(str, shape))} values")
