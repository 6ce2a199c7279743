# SPDX-License-Identifier: Apache-2.0
"""The structs of a recording as numpy types, made from the text of `ibprof_recording.h`, their one description."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from cffi import FFI

from ibprof.native.installed_files import cffi_text, find_recording_header

# Which struct a kind of segment holds.
_RECORDS = {
    "IBP_SEGMENT_PROCESS": "process",
    "IBP_SEGMENT_PORTS": "port",
    "IBP_SEGMENT_REGIONS": "region",
    "IBP_SEGMENT_COUNTERS": "counter",
    "IBP_SEGMENT_SIZES": "sizes",
    "IBP_SEGMENT_MARKS": "mark",
    "IBP_SEGMENT_PAIRS": "pair",
    "IBP_SEGMENT_TRANSFERS": "transfer",
    "IBP_SEGMENT_HARDWARE": "hardware",
    "IBP_SEGMENT_ADDRESSES": "address",
    "IBP_SEGMENT_SNAPSHOTS": "snapshot",
    "IBP_SEGMENT_LAUNCH": "launch",
    "IBP_SEGMENT_GRIDS": "grid",
}


@dataclass(frozen=True, slots=True)
class RecordingLayout:
    """The header as Python sees it.

    Attributes:
        constants: integer defines and enumerators, by name.
        types: structured type of each struct, by name without `ibp_`.
        record_names: struct that a segment holds, by the number of the segment's kind.
    """

    constants: dict[str, int]
    types: dict[str, np.dtype[np.void]]
    record_names: dict[int, str]


@lru_cache(maxsize=1)
def recording_layout() -> RecordingLayout:
    """Read the header that was installed.

    Raises:
        MissingToolError: there is none.
    """
    ffi = FFI()
    ffi.cdef(cffi_text(find_recording_header()))
    library = ffi.dlopen(None)
    constants = {name: int(getattr(library, name)) for name in dir(library)}
    _, structs, _ = ffi.list_types()
    types = {name.removeprefix("ibp_"): numpy_type(ffi, ffi.typeof(f"struct {name}")) for name in structs}
    return RecordingLayout(constants, types, {constants[kind]: name for kind, name in _RECORDS.items()})


def numpy_type(ffi: FFI, ctype: Any) -> np.dtype[Any]:
    """Give the numpy type with the same bytes as a C type."""
    if ctype.kind == "struct":
        fields = ctype.fields
        return np.dtype(
            {
                "names": [name for name, _ in fields],
                "formats": [numpy_type(ffi, field.type) for _, field in fields],
                "offsets": [field.offset for _, field in fields],
                "itemsize": ffi.sizeof(ctype),
            }
        )
    if ctype.kind == "array":
        if ctype.item.cname == "char":
            return np.dtype(f"S{ctype.length}")
        return np.dtype((numpy_type(ffi, ctype.item), (ctype.length,)))
    family = "f" if ctype.cname == "double" else "u" if ctype.cname.startswith("u") else "i"
    return np.dtype(f"{family}{ffi.sizeof(ctype)}")
