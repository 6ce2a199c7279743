# SPDX-License-Identifier: Apache-2.0
"""Write logs of Darshan by Darshan's own library."""

from __future__ import annotations

import ctypes
from importlib.util import find_spec
from pathlib import Path

_POSIX, _POSIX_VERSION, _ZLIB = 1, 4, 0
_JOB, _EXE, _BASE = 7 * 8 + 1024, 4097, 16


def write_reads(log: Path, path: Path) -> None:
    """Write a copy of a log, with the reads and writes of the POSIX module swapped."""
    from darshan.backend import cffi_backend  # noqa: PLC0415  (an optional dependency)

    place = Path(str(find_spec("darshan").origin)).parents[1] / "darshan.libs"  # type: ignore[union-attr]
    library = ctypes.CDLL(str(next(place.glob("libdarshan-util*"))))
    library.darshan_log_open.restype = library.darshan_log_create.restype = ctypes.c_void_p
    source = ctypes.c_void_p(library.darshan_log_open(str(log).encode()))
    made = ctypes.c_void_p(library.darshan_log_create(str(path).encode(), _ZLIB, 0))
    job, exe = ctypes.create_string_buffer(_JOB), ctypes.create_string_buffer(_EXE)
    mounts, count, names = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_void_p()
    done = [library.darshan_log_get_job(source, job), library.darshan_log_put_job(made, job)]
    done += [library.darshan_log_get_exe(source, exe), library.darshan_log_put_exe(made, exe)]
    done.append(library.darshan_log_get_mounts(source, ctypes.byref(mounts), ctypes.byref(count)))
    done.append(library.darshan_log_put_mounts(made, mounts, count))
    done.append(library.darshan_log_get_namehash(source, ctypes.byref(names)))
    done.append(library.darshan_log_put_namehash(made, names))
    fields = [*cffi_backend.counter_names("POSIX"), *cffi_backend.fcounter_names("POSIX")]
    records = b""
    while True:
        record = ctypes.c_void_p()
        if library.darshan_log_get_record(source, _POSIX, ctypes.byref(record)) != 1:
            break
        records += _swap(ctypes.string_at(record, _BASE + 8 * len(fields)), fields)
    done.append(library.darshan_log_put_mod(made, _POSIX, records, len(records), _POSIX_VERSION))
    library.darshan_log_close(made)
    library.darshan_log_close(source)
    assert not any(done), done


def _swap(record: bytes, fields: list[str]) -> bytes:
    swapped = bytearray(record)
    for number, name in enumerate(fields):
        other = name.replace("WRITTEN", "READ").replace("WRITE", "READ")
        if other != name and other in fields:
            write, read = _BASE + 8 * number, _BASE + 8 * fields.index(other)
            swapped[write : write + 8], swapped[read : read + 8] = record[read : read + 8], record[write : write + 8]
    return bytes(swapped)
