# SPDX-License-Identifier: Apache-2.0
"""OTF2's C library, called through cffi. `csrc/include/ibprof_otf2.h` describes its functions."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from ibprof.errors import MissingToolError
from ibprof.native.installed_files import find_otf2_libraries

RECORDS = (
    *("ClockProperties", "String", "SystemTreeNode", "SystemTreeNodeProperty", "LocationGroup", "Location"),
    *("LocationProperty", "Region", "Callpath", "CallpathParameter", "SourceCodeLocation"),
    *("MetricMember", "MetricClass", "Parameter"),
)
"""Global definitions. Their columns are the arguments of `OTF2_GlobalDefWriter_WriteX` and of readers' callbacks."""


class Otf2Error(Exception):
    """A function of OTF2 failed."""


class Otf2Library:
    """The loaded library.

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
    """Load the library.

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
