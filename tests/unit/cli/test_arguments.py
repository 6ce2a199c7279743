# SPDX-License-Identifier: Apache-2.0
"""Subcommands: arguments become options, help has examples, and errors in arguments name the argument."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from ibprof.cli.command import make_parser
from ibprof.errors import UsageError
from ibprof_converter.cli.arguments import (
    add_subcommand,
    add_subcommands,
    call_with_options,
    count_in,
    parse_subcommand,
    type_of,
)


@dataclass(frozen=True, slots=True)
class Toss:
    times: int
    coin: str


def make_commands(tosses: list[tuple[Toss, str]]) -> argparse.ArgumentParser:
    parser = make_parser("ibprof-x", "Toss coins.", "examples:\n  ibprof-x toss 3\n  ibprof-x twice 3\n")

    def toss(options: Toss, hand: str) -> int:
        tosses.append((options, hand))
        return options.times

    def build(arguments: argparse.Namespace) -> Callable[[str], int]:
        return partial(toss, call_with_options(Toss, arguments))

    def build_doubled(arguments: argparse.Namespace) -> Callable[[str], int]:
        return partial(toss, call_with_options(Toss, arguments, times=2 * arguments.times))

    commands = add_subcommands(parser)
    for name, options in (("toss", build), ("twice", build_doubled)):
        added = add_subcommand(commands, name, f"{name} a coin", f"example:\n  ibprof-x {name} 3", build=options)
        added.add_argument("times", type=count_in(1, 9))
        added.add_argument("--coin", default="cent")
    return parser


def test_arguments_become_options_and_run_with_what_the_command_passes_on() -> None:
    tosses: list[tuple[Toss, str]] = []
    parser = make_commands(tosses)
    for line, options in ((["toss", "3"], Toss(3, "cent")), (["twice", "3", "--coin", "dime"], Toss(6, "dime"))):
        run = parse_subcommand(parser, line)
        assert tosses == []  # parsing runs nothing: the command calls `run` later, with arguments of its own
        assert run("left") == options.times  # type: ignore[call-arg]
        assert tosses.pop() == (options, "left")


def test_help_has_the_summary_as_a_sentence_and_the_examples_as_written(capsys: pytest.CaptureFixture[str]) -> None:
    parser = make_commands([])
    for line, parts in (
        (["--help"], ("    twice     twice a coin\n", "examples:\n  ibprof-x toss 3\n  ibprof-x twice 3\n")),
        (["twice", "--help"], ("\n\nTwice a coin.\n\n", "\nexample:\n  ibprof-x twice 3\n")),
    ):
        with pytest.raises(SystemExit, match="0"):
            parse_subcommand(parser, line)
        shown = capsys.readouterr().out
        assert all(part in shown for part in parts), shown


@pytest.mark.parametrize(
    ("line", "message"),
    [([], "the following arguments are required: COMMAND"), (["toss", "10"], "expected a whole number from 1 to 9")],
)
def test_wrong_lines_end_with_usage(line: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse_subcommand(make_commands([]), line)
    assert message in capsys.readouterr().err


def test_the_error_of_a_reader_names_the_argument(capsys: pytest.CaptureFixture[str]) -> None:
    def read_coin(text: str) -> str:
        if text != "cent":
            raise UsageError(f"expected cent, found '{text}'")
        return text

    parser = make_parser("ibprof-x", "Toss coins.", "")
    parser.add_argument("--coin", type=type_of(read_coin))
    assert parser.parse_args(["--coin", "cent"]).coin == "cent"
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(["--coin", "dime"])
    assert capsys.readouterr().err.endswith("ibprof-x: error: argument --coin: expected cent, found 'dime'\n")
