# SPDX-License-Identifier: Apache-2.0
"""`ibprof completion`: print a script for a shell that completes ibprof's commands, options and files."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from typing import Any

from ibprof.cli.command import command, make_parser, read_parsers
from ibprof.errors import MissingToolError

NAME = "ibprof completion"

SHELLS = ("bash", "zsh", "fish", "tcsh")

EXAMPLES = """\
examples:
  ibprof completion bash > ~/.ibprof-completion && echo '. ~/.ibprof-completion' >> ~/.bashrc
  ibprof completion zsh > ~/.ibprof-completion && echo '. ~/.ibprof-completion' >> ~/.zshrc
"""

_WHERE_EVALUATED = "if [[ $zsh_eval_context[-1] == eval ]]; then\n"
_WHERE_READ = """\
if [[ $zsh_eval_context[-1] == (eval|file) ]]; then
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
"""
"""Replaces `_WHERE_EVALUATED` in shtab's zsh scripts, so that `.` can read the scripts too, and loads compinit."""

NO_SHTAB = "completion needs shtab: pip install 'ibprof[completion]'"

_FILES = frozenset(
    {
        *("FILE", "DIR", "LST", "PROFILE", "REC", "RECORDING", "TRAFFIC", "STUDY", "LIST", "DELAYS", "TOPOLOGY"),
        *("RESULTS", "REFERENCE", "INFERRED", "BEFORE", "AFTER"),
    }
)
"""An argument is a file if its metavar contains one of these words."""


def _list_parsers() -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of `ibprof` with all its commands, then the parser of each `ibprof-X`."""
    front = argparse.ArgumentParser(prog="ibprof")
    commands = front.add_subparsers()
    parsers = read_parsers()
    for name, parser in parsers.items():
        # Make a second parser for `ibprof X`: a parser has only one program name.
        commands.add_parser(name, parents=[parser], add_help=False, help=parser.description)
    yield front
    scripts = {point.name for point in entry_points(group="console_scripts")}
    yield from (parser for parser in parsers.values() if parser.prog in scripts)


@command(NAME)
def main(argv: Sequence[str] | None) -> None:
    """Run `ibprof completion`."""
    parser = make_parser(NAME, "Print a script that completes commands, options and files.", EXAMPLES)
    parser.add_argument("shell", choices=SHELLS, help="name of the shell")
    shell = parser.parse_args(argv).shell
    try:
        import shtab  # noqa: PLC0415  (optional)
    except ImportError:
        raise MissingToolError(NO_SHTAB) from None
    for each in _list_parsers():
        _mark_files(each, shtab.FILE)
        script = shtab.complete(each, shell)
        print(_mend_zsh(script) if shell == "zsh" else script)


def _mend_zsh(script: str) -> str:
    """Return shtab's zsh script, changed so that `.` can read the script, and so that each argument is completed."""
    script = re.sub(r'^  "\(\*\)::?', '  "*:', script, flags=re.MULTILINE)
    return script.replace("one_or_more='(*)'", "one_or_more='*:'").replace(_WHERE_EVALUATED, _WHERE_READ)


def _mark_files(parser: argparse.ArgumentParser, completed_as: Any) -> None:
    """Complete file names for each argument that is a file, also in subcommands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                _mark_files(each, completed_as)
        elif action.choices is None and action.nargs != 0 and _names_files(action):
            action.complete = completed_as  # type: ignore[attr-defined]


def _names_files(action: argparse.Action) -> bool:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return not _FILES.isdisjoint(re.findall(r"[A-Z]+", metavar))
