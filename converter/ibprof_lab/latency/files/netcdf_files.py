# SPDX-License-Identifier: Apache-2.0
"""Read and write delays as NetCDF-4 (docs/formats/delays.md) and as clustbench's classic NetCDF.

clustbench (network_tests2) writes a file per statistic, and the hosts as text. The files of the prefix `P` are
`P_average.nc`, `P_median.nc`, `P_deviation.nc`, `P_min.nc` and `P_hosts.txt`.
"""

from __future__ import annotations

import logging
import math
import mmap
import os
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError, InputError, quote_found
from ibprof_converter.outputs.atomic_write import write_atomically
from ibprof_lab.lab_choices import STATISTICS
from ibprof_lab.latency.model.delays import Attribute, Cube, Delays

NETCDF4_MAGIC = b"\x89HDF\r\n\x1a\n"
FORMAT = "ibprof delays 1"

_CUBE = ("length", "sender", "receiver")
_SIDE = 16
_CHUNK = 1 << 16
"""A chunk has about this number of values, if this is more than 16 x 16 pairs at all lengths."""

_RESERVED = ("format", "units")

CLASSIC_MAGICS = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
_FILES = {"median": "median", "average": "mean", "deviation": "deviation", "min": "minimum"}
"""Suffix of a file's name -> statistic of `Delays`. Without a median file, the first of these files that exists becomes
`Delays.median`."""

_DATA_TYPES = {"average": 1, "median": 2, "deviation": 3, "min": 4}
_MODES = ("unknown", "one_to_one", "all_to_all", "async", "send_recv_and_recv_send", "noise", "noise_blocking",
          "bcast", "put_one_to_one", "get_one_to_one")  # fmt: skip
"""Name of the mode for each value of the variable `test_type`, from 0."""

_SCALARS = ("proc_num", "test_type", "data_type", "begin_mes_length", "end_mes_length", "step_length",
            "noise_mes_length", "num_noise_mes", "num_noise_proc", "num_repeates")  # fmt: skip
_STRINGS = 101
_log = logging.getLogger(__name__)


def write_netcdf(path: Path, delays: Delays) -> None:
    """Write delays as NetCDF-4.

    The file's bytes are made in memory and written at once, since HDF5 cannot handle a full disk.

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
    if not cube.size:  # HDF5 allows no empty chunks
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
    """Read delays in the layout of `write_netcdf`.

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
        # The library raises errors of many types for a damaged file.
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
    """Raise an error if float32 arrays do not fit into memory: a damaged file can state any size.

    Raises:
        MemoryError: the cubes do not fit.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    need = 4 * math.prod(shape) * cubes
    if need > memory:
        raise MemoryError(f"{cubes} arrays of {' x '.join(map(str, shape))} values")


def has_layout(path: Path) -> bool:
    """Return True if a NetCDF-4 file has clustbench's variables, as newer clustbench programs write them."""
    from netCDF4 import Dataset  # noqa: PLC0415  (slow to import)

    try:
        with Dataset(os.fspath(path)) as dataset:
            return {"data", "proc_num"} <= set(dataset.variables)
    except (OSError, RuntimeError, ValueError, UnicodeError):
        return False  # read_netcdf reports the damage


def read_classic(path: Path, statistics: tuple[str, ...]) -> Delays:
    """Read a file and, if the file's name has clustbench's form, all files of the same prefix.

    Rows are senders, columns are receivers. The lengths start at `begin_mes_length` with steps of `step_length`.

    Raises:
        InputError: a file is damaged or lacks a variable.
        InconsistentError: the files of one prefix have different shapes.
    """
    paths = _find_siblings(path)
    cubes: dict[str, Any] = {}
    known: dict[str, int] = {}
    for end, file in paths.items():
        statistic = _FILES.get(end, "median")
        if cubes and statistic not in statistics:
            continue
        cube, scalars = _read_file(file)
        if cubes and cube.shape != next(iter(cubes.values())).shape:
            first = next(iter(paths.values()))
            shapes = [" x ".join(map(str, each.shape)) for each in (cube, *cubes.values())]
            raise InconsistentError(f"{file}: expected {shapes[1]} values, as in {first}, found {shapes[0]}")
        cubes[statistic] = cube
        known = known or scalars
    statistic, median = next(iter(cubes.items()))
    mode = known["test_type"]
    name = _MODES[mode] if 0 <= mode < len(_MODES) else str(mode)
    attributes: dict[str, Attribute] = {"mode": name, "source": "clustbench"}
    attributes |= {name: known[name] for name in _SCALARS[6:]}
    if statistic != "median":
        attributes["statistic"] = statistic
        cubes["median"] = median.copy()
    hosts = _read_hosts(paths, path, median.shape[1])
    step = max(known["step_length"], 1)
    lengths = known["begin_mes_length"] + step * np.arange(len(median), dtype=np.int64)
    repetitions = np.full(median.shape, max(known["num_repeates"], 0), np.uint32) if known["num_repeates"] else None
    return Delays(hosts, lengths, **cubes, repetitions=repetitions, attributes=attributes)


def _find_siblings(path: Path) -> dict[str, Path]:
    for end in _FILES:
        if path.name.endswith(f"_{end}.nc"):
            prefix = path.name.removesuffix(f"{end}.nc")
            there = {each: path.with_name(f"{prefix}{each}.nc") for each in _FILES}
            return {each: file for each, file in there.items() if file.is_file()}
    return {"": path}


