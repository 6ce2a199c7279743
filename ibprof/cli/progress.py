# SPDX-License-Identifier: Apache-2.0
"""A progress bar on stderr, shown only on a terminal, and only if the work is long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHORT = 256
"""Number of parts below which the work ends before a bar is read."""


@contextmanager
def show_progress(doing: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that takes the number of parts done, and their total."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console  # noqa: PLC0415  (slow to import, and only needed on a terminal)
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, visible=False)

        def update(done: int, parts: int) -> None:
            progress.update(task, completed=done, total=parts, visible=parts > SHORT)

        yield update
