# SPDX-License-Identifier: Apache-2.0
"""How every command prints tables: by rich on a terminal, without its colours and blanks into a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_WIDTH = 140
"""Columns where there is no terminal to ask."""


def print_captured(show: Callable[[Console], None], pipe_width: int = _PIPE_WIDTH) -> None:
    """Print what `show` puts on a console, without the blanks that rich fills every line of a table with."""
    from rich.console import Console  # noqa: PLC0415  (slow to import, and --json needs none of it)

    terminal = sys.stdout.isatty()
    console = Console(
        width=None if terminal else pipe_width, force_terminal=terminal, markup=False, emoji=False, highlight=False
    )
    with console.capture() as captured:
        show(console)
    for line in captured.get().splitlines():
        print(line.rstrip())


def print_json(document: Any, indent: int = 2) -> None:
    """Print plain values as JSON."""
    json.dump(document, sys.stdout, indent=indent)
    print()
