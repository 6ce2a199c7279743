# SPDX-License-Identifier: Apache-2.0
"""Parsers of commands and of their subcommands, each with its examples, its options and what runs it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

from ibprof_converter.cli.arguments import fill_options

Subcommands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

T = TypeVar("T")
P = ParamSpec("P")

OptionsOf = type[T] | Callable[[argparse.Namespace], T]
"""A dataclass, whose fields are the arguments of the same names, or what turns parsed arguments into options."""


def add_subcommands(parser: argparse.ArgumentParser) -> Subcommands:
    """Let a command consist of subcommands, of which one must be named."""
    return parser.add_subparsers(dest="command", metavar="COMMAND", required=True)


def add_subcommand(
    commands: Subcommands,
    name: str,
    summary: str,
    examples: str,
    options: OptionsOf[T],
    run: Callable[Concatenate[T, P], int | None],
    description: str | None = None,
) -> argparse.ArgumentParser:
    """Add a subcommand.

    Args:
        commands: of its command.
        name: as users type it.
        summary: for the list of subcommands.
        examples: for its own help, after the arguments.
        options: of the subcommand.
        run: takes the options, and what the command passes on to all its subcommands.
        description: for its own help; by default the summary as a sentence.

    Returns:
        Its parser, which has no arguments yet.
    """
    parser = commands.add_parser(
        name,
        help=summary,
        description=description or f"{summary[0].upper()}{summary[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(options=partial(fill_options, options) if isinstance(options, type) else options, run=run)
    return parser


def parse_subcommand(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> Callable[[], int | None]:
    """Return the subcommand that a command line names, with its options: it runs when it is called.

    Args:
        parser: of a command with subcommands.
        argv: the arguments after the command's name; None for those of this process.

    Raises:
        IbprofError: the options are invalid.
    """
    arguments = parser.parse_args(argv)
    return partial(arguments.run, arguments.options(arguments))
