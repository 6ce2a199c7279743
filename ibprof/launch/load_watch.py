# SPDX-License-Identifier: Apache-2.0
"""Watch whether any process of this host loads a library: the kernel reports each time that its file is opened."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_OPENED = 0x20
"""IN_OPEN of Linux."""


@dataclass(frozen=True, slots=True)
class LoadWatch:
    """A watch of a file, from when it was made.

    Attributes:
        events: the descriptor of the kernel's events; None where the kernel has none to give.
    """

    events: int | None

    def was_never_loaded(self) -> bool:
        """Return whether it is certain that no process of this host opened the file."""
        if self.events is None:
            return False
        try:
            return not os.read(self.events, 4096)
        except BlockingIOError:
            return True
        except OSError:
            return False


@contextmanager
def watch_loads(library: Path) -> Iterator[LoadWatch]:
    """Watch who loads a library, until the context ends."""
    libc = ctypes.CDLL(None)
    events = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    watched = events >= 0 and libc.inotify_add_watch(events, os.fsencode(library), _OPENED) >= 0
    try:
        yield LoadWatch(events if watched else None)
    finally:
        if events >= 0:
            os.close(events)
