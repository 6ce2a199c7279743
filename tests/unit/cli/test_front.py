# SPDX-License-Identifier: Apache-2.0
"""All commands have a help and a version. Errors for wrong command lines name the nearest right option or command."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import pytest

from ibprof.cli import info, main
from ibprof.cli.command import CommandParser, find_commands, make_parser, read_parsers
from ibprof.errors import UsageError
from ibprof_converter.analysis.pipeline_options import split_names
from ibprof_converter.cli import layout
from ibprof_testing.samples.fabrics import FABRICS

Captured = pytest.CaptureFixture[str]


def test_help_of_a_command_is_that_of_its_option(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main.main(["help", "info"])
    assert capsys.readouterr().out.startswith("usage: ibprof info")
    assert main.main(["help"]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^  (\w+) ", shown, re.MULTILINE)[:5] == ["run", "report", "place", "view", "doctor"]
    assert {*find_commands()} <= {*re.findall(r"^  (\w+) ", shown, re.MULTILINE)}
    assert "others:" not in shown  # each command of ibprof is in a named group


def test_every_command_has_a_version(capsys: Captured) -> None:
    for command, name in ((main.main, "ibprof"), (info.main, "ibprof info"), (layout.main, "ibprof-layout")):
        assert command(["--version"]) == 0
        assert capsys.readouterr().out == f"{name} {version('ibprof')}\n"


@pytest.mark.parametrize(
    ("typed", "end"),
    [
        ("compare", "did you mean `ibprof diff`?"),
        ("reprot", "did you mean `ibprof report`?"),
        ("ibprof-view", "did you mean `ibprof view`?"),
        ("qqqqqq", "expected one of calls,"),
    ],
)
def test_an_unknown_command_brings_the_one_that_is_most_like_it(typed: str, end: str, capsys: Captured) -> None:
    assert main.main([typed]) == UsageError.status
    assert end in capsys.readouterr().err


def test_an_unknown_option_brings_the_one_that_is_most_like_it(capsys: Captured) -> None:
    parser: argparse.ArgumentParser = make_parser("ibprof-x", "", "")
    parser.add_argument("--placement")
    for typed, end in (("--placemnt=x", "--placemnt=x; did you mean --placement?\n"), ("--qqq", "--qqq\n")):
        with pytest.raises(SystemExit):
            parser.parse_args([typed])
        assert capsys.readouterr().err.endswith(f"unrecognized arguments: {end}")


@pytest.mark.parametrize(
    ("command", "typed", "end"),
    [
        (info.main, "--trace=x", "; an option of ibprof-layout\n"),
        (
            info.main,
            "--l-peak",
            "; an option of ibprof-scaling scalar, ibprof-scaling matrix, ibprof-scaling linpack and 1 more\n",
        ),
        (layout.main, "--trase=x", "; did you mean --trace?\n"),
    ],
)
def test_an_option_of_another_command_brings_this_command(
    command: Callable[[Sequence[str]], int], typed: str, end: str, capsys: Captured
) -> None:
    with pytest.raises(SystemExit):
        command(["profile.otf2", typed])
    assert capsys.readouterr().err.endswith(f"unrecognized arguments: {typed}{end}")


def test_short_help_counts_the_options_that_long_help_adds(capsys: Captured) -> None:
    parser = make_parser("ibprof-x", "", "examples:\n  ibprof-x\n", shown=("--json",), details="LST is a fabric\n")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--rare", action="store_true", help="seldom used")
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["--help"])
    short = capsys.readouterr().out
    assert ended.value.code == 0
    assert "for programs" in short
    assert "--rare" not in short
    assert "LST is" not in short
    assert short.endswith("  ibprof-x\n\nforms of inputs, and 1 more option: ibprof-x --help-all\n")
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["--help-all"])
    assert ended.value.code == 0
    long = capsys.readouterr().out
    assert all(words in long for words in ("for programs", "seldom used", "examples:", "LST is a fabric"))
    assert parser.parse_args(["--rare"]).rare


@pytest.mark.parametrize("front", [False, True])
def test_a_command_whose_help_is_whole_prints_it_for_help_all_too(front: bool, capsys: Captured) -> None:
    texts = []
    for option in ("--help", "--help-all"):
        if front:
            assert main.main([option]) == 0
        else:
            with pytest.raises(SystemExit):
                make_parser("ibprof-x", "", "example:  ibprof-x").parse_args([option])
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != ""


def test_options_of_short_helps_exist() -> None:
    parsers = list(read_parsers().values())
    subcommands = [
        each
        for parser in parsers
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for each in action.choices.values()
    ]
    checked = 0
    for parser in (*parsers, *subcommands):
        assert isinstance(parser, CommandParser)
        options = {option for action in parser._actions for option in action.option_strings}
        assert {*parser.shown} <= options, parser.prog
        checked += len(parser.shown)
        assert parser.shown or len(parser._actions) <= 16, parser.prog
    assert checked > 80


def test_a_choice_of_another_option_brings_this_option(capsys: Captured) -> None:
    parser = make_parser("ibprof-x", "", "")
    parser.add_argument("--rails", choices=("split", "first"))
    parser.add_argument("--nic", choices=("rank", "near"))
    parser.add_argument("--by", choices=("spilt",))
    for choice, end in (("rank", "did you mean --nic rank?\n"), ("splt", "did you mean split?\n"), ("q", "first)\n")):
        with pytest.raises(SystemExit):
            parser.parse_args(["--rails", choice])
        # Python 3.12 and newer print choices without quotes.
        assert capsys.readouterr().err.replace("'", "").endswith(end)


def test_a_fabric_after_the_traffic_is_recognised() -> None:
    fabric = str(FABRICS / "testbed44" / "ibdiagnet.lst")
    with pytest.raises(UsageError, match=r"found \.\.\. profile\.otf2 .*ibdiagnet\.lst"):
        split_names(["profile.otf2", fabric])
    with pytest.raises(UsageError, match=r"expected ... xgft:2:4,4:1,2 profile.otf2"):
        split_names(["profile.otf2", "xgft:2:4,4:1,2"])
    assert split_names([fabric, str(Path("profile.otf2"))]) == ((fabric,), ("profile.otf2",))
