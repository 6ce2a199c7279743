# SPDX-License-Identifier: Apache-2.0
"""Print tables, JSON, stages and warnings, alike in every command."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from ibprof.text.quantities import printable

if TYPE_CHECKING:
    from rich.console import Console

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
    """Print the limits of a result on stderr, for outputs that show only links."""
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
