# SPDX-License-Identifier: Apache-2.0
"""The C libraries, called through cffi: ibprof's kernels, and OTF2.

libibprof_kernels.so has loops that are too slow in Python, such as loops over an archive's events. The headers that
`ibprof_kernels.h` includes declare the kernels, and `ibprof_otf2.h` declares OTF2's functions. The build makes a module
for cffi from these headers (csrc/make_interface.py).
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import MissingToolError
from ibprof.native.headers import kernels_headers
from ibprof.native.installed_files import find_kernels, find_otf2_libraries


@dataclass(frozen=True, slots=True)
class Kernels:
    """The library of kernels, with its cffi interface.

    Attributes:
        ffi: makes C structs and pointers.
        lib: has the functions and constants of the headers as attributes.
    """

    ffi: Any
    lib: Any

    def pointer(self, array: npt.NDArray[Any]) -> Any:
        """Return a pointer to the elements of a C-contiguous array. The array must outlive the pointer."""
        if not array.flags.c_contiguous:
            raise ValueError("a kernel takes C-contiguous arrays")
        return self.ffi.cast(_pointer_type(array.dtype), array.ctypes.data)


@lru_cache(maxsize=1)
def load_kernels() -> Kernels:
    """Load the installed library of kernels.

    Raises:
        MissingToolError: the library is not installed.
    """
    library = find_kernels()
    ffi = import_module("ibprof.lib.kernels_interface").ffi
    return Kernels(ffi, ffi.dlopen(str(library)))


def sum_exactly(values: npt.NDArray[np.uint64]) -> int:
    """Return the exact sum of values; numpy's own sum wraps around silently at 2**64."""
    kernels = load_kernels()
    result = np.empty(2, np.uint64)
    values = np.ascontiguousarray(values)
    kernels.lib.ibp_sum(kernels.pointer(values), values.size, kernels.pointer(result))
    low, high = result.tolist()
    return int(high << 64 | low)


