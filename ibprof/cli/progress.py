# SPDX-License-Identifier: Apache-2.0
"""A progress bar on stderr, shown only on a terminal, and only if the work is long."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

SHORT = 256
"""Number of parts below which the work ends before a bar is read."""


class TellProgress(Protocol):
    """Receives the number of parts done, their total and, if it changed, a description of the work."""

    def __call__(self, done: int, parts: int, doing: str | None = None) -> None:
        """Show it."""


@contextmanager
def show_progress(doing: str) -> Iterator[TellProgress]:
    """Show a bar while parts of some work are done; yield what receives their number."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console  # noqa: PLC0415  (slow to import, and only needed on a terminal)
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, visible=False)

        def update(done: int, parts: int, doing: str | None = None) -> None:
            progress.update(task, completed=done, total=parts, visible=parts > SHORT, description=doing)

        yield update
