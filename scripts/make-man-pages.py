# SPDX-License-Identifier: Apache-2.0
"""Write each command's manual page from the command's parser: `make man` or `make-man-pages.py FOLDER`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from argparse_manpage.manpage import Manpage

from ibprof.cli.command import CommandParser, read_parsers
from ibprof.cli.main import EXAMPLES, QUESTION

MANUAL = "ibprof"
_TEXT_LINE = re.compile(r"^\.(?=[a-z])", re.MULTILINE)
"""A `.` at the beginning of a text line, which roff would read as a request; the page's requests have capitals."""


def write_pages(folder: Path) -> None:
    """Write the page of `ibprof`, and a page for each command, such as ibprof-run.1 for `ibprof run`."""
    folder.mkdir(parents=True, exist_ok=True)
    parsers = read_parsers()
    (folder / "ibprof.1").write_text(make_page(make_front(parsers), "ibprof"), encoding="utf-8")
    for name, parser in parsers.items():
        page = f"ibprof-{name}"
        (folder / f"{page}.1").write_text(make_page(parser, page), encoding="utf-8")


def make_front(parsers: Mapping[str, argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Return a parser for the page that lists the commands."""
    front = argparse.ArgumentParser("ibprof", usage="ibprof COMMAND ...", description=QUESTION, epilog=EXAMPLES)
    front.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = front.add_argument_group("commands", "each command has a manual page, such as ibprof-run(1)")
    for name, parser in parsers.items():
        commands.add_argument(name, help=first_sentence(parser))
    return front


def first_sentence(parser: argparse.ArgumentParser) -> str:
    """Return the first sentence of a command's description, without its full stop."""
    return " ".join((parser.description or "").split()).partition(". ")[0].rstrip(".")


def make_page(parser: argparse.ArgumentParser, name: str) -> str:
    """Return one page for a command and its subcommands.

    Args:
        parser: parser of the command.
        name: name of the page.
    """
    if isinstance(parser, CommandParser) and parser.details:
        parser.epilog = f"{parser.epilog}\n{parser.details}"
    page = Manpage(parser)
    page.source, page.manual = f"ibprof {version('ibprof')}", MANUAL
    head, rest = str(page).split(".SH NAME\n", 1)
    _, rest = rest.split("\n", 1)
    head = head.replace(_escape(parser.prog).upper(), _escape(name).upper(), 1)
    summary = f"{_escape(name)} \\- {_escape(first_sentence(parser))}"
    return f"{head}.SH NAME\n{summary}\n" + _TEXT_LINE.sub(r"\\&.", rest)


def _escape(text: str) -> str:
    return text.replace("-", r"\-")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
