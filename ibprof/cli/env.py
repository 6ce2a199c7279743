# SPDX-License-Identifier: Apache-2.0
"""`ibprof env`: print exports for a shell, so that LD_PRELOAD=libibprof.so mpirun ./app records on all hosts."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ibprof.cli.command import command, make_parser
from ibprof.launch.preload_settings import CARRIED, PRELOAD, extend_list, identify_launcher, list_variable, preload
from ibprof.launch.transport_settings import describe_exact, exact_settings, intranode_settings, nccl_settings
from ibprof.native.installed_files import NCCL_PROFILER, find_library

SEARCH_PATH = "LD_LIBRARY_PATH"

EXAMPLES = """\
example:
  eval "$(ibprof env)"
  LD_PRELOAD=libibprof.so mpirun ./app
"""


def carry_by_environment(environment: Mapping[str, str], library: Path) -> dict[str, str]:
    """Return variables by which programs find the library, and by which launchers pass settings to other hosts.

    Args:
        environment: environment of the user's shell.
    """
    folders = [folder for folder in environment.get(SEARCH_PATH, "").split(":") if folder]
    exports = {SEARCH_PATH: ":".join([str(library.parent), *(one for one in folders if one != str(library.parent))])}
    # mpirun warns about unset variables in Open MPI's list, so set each variable. ibprof ignores empty values.
    exports |= {name: environment.get(name, "") for name in CARRIED if name != SEARCH_PATH}
    settings = intranode_settings(environment) | exact_settings(environment)
    settings |= nccl_settings(environment, library.with_name(NCCL_PROFILER))
    exports |= settings
    variable = list_variable(identify_launcher("mpirun"), environment)
    exports[variable] = extend_list(environment.get(variable, ""), [*CARRIED, *settings])
    return exports


def with_library(environment: Mapping[str, str], library: Path) -> dict[str, str]:
    """Return an environment that preloads the library into all programs, also through launchers."""
    preloaded = {**environment, PRELOAD: preload(library, environment.get(PRELOAD, ""))}
    return preloaded | carry_by_environment(preloaded, library)


def _parse(argv: Sequence[str] | None) -> str:
    """Return the argument of --shell."""
    parser = make_parser(
        "ibprof env",
        "Print exports for a shell. With these exports, LD_PRELOAD=libibprof.so mpirun ./app records the job: "
        "LD_LIBRARY_PATH contains the library's folder, and Open MPI copies LD_PRELOAD and IBPROF* to other hosts.",
        EXAMPLES,
    )
    parser.add_argument(
        "--shell", choices=("sh", "csh"), default="sh", help="shell syntax of the exports (default: %(default)s)"
    )
    shell: str = parser.parse_args(argv).shell
    return shell


@command("ibprof env")
def main(argv: Sequence[str] | None) -> None:
    """Run `ibprof env`."""
    form = "export {}={}" if _parse(argv) == "sh" else "setenv {} {}"
    for sentence in describe_exact(os.environ):
        print(f"ibprof env: {sentence}", file=sys.stderr)
    for name, value in carry_by_environment(os.environ, find_library()).items():
        print(form.format(name, shlex.quote(value)) + ";")