def _pointer_type(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "iu":
        return f"{'u' if dtype.kind == 'u' else ''}int{8 * dtype.itemsize}_t *"
    return {"f8": "double *", "f4": "float *", "b1": "uint8_t *"}.get(dtype.str[1:], "void *")


RECORDS = (
    *("ClockProperties", "String", "SystemTreeNode", "SystemTreeNodeProperty", "LocationGroup", "Location"),
    *("LocationProperty", "Region", "Callpath", "CallpathParameter", "SourceCodeLocation"),
    *("MetricMember", "MetricClass", "Parameter"),
)
"""Global definitions. Columns of a definition X: the arguments of `OTF2_GlobalDefWriter_WriteX` and of X's callback."""


class Otf2Error(Exception):
    """A function of OTF2 failed."""


class Otf2Library:
    """OTF2's loaded library.

    Attributes:
        ffi: makes C structs, pointers and callbacks.
        lib: has the functions and the constants of OTF2 as attributes.
    """

    def __init__(self, path: str) -> None:
        self.ffi = import_module("ibprof.lib.otf2_interface").ffi
        self.lib = self.ffi.dlopen(path)

    def call(self, name: str, *arguments: Any) -> Any:
        """Call the function `OTF2_NAME`, and return its result, if any.

        Raises:
            Otf2Error: the function failed.
        """
        result = getattr(self.lib, f"OTF2_{name}")(*arguments)
        if isinstance(result, int):
            self.check(name, result)
        elif result == self.ffi.NULL:
            raise Otf2Error(f"OTF2_{name} failed")
        return result

    def check(self, name: str, status: int) -> None:
        """Raise Otf2Error unless a status means success."""
        if status:
            reason = self.ffi.string(self.lib.OTF2_Error_GetDescription(status)).decode()
            raise Otf2Error(f"OTF2_{name}: {reason}")


@lru_cache(maxsize=1)
def load_otf2() -> Otf2Library:
    """Load OTF2's library.

    Raises:
        MissingToolError: no OTF2 library is found.
    """
    errors = []
    for path in find_otf2_libraries():
        try:
            return Otf2Library(path)
        except OSError as error:
            errors.append(f"{path}: {error}")
    raise MissingToolError(f"no OTF2 library can be loaded (pip install otf2 brings one): {'; '.join(errors)}")


_KINDS = kernels_headers().enumerators("ibp_event_kind", "IBP_EVENT_")
ENTER, LEAVE, NUMBER = _KINDS["ENTER"], _KINDS["LEAVE"], _KINDS["NUMBER"]
TEXT, METRIC = _KINDS["TEXT"], _KINDS["METRIC"]
"""Event kinds."""

EVENT = kernels_headers().types["ibp_event"]
"""Type of an event in an array."""

# Struct of the kernels -> {member: name of the OTF2 function that the member points to}.
_FUNCTIONS = {
    "struct ibp_otf2_writer": {
        "enter": "EvtWriter_Enter",
        "leave": "EvtWriter_Leave",
        "number": "EvtWriter_ParameterUnsignedInt",
        "text": "EvtWriter_ParameterString",
        "metric": "EvtWriter_Metric",
    },
    "struct ibp_otf2_reader": {
        "callbacks_new": "EvtReaderCallbacks_New",
        "callbacks_delete": "EvtReaderCallbacks_Delete",
        "set_enter": "EvtReaderCallbacks_SetEnterCallback",
        "set_leave": "EvtReaderCallbacks_SetLeaveCallback",
        "set_number": "EvtReaderCallbacks_SetParameterUnsignedIntCallback",
        "set_text": "EvtReaderCallbacks_SetParameterStringCallback",
        "set_metric": "EvtReaderCallbacks_SetMetricCallback",
        "register_callbacks": "Reader_RegisterEvtCallbacks",
        "read_all": "Reader_ReadAllLocalEvents",
    },
}


@dataclass(frozen=True, slots=True)
class Events:
    """Events of one or more locations, sorted by location, then by time.

    Attributes:
        records: `ibp_event` [event].
        values: uint64, values of all events, concatenated.
    """

    records: npt.NDArray[np.void]
    values: npt.NDArray[np.uint64]


def write_events(writer: Any, events: Events) -> None:
    """Write the events of a location.

    Args:
        writer: OTF2's EvtWriter of the location.

    Raises:
        Otf2Error: the events cannot be written.
    """
    kernels = load_kernels()
    records = kernels.ffi.from_buffer("struct ibp_event[]", events.records)
    calls = _load_functions("struct ibp_otf2_writer")
    values = kernels.pointer(events.values)
    load_otf2().check("EvtWriter", kernels.lib.ibp_otf2_write(calls, writer, records, len(events.records), values))


def read_events(archive: Any, reader: Any, into: Events, count: int, values_count: int) -> tuple[int, int]:
    """Read all events of a location.

    Args:
        archive: OTF2's Reader.
        reader: OTF2's EvtReader of the location.
        into: destination, which already contains `count` events with `values_count` values.
        count, values_count: number of events and of values in `into`.

    Returns:
        Number of events and of values in `into` after the call.

    Raises:
        Otf2Error: the events cannot be read.
        ValueError: the events exceed the capacity of `into`.
    """
    kernels = load_kernels()
    state = kernels.ffi.new("struct ibp_events *")
    records = kernels.ffi.from_buffer("struct ibp_event[]", into.records)
    state.events, state.count, state.capacity = records, count, len(into.records)
    state.values, state.values_count = kernels.pointer(into.values), values_count
    state.values_capacity = len(into.values)
    calls = _load_functions("struct ibp_otf2_reader")
    status = kernels.lib.ibp_otf2_read(calls, archive, reader, state)
    if status == -errno.E2BIG:
        raise ValueError("more events of a location than its definition says")
    load_otf2().check("Reader_ReadAllLocalEvents", status)
    return state.count, state.values_count


@lru_cache
def _load_functions(struct: str) -> Any:
    """Return a struct filled with functions of the OTF2 library."""
    ffi = load_kernels().ffi
    filled = ffi.new(f"{struct} *")
    types = dict(ffi.typeof(struct).fields)
    for name, function in _FUNCTIONS[struct].items():
        setattr(filled, name, ffi.cast(types[name].type, getattr(load_otf2().lib, f"OTF2_{function}")))
    return filled
