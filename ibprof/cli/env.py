# SPDX-License-Identifier: Apache-2.0
"""`ibprof env`: print the exports that make the bare line LD_PRELOAD=libibprof.so mpirun ./app work, on all hosts."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ibprof.cli.command import run_command
from ibprof.launch.exact_transports import describe_exact, exact_settings
from ibprof.launch.intranode import intranode_settings
from ibprof.launch.preload_settings import CARRIED, PRELOAD, extend_list, identify_launcher, list_variable, preload
from ibprof.native.installed_files import find_library

SEARCH_PATH = "LD_LIBRARY_PATH"

EXAMPLES = """\
example:
  eval "$(ibprof env)"
  LD_PRELOAD=libibprof.so mpirun ./app
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof env`."""
    return run_command("ibprof env", _print_exports, argv)


def carry_by_environment(environment: Mapping[str, str], library: Path) -> dict[str, str]:
    """Give the variables that make a launcher carry the library, by its bare name too, and its settings.

    Args:
        environment: of the shell that they are for.
        library: libibprof.so.
    """
    folders = [folder for folder in environment.get(SEARCH_PATH, "").split(":") if folder]
    exports = {SEARCH_PATH: ":".join([str(library.parent), *(one for one in folders if one != str(library.parent))])}
    # A name without a value in Open MPI's list makes mpirun warn; what is set to nothing means what is not set.
    exports |= {name: environment.get(name, "") for name in CARRIED if name != SEARCH_PATH}
    settings = intranode_settings(environment) | exact_settings(environment)
    exports |= settings
    variable = list_variable(identify_launcher("mpirun"), environment)
    exports[variable] = extend_list(environment.get(variable, ""), [*CARRIED, *settings])
    return exports


def with_library(environment: Mapping[str, str], library: Path) -> dict[str, str]:
    """Give an environment in which every program is preloaded, also those that a launcher in it starts elsewhere."""
    preloaded = {**environment, PRELOAD: preload(library, environment.get(PRELOAD, ""))}
    return preloaded | carry_by_environment(preloaded, library)


def _print_exports(argv: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(
        prog="ibprof env",
        description="Print exports for a shell, after which LD_PRELOAD=libibprof.so in front of a launcher is all that "
        "a job needs to be recorded: the bare name is found, and Open MPI carries it and IBPROF* to other hosts.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--shell", choices=("sh", "csh"), default="sh", help="whose syntax (default: %(default)s)")
    form = "export {}={}" if parser.parse_args(argv).shell == "sh" else "setenv {} {}"
    for sentence in describe_exact(os.environ):
        print(f"ibprof env: {sentence}", file=sys.stderr)
    for name, value in carry_by_environment(os.environ, find_library()).items():
        print(form.format(name, shlex.quote(value)) + ";")
