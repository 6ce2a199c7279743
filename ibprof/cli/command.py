# SPDX-License-Identifier: Apache-2.0
"""Shared parts of commands: entry points, parsers, exit statuses, output as tables and JSON, progress on stderr.

@command("ibprof-layout")
def main(argv: Sequence[str] | None) -> int | None:
    ...

Only `run_command` turns an error into a line on stderr and an exit status. All parsers have the same form of help and
messages; completions and manual pages read the parsers.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import os
import re
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from contextvars import ContextVar
from difflib import get_close_matches
from functools import wraps
from io import StringIO
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from ibprof.errors import UNEXPECTED, IbprofError, InputError, find_missing_extra
from ibprof.text.quantities import count_of, printable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from rich.console import Console

    from ibprof.profile.profile_rows import RowChoice

SHORT = 256
"""Work with fewer parts has no progress bar, because the work ends too soon."""


def print_pairs(pairs: Mapping[str, str]) -> None:
    """Print names and values; empty values are left out."""
    width = max(map(len, pairs))
    for name, value in pairs.items():
        if value:
            print(f"{name:{width}}  {printable(value)}")
    print()


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, with escapes for control characters: names in a profile are untrusted text."""
    lines = [tuple(map(printable, row)) for row in rows]
    if not lines:
        return
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    for line in (head, *lines):
        print("  ".join(f"{text:{width}}" for text, width in zip(line, widths, strict=True)).rstrip())
    print()


class TellProgress(Protocol):
    """Receives the number of finished parts, the number of all parts, and a new description of the work, if any."""

    def __call__(self, done: int, parts: int, doing: str | None = None) -> None:
        """Show the progress."""


@contextmanager
def show_progress(doing: str) -> Iterator[TellProgress]:
    """Show a progress bar for work in parts; yield the function that receives the number of finished parts."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console  # noqa: PLC0415  (is slow to import, and only needed on a terminal)
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, visible=False)

        def update(done: int, parts: int, doing: str | None = None) -> None:
            progress.update(task, completed=done, total=parts, visible=parts > SHORT, description=doing)

        yield update


T = TypeVar("T")

_PIPE_WIDTH = 140
"""Width of tables without a terminal, in columns, unless COLUMNS is set."""


def print_captured(show: Callable[[Console], None], pipe_width: int = _PIPE_WIDTH) -> None:
    """Print the output of `show` on a console, without the trailing blanks of rich's tables."""
    from rich.console import Console  # noqa: PLC0415  (is slow to import, and --json needs none of it)

    terminal = sys.stdout.isatty()
    width = None if terminal else shutil.get_terminal_size((pipe_width, 24)).columns
    console = Console(width=width, force_terminal=terminal, markup=False, emoji=False, highlight=False)
    with console.capture() as captured:
        show(console)
    for line in captured.get().splitlines():
        print(line.rstrip())


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, with escapes for control characters: names of files, hosts and regions are untrusted text."""
    for line in lines:
        print(printable(line))


def print_json(document: Any, indent: int | None = 2) -> None:
    """Print plain values as JSON."""
    json.dump(document, sys.stdout, indent=indent)
    print()


def print_result(document: Any, lines: Iterable[str], as_json: bool, indent: int = 2) -> None:
    """Print a result as JSON, or as lines."""
    if as_json:
        print_json(document, indent)
    else:
        print_lines(lines)


def print_document(
    document: T, show: Callable[[Console, T], None], as_json: bool, indent: int = 2, pipe_width: int = _PIPE_WIDTH
) -> None:
    """Print a result as JSON, or as tables that `show` prints on a console."""
    if as_json:
        print_json(document, indent)
    else:
        print_captured(lambda console: show(console, document), pipe_width)


def print_warnings(name: str, sentences: Iterable[str]) -> None:
    """Print sentences about the limits of a result on stderr, because stdout contains only the result."""
    for sentence in sentences:
        print(f"{name}: {printable(sentence)}", file=sys.stderr)


@contextmanager
def show_stages() -> Iterator[Callable[[str], None]]:
    """Show the running stage on a terminal; yield a function to call with the text of each new stage."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415  (is slow to import, and most runs have no terminal)

    with Console(stderr=True).status("") as status:
        yield status.update


_KILLED_BY = 128
"""A shell reports this number plus N as exit status of a command that signal N killed."""


GROUP = "ibprof.commands"
"""Entry point group of commands; other packages can add commands."""


_INVALID_CHOICE = re.compile(r"argument ([^:]+): invalid choice: '([^']*)' \(choose from ")

_MISSPELT = 0.8
"""Minimum similarity, from 0 to 1, between an unknown option and the option that a hint proposes."""

_NAMED = 3
"""Maximum number of commands that a hint names."""

_GARBAGE_THRESHOLD = 100_000
"""Number of new objects after which Python's garbage collector searches for cycles."""

_is_reading: ContextVar[bool] = ContextVar("_is_reading", default=False)


