# SPDX-License-Identifier: Apache-2.0
"""ibprof: which network links an MPI job loads, which ranks load these links, and how to relieve the links.

Programs import this package to name regions. Other modules are imported only when a profile is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ibprof.region import mark, off, on, region

if TYPE_CHECKING:
    from ibprof.load import load_profile as load_profile
    from ibprof.profile.profile_data import Profile as Profile

__all__ = ["Profile", "__version__", "load_profile", "mark", "off", "on", "region"]

__version__ = "0.2.0"


if not TYPE_CHECKING:  # hidden from type checkers, which accept any name of a module with __getattr__

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from ibprof import load  # noqa: PLC0415  (numpy and otf2 take most of a second to import)

        return getattr(load, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