def _read_file(path: Path) -> tuple[Cube, dict[str, int]]:
    from netCDF4 import Dataset  # noqa: PLC0415  (slow to import)

    try:
        with Dataset(os.fspath(path)) as dataset:
            dataset.set_auto_mask(False)
            missing = [name for name in ("data", *_SCALARS) if name not in dataset.variables]
            if missing:
                raise InputError(path, None, "clustbench's variables", f"a file without {', '.join(missing)}")
            data = dataset.variables["data"]
            if len(data.shape) != 3 or data.shape[1] != data.shape[2]:
                raise InputError(path, None, "`data` with dimensions n, x, y and x = y", f"the shape {data.shape}")
            check_memory(data.shape, 3)
            scalars = {name: int(dataset.variables[name][...]) for name in _SCALARS}
            values = np.asarray(data[:])
            most = np.finfo(np.float32).max
            if (np.abs(values) > most).any():
                raise InputError(path, None, f"delays of at most {most:.1e}", f"{np.nanmax(np.abs(values)):.1e}")
            return values.astype(np.float32), scalars
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError, IndexError, UnicodeError) as error:
        raise InputError(path, None, "delays in clustbench's classic NetCDF", f"a damaged file ({error})") from error


def _read_hosts(paths: dict[str, Path], path: Path, processes: int) -> tuple[str, ...]:
    end, first = next(iter(paths.items()))
    file = first.with_name(first.name.removesuffix(f"{end}.nc") + "hosts.txt") if end else path.with_suffix(".txt")
    if not file.is_file():
        _log.warning("%s: no such file; hosts are named by the numbers of their processes", file)
        return tuple(str(process) for process in range(processes))
    hosts = [line.strip() for line in file.read_text(encoding="utf-8", errors="backslashreplace").splitlines()]
    while hosts and not hosts[-1]:
        hosts.pop()
    if len(hosts) != processes:
        raise InputError(file, None, f"{processes} hosts, one on a line, for the processes of {first}", f"{len(hosts)}")
    return tuple(hosts)


def write_classic(prefix: Path, delays: Delays) -> list[Path]:
    """Write all five files of a prefix.

    Raises:
        InputError: the lengths are unevenly spaced, which this layout cannot represent.
        OSError: a file cannot be written.
    """
    steps = np.unique(np.diff(delays.lengths))
    if len(steps) > 1:
        raise InputError(
            prefix, None, "lengths that are evenly spaced, as clustbench's files need them",
            quote_found(str(delays.lengths.tolist())),
        )  # fmt: skip
    written = []
    for end, statistic in _FILES.items():
        cube = delays.present.get(statistic)
        if cube is not None:
            path = prefix.with_name(f"{prefix.name}_{end}.nc")
            write_atomically(path, _encode(delays, cube, end, int(steps[0]) if len(steps) else 1))
            written.append(path)
    hosts = prefix.with_name(f"{prefix.name}_hosts.txt")
    write_atomically(hosts, "".join(f"{host}\n" for host in delays.hosts).encode())
    return [*written, hosts]


def _encode(delays: Delays, cube: npt.NDArray[np.float32], end: str, step: int) -> memoryview:
    from netCDF4 import Dataset  # noqa: PLC0415  (slow to import)

    dataset: Any = Dataset("classic.nc", "w", format="NETCDF3_64BIT_OFFSET", memory=1 << 16)
    for axis, size in (("x", delays.processes), ("y", delays.processes), ("n", None), ("strings", _STRINGS)):
        dataset.createDimension(axis, size)
    mode = str(delays.attributes.get("mode", "unknown"))
    first = int(delays.lengths[0]) if len(delays.lengths) else 0
    repetitions = delays.repetitions
    values = dict.fromkeys(_SCALARS, 0) | {
        "proc_num": delays.processes,
        "test_type": _MODES.index(mode) if mode in _MODES else 0,
        "data_type": _DATA_TYPES[end],
        "begin_mes_length": first,
        "end_mes_length": first + step * len(delays.lengths),
        "step_length": step,
        "num_repeates": 0 if repetitions is None or not repetitions.size else int(repetitions.max()),
    }
    values |= {name: int(delays.attributes[name]) for name in _SCALARS[6:9] if name in delays.attributes}
    for name in _SCALARS:
        dataset.createVariable(name, np.int32, ())[...] = values[name]
    dataset.createVariable("data", np.float64, ("n", "x", "y"))[: len(cube)] = cube
    return dataset.close()  # type: ignore[no-any-return]


_HEAP = re.compile(rb"GCOL\x01\0\0\0")


_HEAP_HEAD = struct.Struct("<8xQ")
"""Header of an HDF5 heap: size of the heap in bytes, including this header."""


_OBJECT_HEAD = struct.Struct("<HHxxxxQ")
"""Header of an object in a heap: object number, reference count, size."""


_FREE = 0
"""Object number of free space. The size of free space includes the header; an object's size does not."""


def check_heaps(path: Path) -> None:
    """Raise an error if a heap is damaged: the HDF5 library would loop forever.

    Raises:
        InputError: a heap is damaged.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for heap in _HEAP.finditer(data):
            if len(data) - heap.start() < _HEAP_HEAD.size or not _has_end(data, heap.start()):
                raise InputError(path, None, "delays as NetCDF-4", f"a damaged heap at byte {heap.start()}")


def _has_end(data: mmap.mmap, start: int) -> bool:
    """Follow the sizes of a heap's objects; return False if an object of size 0 makes the heap endless."""
    (size,) = _HEAP_HEAD.unpack_from(data, start)
    end, place = min(start + size, len(data)), start + _HEAP_HEAD.size
    while place + _OBJECT_HEAD.size <= end:
        number, _, length = _OBJECT_HEAD.unpack_from(data, place)
        step = length if number == _FREE else _OBJECT_HEAD.size + -(-length // 8) * 8
        if step % (1 << 64) == 0:
            return False
        place += step
    return True
