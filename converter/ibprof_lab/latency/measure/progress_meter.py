# SPDX-License-Identifier: Apache-2.0
"""Progress of a measurement: a bar on a terminal, else a line at growing intervals."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

_FIRST_LINE_S = 10.0
"""First interval between lines; it doubles. A launcher forwards stderr through a pipe, where a bar is no use."""


class ProgressMeter:
    """Progress of a measurement: a bar on stderr, or lines that `say` prints."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.done = self.total = 0
        self.begin = time.monotonic()
        self.next_line = _FIRST_LINE_S
        self.bar: Progress | None = None
        self.task: TaskID | None = None
        if sys.stderr.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self.bar = Progress(*columns, console=Console(stderr=True), transient=True)

    def start(self, what: str, total: int) -> None:
        """Begin a part of the work."""
        self.done, self.total = 0, total
        self.begin, self.next_line = time.monotonic(), _FIRST_LINE_S
        if self.bar is not None:
            self.bar.start()
            self.task = self.bar.add_task(what, total=total)

    def advance(self, count: int) -> None:
        """Count more work as done."""
        self.done += count
        if self.bar is not None and self.task is not None:
            self.bar.advance(self.task, count)
            return
        elapsed = time.monotonic() - self.begin
        if elapsed >= self.next_line and self.total:
            self.next_line *= 2
            share = max(min(self.done / self.total, 1.0), 1e-9)
            left = show_seconds(elapsed * (1 - share) / share)
            self.say(f"{100 * share:.0f}% after {show_seconds(elapsed)}, about {left} left")

    def stop(self) -> None:
        """End the display."""
        if self.bar is not None:
            self.bar.stop()


def show_seconds(seconds: float) -> str:
    """Format a time for people: `0.4 s`, `12 s`, `3 min`, `2.5 h`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
