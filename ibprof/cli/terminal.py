# SPDX-License-Identifier: Apache-2.0
"""Output of all commands: text tables, JSON, warnings, and progress on stderr."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ibprof.text.quantities import printable

if TYPE_CHECKING:
    from rich.console import Console

SHORT = 256
"""Work with fewer parts than this number has no progress bar, because it ends too soon."""


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


T = TypeVar("T")

_PIPE_WIDTH = 140
"""Width in columns without a terminal, unless COLUMNS is set."""


def print_captured(show: Callable[[Console], None], pipe_width: int = _PIPE_WIDTH) -> None:
    """Print the output of `show` on a console, without the trailing blanks of rich's tables."""
    from rich.console import Console  # noqa: PLC0415  (slow to import, and --json needs none of it)

    terminal = sys.stdout.isatty()
    width = None if terminal else shutil.get_terminal_size((pipe_width, 24)).columns
    console = Console(width=width, force_terminal=terminal, markup=False, emoji=False, highlight=False)
    with console.capture() as captured:
        show(console)
    for line in captured.get().splitlines():
        print(line.rstrip())


def print_lines(lines: Iterable[str]) -> None:
    """Print lines that may contain names of files, hosts and regions, which are untrusted text."""
    for line in lines:
        print(printable(line))


def print_json(document: Any, indent: int | None = 2) -> None:
    """Print plain values as JSON."""
    json.dump(document, sys.stdout, indent=indent)
    print()


def print_result(document: Any, lines: Iterable[str], as_json: bool, indent: int = 2) -> None:
    """Print a result as JSON, or as lines."""
    if as_json:
        print_json(document, indent)
    else:
        print_lines(lines)


def print_document(
    document: T, show: Callable[[Console, T], None], as_json: bool, indent: int = 2, pipe_width: int = _PIPE_WIDTH
) -> None:
    """Print a result as JSON, or as tables that `show` prints on a console."""
    if as_json:
        print_json(document, indent)
    else:
        print_captured(lambda console: show(console, document), pipe_width)


def print_warnings(name: str, sentences: Iterable[str]) -> None:
    """Print sentences about the limits of a result on stderr, if the output on stdout contains only links."""
    for sentence in sentences:
        print(f"{name}: {printable(sentence)}", file=sys.stderr)


@contextmanager
def show_stages() -> Iterator[Callable[[str], None]]:
    """Show the running stage on a terminal; yield the function that receives each stage."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415  (slow to import, and most runs have no terminal)

    with Console(stderr=True).status("") as status:
        yield status.update
