# SPDX-License-Identifier: Apache-2.0
"""Parsers of commands: alike in help and in messages, and read by what makes completions and manual pages of them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from contextvars import ContextVar
from difflib import get_close_matches
from io import StringIO
from typing import Any, NoReturn

_INVALID_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from ")

_is_reading: ContextVar[bool] = ContextVar("_is_reading", default=False)


class _Parser(BaseException):
    """Ends a command before it parses its arguments; not an `Exception`, which the command would catch."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


class CommandParser(argparse.ArgumentParser):
    """Adds the option or the choice that is most like an unknown one to the message on it."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments, unless the parser alone is wanted."""
        if _is_reading.get():
            raise _Parser(self)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the usage, the message and what is most alike; exit with status 2."""
        likely: list[str] = []
        _, found, unknown = message.partition("unrecognized arguments: ")
        word = unknown.partition(" ")[0].partition("=")[0]
        if found and word.startswith("--"):
            likely = get_close_matches(word, self._option_string_actions, 1)
        elif invalid := _INVALID_CHOICE.search(message):
            choices = [str(each) for action in self._actions for each in action.choices or ()]
            likely = get_close_matches(invalid[1], choices, 1)
        super().error(message + (f"; did you mean {likely[0]}?" if likely else ""))


def make_parser(name: str, description: str, examples: str, usage: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of a command, whose help shows the examples as they are written."""
    return CommandParser(
        prog=name,
        usage=usage,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def read_parser(main: Callable[[Sequence[str]], int]) -> argparse.ArgumentParser | None:
    """Return the parser of a command, which does not run; None for a command that uses another kind of parser."""
    before = _is_reading.set(True)
    try:
        with redirect_stderr(StringIO()):
            main([])
    except (_Parser, SystemExit) as ended:
        return ended.parser if isinstance(ended, _Parser) else None
    finally:
        _is_reading.reset(before)
    return None
