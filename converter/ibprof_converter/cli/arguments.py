# SPDX-License-Identifier: Apache-2.0
"""Helpers for command lines: subcommands, argparse `type` functions for quantities, and calls with parsed arguments."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from inspect import signature
from math import inf, nan
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from ibprof.errors import UsageError, quote_found

T = TypeVar("T")

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")


def call_with_options(function: Callable[..., T], arguments: argparse.Namespace, **others: Any) -> T:
    """Call `function` with `others`, and with the parsed argument of the same name for each other parameter."""
    names = signature(function).parameters.keys() - others.keys()
    return function(**{name: getattr(arguments, name) for name in names}, **others)


def type_of(read: Callable[[str], T]) -> Callable[[str], T]:
    """Convert `read` to a `type` for argparse: messages of its UsageErrors then name the argument.

    Args:
        read: parser that raises UsageError.
    """

    def parse(text: str) -> T:
        try:
            return read(text)
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def parse_share(text: str) -> float:
    """Parse a fraction written as 0.2 or 20%."""
    return 0.01 * number_between(text[:-1], 0, 1e6) if text.endswith("%") else number_between(text, 0, 1e4)


def parse_positive(text: str) -> float:
    """Parse a number above 0."""
    number = _read_number(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {quote_found(text)}")
    return number


def number_between(text: str, least: float, most: float) -> float:
    """Parse a number in a range.

    Raises:
        argparse.ArgumentTypeError: the number is invalid, or out of range.
    """
    number = _read_number(text)
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"expected a number from {least:g} to {most:g}, found {quote_found(text)}")
    return number


def number_in(least: float, most: float = inf) -> Callable[[str], float]:
    """Return an argparse `type` for numbers from `least` to `most`."""
    return lambda text: number_between(text, least, most)


def count_in(least: int, most: int = 999_999_999) -> Callable[[str], int]:
    """Return an argparse `type` for whole numbers from `least` to `most`."""

    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(most)) else -1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(
                f"expected a whole number from {least} to {most}, found {quote_found(text)}"
            )
        return number

    return parse


def parse_figure(text: str) -> Path:
    """Parse the name of a picture file, whose suffix is the format."""
    path = Path(text)
    if path.suffix.lower() not in FIGURE_SUFFIXES:
        raise argparse.ArgumentTypeError(
            f"expected a name that ends with {', '.join(FIGURE_SUFFIXES)}, found {quote_found(text)}"
        )
    return path


def _read_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan


Subcommands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


BuildCommand: TypeAlias = "Callable[[argparse.Namespace], Callable[..., int | None]]"
"""Function that returns, for parsed arguments, a function that runs the command."""


def add_subcommands(parser: argparse.ArgumentParser) -> Subcommands:
    """Add a group of subcommands to a parser; each command line must name one."""
    return parser.add_subparsers(dest="command", metavar="COMMAND", required=True)


def add_subcommand(
    commands: Subcommands,
    name: str,
    summary: str,
    examples: str,
    description: str | None = None,
    build: BuildCommand | None = None,
    shown: Sequence[str] = (),
) -> argparse.ArgumentParser:
    """Add a subcommand.

    Args:
        commands: group of the command's subcommands.
        name: the name that users type.
        summary: line for the list of subcommands.
        examples: text for the subcommand's help, after the arguments.
        description: text for the subcommand's help; by default, the summary as a sentence.
        build: as `BuildCommand`; None if the caller runs the command.
        shown: options in the short `--help`. If empty: all options.

    Returns:
        The subcommand's parser, without arguments.
    """
    parser = commands.add_parser(
        name,
        help=summary,
        description=description or f"{summary[0].upper()}{summary[1:]}.",
        epilog=examples,
        shown=shown,
    )
    parser.set_defaults(build=build)
    return parser


def parse_subcommand(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> Callable[[], int | None]:
    """Parse a command line; return a function, without parameters, that runs its subcommand.

    Args:
        argv: the arguments after the command's name. If None: the arguments of the process.

    Raises:
        IbprofError: the options are invalid.
    """
    arguments = parser.parse_args(argv)
    run: Callable[[], int | None] = arguments.build(arguments)
    return run
