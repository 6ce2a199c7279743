# SPDX-License-Identifier: Apache-2.0
"""A progress bar on stderr, for people who watch: it shows on a terminal, and only when the work is long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHORT = 256
"""Parts of work that are done before a bar would be read."""


@contextmanager
def show_progress(doing: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function that is told how many parts of the work are done, and of how many."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console  # noqa: PLC0415  (only who watches waits for it)
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, visible=False)

        def tell(done: int, parts: int) -> None:
            progress.update(task, completed=done, total=parts, visible=parts > SHORT)

        yield tell
