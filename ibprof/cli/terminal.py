# SPDX-License-Identifier: Apache-2.0
"""Output on a terminal: text tables, and a progress bar on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from ibprof.text.quantities import printable

SHORT = 256
"""Minimum number of parts for a bar: shorter work ends too soon."""


def print_pairs(pairs: Mapping[str, str]) -> None:
    """Print names and values; empty values are left out."""
    width = max(map(len, pairs))
    for name, value in pairs.items():
        if value:
            print(f"{name:{width}}  {printable(value)}")
    print()


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns; names in a profile are untrusted text, and are escaped."""
    lines = [tuple(map(printable, row)) for row in rows]
    if not lines:
        return
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    for line in (head, *lines):
        print("  ".join(f"{text:{width}}" for text, width in zip(line, widths, strict=True)).rstrip())
    print()


class TellProgress(Protocol):
    """Receives the number of finished parts, of all parts and, if it changed, a description of the work."""

    def __call__(self, done: int, parts: int, doing: str | None = None) -> None:
        """Show the progress."""


@contextmanager
def show_progress(doing: str) -> Iterator[TellProgress]:
    """Show a bar while parts of some work are done; yield the function that receives their number."""
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
