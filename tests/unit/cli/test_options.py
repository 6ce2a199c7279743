# SPDX-License-Identifier: Apache-2.0
"""Options of all commands: an option has the same meaning in each command, and former spellings lead to warnings."""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import pytest

from ibprof.cli.command import CommandParser, read_parsers, with_subcommands
from ibprof_converter.cli.arguments import parse_figure

# These options have the same meaning in all commands, but different names of their values.
SEVERAL_VALUES = {
    "--bandwidth": {"B", None},  # an option with value B, or a flag that shows the bandwidth
    "--by": {"KEYS", "region,operation,site", "choice"},
    "--data": {"FORMULA", "X"},
    "--from": {"DAY", "TIME"},
    "--operations": {"OP,...", "[REGION:]FORMULA", "FORMULA", "X"},  # MPI operations, or #op of the scaling model
    "--output": {"FILE", "DIR"},
    "--to": {"DAY", "TIME"},
}


def all_parsers() -> list[CommandParser]:
    return [each for parser in read_parsers().values() for each in with_subcommands(parser)]  # type: ignore[misc]


def value_of(action: argparse.Action) -> str | None:
    if action.nargs == 0:
        return None
    return str(action.metavar or ("choice" if action.choices else "N"))


def test_one_spelling_has_one_kind_of_value() -> None:
    values = defaultdict(set)
    for parser in all_parsers():
        for action in parser._actions:
            for option in action.option_strings:
                if option.startswith("--"):
                    values[option].add(value_of(action))
    assert len(values) > 150
    several = {option: found for option, found in values.items() if len(found) > 1}
    assert several == SEVERAL_VALUES


def test_a_former_spelling_leads_to_an_option() -> None:
    renamed = [(parser, *pair) for parser in all_parsers() for pair in parser.former.items()]
    assert len(renamed) > 5
    for parser, former, name in renamed:
        assert former not in parser._option_string_actions
        assert f" {former} " not in str(parser.epilog)
        option, _, value = name.partition("=")
        assert not value or value in (parser._option_string_actions[option].choices or ())
        assert option in parser._option_string_actions


def test_the_ending_of_a_picture_is_checked_before_any_file_is_read() -> None:
    readers = [
        action.type
        for parser in all_parsers()
        for action in parser._actions
        if action.option_strings[-1:] == ["--figure"]
    ]
    assert len(readers) > 5
    assert set(readers) == {parse_figure}
    assert parse_figure("curve.SVG") == Path("curve.SVG")
    with pytest.raises(
        argparse.ArgumentTypeError, match=r"a name that ends with \.png, \.svg, \.pdf, found 'curve\.gif'"
    ):
        parse_figure("curve.gif")