def find_commands() -> dict[str, EntryPoint]:
    """Return all installed commands, by name."""
    from importlib.metadata import entry_points  # noqa: PLC0415  (takes a sixth of the time of `import numpy`)

    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def command(name: str) -> Callable[[Callable[[Sequence[str] | None], int | None]], Callable[..., int]]:
    """Return a decorator that turns a command's body into an entry point, which calls the body by `run_command`."""

    def wrap(body: Callable[[Sequence[str] | None], int | None]) -> Callable[..., int]:
        return wraps(body)(lambda argv=None: run_command(name, body, argv))

    return wrap


def run_command(
    name: str, body: Callable[[Sequence[str] | None], int | None], argv: Sequence[str] | None = None
) -> int:
    """Run the body of a command, and return its exit status.

    Args:
        name: the command's name as the user typed it. Every message begins with this name.
        body: function that takes the arguments (None: the process's arguments) and returns a status, or None for 0.
            `body` does not run if the first argument is `--version`.
        argv: the arguments after the command's name.

    Returns:
        The exit status of `body` or of an `IbprofError`. 3: the operating system refused a file, or an input exceeds
        the memory. 4: a package of a pip extra is missing. 130: interrupt. 141: the reader of stdout ended. 70, with a
        traceback: a bug in ibprof.
    """
    _replace_closed_streams()
    _allow_any_text()
    thresholds = gc.get_threshold()
    # With the default threshold, the collector would often search the many lasting objects of modules and parsed files.
    gc.set_threshold(_GARBAGE_THRESHOLD, *thresholds[1:])
    given = sys.argv[1:] if argv is None else argv
    try:
        status = _print_version(name) if given and given[0] == "--version" else body(argv)
        sys.stdout.flush()
    except IbprofError as error:
        _print_error(f"{name}: {error}")
        return error.status
    except BrokenPipeError:
        _forget_stdout()
        return _KILLED_BY + signal.SIGPIPE
    except KeyboardInterrupt:
        _print_error(f"{name}: interrupted")
        return _KILLED_BY + signal.SIGINT
    except (OSError, MemoryError) as error:
        _print_error(f"{name}: {_refusal(error)}")
        _forget_stdout()
        return InputError.status
    except Exception as error:
        return _report_unexpected(name, error)
    finally:
        gc.set_threshold(*thresholds)
    return status or 0


def _report_unexpected(name: str, error: Exception) -> int:
    """Print the name of a missing pip extra, or the traceback of a bug; return the exit status."""
    if missing := find_missing_extra(error):
        _print_error(f"{name}: {missing}")
        return missing.status
    _print_error(traceback.format_exc().rstrip())
    _print_error(f"{name}: this is a bug of ibprof; please report it with the lines above")
    return UNEXPECTED


def _print_version(name: str) -> int:
    from importlib.metadata import version  # noqa: PLC0415  (takes a sixth of the time of `import numpy`)

    print(f"{name} {version('ibprof')}")
    return 0


def _replace_closed_streams() -> None:
    """Replace streams that a shell closed (`>&-`): otherwise an opened file may get a closed stream's descriptor."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115  (stays open until exit)


def _refusal(error: OSError | MemoryError) -> str:
    if isinstance(error, MemoryError):
        return "the input exceeds this machine's memory" + (f" ({error})" if str(error) else "")
    where = f"{os.fspath(error.filename)!s}: " if error.filename is not None else ""
    return f"{where}{error.strerror or error}"


def _allow_any_text() -> None:
    """Print characters outside the terminal's encoding as escapes: an encoding error would end the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _print_error(message: str) -> None:
    # If stderr is closed too, the exit status is the only report.
    try:
        print(message, file=sys.stderr, flush=True)
    except OSError:
        return


def _forget_stdout() -> None:
    """Redirect stdout to /dev/null after a failed write, so that the interpreter's flush at exit does not fail too."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


class _Parser(BaseException):
    """Ends a command before its parser reads arguments. Not a subclass of `Exception`, which commands may catch."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


