# SPDX-License-Identifier: Apache-2.0
"""libibprof_kernels.so: loops that are too slow in Python.

Only the headers that `ibprof_kernels.h` includes describe the library's functions. The build makes a module for cffi
from these headers (csrc/make_interface.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.native.installed_files import find_kernels


@dataclass(frozen=True, slots=True)
class Kernels:
    """The library with its cffi interface.

    Attributes:
        ffi: makes C structs and pointers.
        lib: has the functions and constants of the headers as attributes.
    """

    ffi: Any
    lib: Any

    def pointer(self, array: npt.NDArray[Any]) -> Any:
        """Return a pointer to the elements of a C-contiguous array, which must outlive the pointer."""
        if not array.flags.c_contiguous:
            raise ValueError("a kernel takes C-contiguous arrays")
        return self.ffi.cast(_pointer_type(array.dtype), array.ctypes.data)


@lru_cache(maxsize=1)
def load_kernels() -> Kernels:
    """Load the installed library.

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
