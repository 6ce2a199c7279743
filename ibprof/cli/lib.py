# SPDX-License-Identifier: Apache-2.0
"""`ibprof lib`: print the path of libibprof.so, the compiler's options for ibprof.h, or the source for Slurm."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence

from ibprof.cli.command import command, make_parser
from ibprof.native.installed_files import find_include, find_library, find_nccl_profiler, find_spank_source

EXAMPLES = """\
examples:
  LD_PRELOAD=$(ibprof lib) mpirun -n 4 ./app
  mpicc $(ibprof lib --cflags) app.c
  NCCL_PROFILER_PLUGIN=$(ibprof lib --nccl-profiler) torchrun train.py
  cc -O2 -shared -fPIC -o ibprof.so $(ibprof lib --spank)    # Slurm's plug-in
"""


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        "ibprof lib",
        "Print the path of libibprof.so.",
        EXAMPLES,
    )
    parser.add_argument("--cflags", action="store_true", help="instead, print the options to compile with ibprof.h")
    parser.add_argument("--libs", action="store_true", help="instead, print the options to link libibprof.so")
    parser.add_argument(
        "--nccl-profiler", action="store_true", help="instead, print the path of the profiler plug-in of NCCL and RCCL"
    )
    parser.add_argument("--spank", action="store_true", help="instead, print the path of the source of Slurm's plug-in")
    return parser


@command("ibprof lib")
def main(argv: Sequence[str] | None) -> None:
    """Run `ibprof lib`."""
    options = _parser().parse_args(argv)
    words = [str(find_nccl_profiler())] if options.nccl_profiler else []
    words += [str(find_spank_source())] if options.spank else []
    if options.cflags:
        words.append(f"-I{find_include()}")
    if options.libs:
        folder = find_library().parent
        words += [f"-L{folder}", f"-Wl,-rpath,{folder}", "-libprof"]
    print(shlex.join(words or [str(find_library())]))
