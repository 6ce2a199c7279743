# SPDX-License-Identifier: Apache-2.0
"""Parsers of commands: alike in help and in messages, and read by what makes completions and manual pages of them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from contextvars import ContextVar
from difflib import get_close_matches
from io import StringIO
from typing import TYPE_CHECKING, Any, NoReturn

from ibprof.cli.main import find_commands

if TYPE_CHECKING:
    from ibprof.profile.row_choice import RowChoice

_INVALID_CHOICE = re.compile(r"argument ([^:]+): invalid choice: '([^']*)' \(choose from ")

_MISSPELT = 0.8
"""How alike options are from which one is taken for the other misspelt, from 0 to 1."""

_NAMED = 3
"""Commands that a hint names."""

_is_reading: ContextVar[bool] = ContextVar("_is_reading", default=False)


class _Parser(BaseException):
    """Ends a command before it parses its arguments; not an `Exception`, which the command would catch."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


class CommandParser(argparse.ArgumentParser):
    """Adds the option or the choice that is most like an unknown one, or what has this one, to the message on it."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments, unless the parser alone is wanted."""
        if _is_reading.get():
            raise _Parser(self)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the usage, the message and what is most alike; exit with status 2."""
        _, found, unknown = message.partition("unrecognized arguments: ")
        word = unknown.partition(" ")[0].partition("=")[0]
        hint = ""
        if found and word.startswith("--"):
            hint = self._find_like_option(word)
        elif invalid := _INVALID_CHOICE.search(message):
            hint = self._find_like_choice(*invalid.groups())
        super().error(message + hint)

    def _find_like_option(self, word: str) -> str:
        """Return a hint: the option that is misspelt, or the commands that have this one."""
        own = list(self._option_string_actions)
        if misspelt := get_close_matches(word, own, 1, _MISSPELT):
            return f"; did you mean {misspelt[0]}?"
        if others := find_option(word):
            more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
            return f"; an option of {', '.join(others[:_NAMED])}{more}"
        alike = get_close_matches(word, own, 1)
        return f"; did you mean {alike[0]}?" if alike else ""

    def _find_like_choice(self, argument: str, word: str) -> str:
        """Return a hint: the choice that is misspelt, or the option that has this one."""
        choices = {_name(action): [str(each) for each in action.choices or ()] for action in self._actions}
        alike = get_close_matches(word, choices.get(argument, ()), 1)
        others = [f"{name} {word}" for name, each in choices.items() if word in each and name.startswith("--")]
        return f"; did you mean {(alike or others)[0]}?" if alike or others else ""


def _name(action: argparse.Action) -> str:
    """Return the name of an argument in messages."""
    return "/".join(action.option_strings) or str(action.metavar or action.dest)


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


def read_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command `ibprof X`, by the command's name."""
    parsers = {name: read_parser(point.load()) for name, point in find_commands().items()}
    return {name: parser for name, parser in parsers.items() if parser}


def find_option(option: str) -> list[str]:
    """Return the commands that have an option, as they are typed. This imports every command."""
    found = []
    for point in find_commands().values():
        try:
            parser = read_parser(point.load())
        except ImportError:  # of another package's command, which is not what the user typed
            continue
        found += [each.prog for each in _with_subcommands(parser) if option in each._option_string_actions]
    return found


def _with_subcommands(parser: argparse.ArgumentParser | None) -> Iterator[argparse.ArgumentParser]:
    if parser is None:
        return
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subcommand in dict.fromkeys(action.choices.values()):
                yield from _with_subcommands(subcommand)


def add_row_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --operation, --region and --site."""
    parser.add_argument("--operation", metavar="OP", help="only this MPI operation, such as ALLTOALL")
    parser.add_argument("--region", metavar="NAME", help="only this region")
    parser.add_argument("--site", metavar="FILE:LINE", help="only calls of this line, if sites were recorded")


def row_options(arguments: argparse.Namespace) -> RowChoice:
    """Return the choice that the arguments state."""
    from ibprof.profile.row_choice import RowChoice  # noqa: PLC0415  (--help must come at once)

    return RowChoice(arguments.operation, arguments.region, arguments.site)
