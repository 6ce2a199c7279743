# SPDX-License-Identifier: Apache-2.0
"""`ibprof demo`: the whole chain on this machine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ibprof.cli.command import run_command
from ibprof.cli.parsers import make_parser
from ibprof_converter.analysis.demo_chain import RANKS, run_demo


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof demo`."""
    return run_command("ibprof demo", _demo, argv)


def _demo(argv: Sequence[str] | None) -> None:
    folder: Path = _parser().parse_args(argv).folder
    outcome = run_demo(folder, lambda line: print(line, file=sys.stderr, flush=True))
    width = max(len(str(path)) for path in outcome.files)
    for path, meaning in outcome.files.items():
        print(f"{path!s:{width}}  {meaning}")
    print("", *outcome.sentences, outcome.page, sep="\n")


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        "ibprof demo",
        f"Record a small MPI program of {RANKS} ranks on this machine, put its ranks on the hosts of a "
        "fat-tree that comes with ibprof, in an order that loads one uplink. Find that, and a better order. Leave the "
        "profile, the link loads, a picture, and a report before and after.",
        "example:  ibprof demo /tmp/demo",
    )
    parser.add_argument(
        "folder",
        metavar="DIR",
        nargs="?",
        type=Path,
        default=Path("ibprof-demo"),
        help="where to leave everything (default: %(default)s)",
    )
    return parser
