# SPDX-License-Identifier: Apache-2.0
"""Delays in the classic NetCDF of clustbench (network_tests2): a file per statistic, and the hosts as text.

A prefix `P` stands for `P_average.nc`, `P_median.nc`, `P_deviation.nc`, `P_min.nc` and `P_hosts.txt`.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError, InputError, quote_found
from ibprof_converter.outputs.atomic_write import write_atomically
from ibprof_lab.latency.files.netcdf4_files import check_memory
from ibprof_lab.latency.model.delays import Attribute, Cube, Delays

CLASSIC_MAGICS = (b"CDF\x01", b"CDF\x02", b"CDF\x05")

_FILES = {"median": "median", "average": "mean", "deviation": "deviation", "min": "minimum"}
"""End of a file's name -> statistic of `Delays`; the first file that exists has the representative value."""

_DATA_TYPES = {"average": 1, "median": 2, "deviation": 3, "min": 4}
_MODES = ("unknown", "one_to_one", "all_to_all", "async", "send_recv_and_recv_send", "noise", "noise_blocking",
          "bcast", "put_one_to_one", "get_one_to_one")  # fmt: skip
"""The modes by `test_type`."""

_SCALARS = ("proc_num", "test_type", "data_type", "begin_mes_length", "end_mes_length", "step_length",
            "noise_mes_length", "num_noise_mes", "num_noise_proc", "num_repeates")  # fmt: skip
_STRINGS = 101

_log = logging.getLogger(__name__)


def has_layout(path: Path) -> bool:
    """Return whether a file of NetCDF-4 has clustbench's variables: newer programs of that family write such files."""
    from netCDF4 import Dataset  # noqa: PLC0415  (slow to import)

    try:
        with Dataset(os.fspath(path)) as dataset:
            return {"data", "proc_num"} <= set(dataset.variables)
    except (OSError, RuntimeError, ValueError, UnicodeError):
        return False  # the reader reports the damage


def read_classic(path: Path, statistics: tuple[str, ...]) -> Delays:
    """Read the file and, where its name ends as clustbench's do, the others of its prefix.

    Rows are senders, columns receivers. The lengths are `begin_mes_length` and so on by `step_length`.

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
            raise InconsistentError(f"{file}: {_shape(cube)} values, where {first} has {_shape(*cubes.values())}")
        cubes[statistic] = cube
        known = known or scalars
    statistic, median = next(iter(cubes.items()))
    attributes: dict[str, Attribute] = {"mode": _name_mode(known["test_type"]), "source": "clustbench"}
    attributes |= {name: known[name] for name in _SCALARS[6:]}
    if statistic != "median":
        attributes["statistic"] = statistic
        cubes["median"] = median.copy()
    hosts = _read_hosts(paths, path, median.shape[1])
    step = max(known["step_length"], 1)
    lengths = known["begin_mes_length"] + step * np.arange(len(median), dtype=np.int64)
    repetitions = np.full(median.shape, max(known["num_repeates"], 0), np.uint32) if known["num_repeates"] else None
    return Delays(hosts, lengths, **cubes, repetitions=repetitions, attributes=attributes)


def _shape(cube: Cube, *_: Cube) -> str:
    return " x ".join(str(side) for side in cube.shape)


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


def _name_mode(test_type: int) -> str:
    return _MODES[test_type] if 0 <= test_type < len(_MODES) else str(test_type)


def _read_hosts(paths: dict[str, Path], path: Path, processes: int) -> tuple[str, ...]:
    end, first = next(iter(paths.items()))
    file = first.with_name(first.name.removesuffix(f"{end}.nc") + "hosts.txt") if end else path.with_suffix(".txt")
    if not file.is_file():
        _log.warning("%s: not there; hosts are named by their process", file)
        return tuple(str(process) for process in range(processes))
    hosts = [line.strip() for line in file.read_text(encoding="utf-8", errors="backslashreplace").splitlines()]
    while hosts and not hosts[-1]:
        hosts.pop()
    if len(hosts) != processes:
        raise InputError(file, None, f"{processes} hosts, one a line, as {first} has processes", f"{len(hosts)}")
    return tuple(hosts)


def write_classic(prefix: Path, delays: Delays) -> list[Path]:
    """Write all five files of a prefix.

    Raises:
        InputError: the lengths are not evenly spaced, which this layout cannot represent.
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
