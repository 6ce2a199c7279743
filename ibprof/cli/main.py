# SPDX-License-Identifier: Apache-2.0
"""The command `ibprof`. This module finds `ibprof X` among the entry points of `GROUP`, and imports only this command.

Other packages can add commands as entry points of `GROUP`.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from ast import get_docstring, parse
from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import cast

from ibprof.cli.command import find_commands, run_command
from ibprof.errors import UsageError

QUESTION = "Which network links does this MPI job load, who loads them, and what should be changed?"

EXAMPLES = """\
examples:
  ibprof run -- mpirun -n 16 ./app         record a job; leaves profile.otf2
  ibprof info profile.otf2                 what was recorded
  ibprof-report ibdiagnet.lst profile.otf2 the most loaded links, and who loads them
  ibprof help COMMAND                      more on one command
"""

_GROUPS = {
    "most used": ("run", "report", "place", "view", "doctor"),
    "recordings and profiles": ("info", "calls", "matrix", "diff", "watch", "collect", "nccl", "site"),
    "fabrics": ("layout", "routes", "rings", "topology", "latency"),
    "predictions": ("sim", "scaling"),
    "setting up": ("demo", "env", "lib", "completion"),
}
"""Purpose -> commands, in the order of the help."""

_ALSO_CALLED = {"compare": "diff", "record": "run", "profile": "run", "map": "layout", "summary": "info"}
"""Word that a user may type as a command -> the command for this purpose."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof`."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    if arguments and not arguments[0].startswith("-"):
        commands = find_commands()
        if arguments[0] in commands:
            command = cast(Callable[[Sequence[str]], int], commands[arguments[0]].load())
            return command(arguments[1:])
    return run_command("ibprof", _front, arguments)


def _front(argv: Sequence[str] | None) -> int:
    arguments = argv or ()
    if not arguments or arguments[0] in ("-h", "--help", "--help-all"):
        print(f"usage: ibprof COMMAND ...\n\n{QUESTION}\n\n{_list_commands()}{EXAMPLES}", end="")
        return 0 if arguments else UsageError.status
    known = find_commands()
    if arguments[0] in _ALSO_CALLED:
        raise UsageError(f"unknown command {arguments[0]!r}; did you mean `ibprof {_ALSO_CALLED[arguments[0]]}`?")
    if likely := get_close_matches(arguments[0].removeprefix("ibprof-"), known, 1):
        raise UsageError(f"unknown command {arguments[0]!r}; did you mean `ibprof {likely[0]}`?")
    raise UsageError(f"unknown command {arguments[0]!r}; expected one of {', '.join(known)}")


def list_groups(commands: Collection[str]) -> dict[str, list[str]]:
    """Return the commands by group, in the order of the help. Commands of other packages come last."""
    others = [name for name in commands if not any(name in names for names in _GROUPS.values())]
    groups = {title: [name for name in names if name in commands] for title, names in _GROUPS.items()}
    return {title: names for title, names in {**groups, "others": others}.items() if names}


def _list_commands() -> str:
    """Return the list of commands in the help: groups, and a summary of each command."""
    commands = find_commands()
    width = max(map(len, commands))
    text = ""
    for title, names in list_groups(commands).items():
        lines = [f"  {name:{width}}  {_describe(commands[name])}\n" for name in names]
        text += f"{title}:\n{''.join(lines)}\n"
    return text


def _describe(point: EntryPoint) -> str:
    """Return the first line of a command module's docstring, without the command's name; do not import the module."""
    try:
        spec = importlib.util.find_spec(point.module)
        text = get_docstring(parse(Path(spec.origin).read_text(encoding="utf-8"))) if spec and spec.origin else None
    except (ImportError, OSError, SyntaxError):
        text = None
    if not text:
        return ""
    return re.sub(r"^`[^`]*`:? ", "", text.partition("\n")[0]).rstrip(".")
