# SPDX-License-Identifier: Apache-2.0
"""Regions for Python programs, like the regions of ibprof.h for C. Without libibprof.so the functions do nothing.

with ibprof.region("exchange"):
    world.Alltoall(out, into)
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from functools import cache
from types import TracebackType


class region(ContextDecorator):
    """Count the traffic of a `with` block or of a decorated function as the traffic of a region."""

    def __init__(self, name: str) -> None:
        self._name = _encode(name)

    def __enter__(self) -> region:
        """Enter the region."""
        _find("ibprof_region_begin")(self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave the region that was entered last."""
        _find("ibprof_region_end")()


def mark(name: str) -> None:
    """Assign the traffic since the last mark to the region `name`. Traffic of other named regions is not affected."""
    _find("ibprof_region")(_encode(name))


def off() -> None:
    """Stop counting, as `MPI_Pcontrol(0)` does."""
    _find("ibprof_off")()


def on() -> None:
    """Resume counting."""
    _find("ibprof_on")()


@cache
def _find(function: str) -> Callable[..., object]:
    import ctypes  # noqa: PLC0415  (commands import this package, and do not need ctypes)

    # `CDLL(None)` finds functions of libraries that are preloaded or linked with the program.
    found = getattr(ctypes.CDLL(None), function, None)
    if found is None:
        return _do_nothing
    found.restype = None
    return found  # type: ignore[no-any-return]


def _do_nothing(*_: object) -> None:
    return


def _encode(name: str) -> bytes:
    return name.encode("utf-8", "backslashreplace")