class _LongHelp(argparse.Action):
    """Action that prints a parser's long help, and ends the command."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """Print the help and exit with status 0."""
        assert isinstance(parser, CommandParser)
        print(parser.format_long_help(), end="")
        parser.exit()


class CommandParser(argparse.ArgumentParser):
    """Parser with a short and a long help. Messages about an unknown option or choice contain a hint.

    Args:
        shown: options that `--help` shows; empty for all options. `--help-all` shows all options.
        details: text that `--help-all` adds after the examples.
        named: arguments of `argparse.ArgumentParser`.
    """

    def __init__(self, *, shown: Sequence[str] = (), details: str = "", **named: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **named)
        self.shown = shown
        self.details = details
        self.former: dict[str, str] = {}
        if shown or details:
            self.add_argument(
                "--help-all",
                action=_LongHelp,
                nargs=0,
                default=argparse.SUPPRESS,
                help="show the rare options too, and exit",
            )

    def format_help(self) -> str:
        """Return the help with the usual options, and the number of other options."""
        if not self.shown:
            return super().format_help()
        always = {"-h", "--help-all", *self.shown}
        rare = [each for each in self._actions if each.option_strings and not always & {*each.option_strings}]
        helps = [each.help for each in rare]
        for each in rare:
            each.help = argparse.SUPPRESS
        try:
            text = super().format_help()
        finally:
            for each, words in zip(rare, helps, strict=True):
                each.help = words
        more = "forms of inputs, and " if self.details else ""
        return f"{text.rstrip()}\n\n{more}{count_of(len(rare), 'more option')}: {self.prog} --help-all\n"

    def format_long_help(self) -> str:
        """Return the help with all options and details."""
        text = super().format_help()
        return f"{text.rstrip()}\n\n{self.details.rstrip()}\n" if self.details else text

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments; if the caller wants only the parser (`read_parser`), raise `_Parser` instead."""
        if _is_reading.get():
            raise _Parser(self)
        words = list(sys.argv[1:] if args is None else args)
        if words[:1] == ["--help-all"] and words[0] not in self._option_string_actions:
            words[0] = "--help"  # `--help` of this command already shows all options
        for place, word in enumerate(words[: words.index("--") if "--" in words else None]):
            option, *value = word.split("=", 1)
            if name := self.former.get(option):
                _print_error(f"{self.prog}: {option} is now {name}; the former spelling will be removed in 0.3.0")
                words[place] = "=".join((name, *value))
        return super().parse_known_args(words, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the usage, the message and a hint; exit with status 2."""
        _, found, unknown = message.partition("unrecognized arguments: ")
        word = unknown.partition(" ")[0].partition("=")[0]
        hint = ""
        if found and word.startswith("--"):
            hint = self._find_like_option(word)
        elif invalid := _INVALID_CHOICE.search(message):
            hint = self._find_like_choice(*invalid.groups())
        super().error(message + hint)

    def _find_like_option(self, word: str) -> str:
        """Return a hint: a similar option, or the commands that have this option."""
        own = list(self._option_string_actions)
        if misspelt := get_close_matches(word, own, 1, _MISSPELT):
            return f"; did you mean {misspelt[0]}?"
        if others := find_option(word):
            more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
            return f"; an option of {', '.join(others[:_NAMED])}{more}"
        alike = get_close_matches(word, own, 1)
        return f"; did you mean {alike[0]}?" if alike else ""

    def _find_like_choice(self, argument: str, word: str) -> str:
        """Return a hint: a similar choice, or the option that has this choice."""
        choices = {_name(action): [str(each) for each in action.choices or ()] for action in self._actions}
        alike = get_close_matches(word, choices.get(argument, ()), 1)
        others = [f"{name} {word}" for name, each in choices.items() if word in each and name.startswith("--")]
        return f"; did you mean {(alike or others)[0]}?" if alike or others else ""


def _name(action: argparse.Action) -> str:
    """Return the name of an argument in messages."""
    return "/".join(action.option_strings) or str(action.metavar or action.dest)


def make_parser(
    name: str,
    description: str,
    examples: str,
    usage: str | None = None,
    shown: Sequence[str] = (),
    details: str = "",
) -> argparse.ArgumentParser:
    """Return the parser of a command; its help shows the examples unchanged. See also `CommandParser`."""
    return CommandParser(prog=name, usage=usage, description=description, epilog=examples, shown=shown, details=details)


def rename_option(parser: argparse.ArgumentParser, former: str, name: str) -> None:
    """Accept the former spelling of an option too, with a warning."""
    assert isinstance(parser, CommandParser)
    parser.former[former] = name


def read_parser(main: Callable[[Sequence[str]], int]) -> argparse.ArgumentParser | None:
    """Return the parser of a command without running the command; None if this parser is no `CommandParser`."""
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
    """Return the names of commands that have an option, such as `ibprof run`. This imports every command."""
    found = []
    for point in find_commands().values():
        try:
            parser = read_parser(point.load())
        except ImportError:  # skip another package's command that cannot be imported: the user did not type it
            continue
        found += [each.prog for each in with_subcommands(parser) if option in each._option_string_actions]
    return found


def with_subcommands(parser: argparse.ArgumentParser | None) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser, and the parsers of all its subcommands."""
    if parser is None:
        return
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subcommand in dict.fromkeys(action.choices.values()):
                yield from with_subcommands(subcommand)


def add_row_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --operation, --region and --site."""
    parser.add_argument("--operation", metavar="OP", help="only this MPI operation, such as ALLTOALL")
    parser.add_argument("--region", metavar="NAME", help="only this region")
    parser.add_argument("--site", metavar="FILE:LINE", help="only calls of this line, if sites were recorded")


def row_options(arguments: argparse.Namespace) -> RowChoice:
    """Return the operation, region and site that the arguments choose."""
    from ibprof.profile.profile_rows import RowChoice  # noqa: PLC0415  (late, so that --help is fast)

    return RowChoice(arguments.operation, arguments.region, arguments.site)
