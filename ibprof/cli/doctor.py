# SPDX-License-Identifier: Apache-2.0
"""`ibprof doctor`: check whether a job would be recorded here, and what to change if not."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import asdict

from ibprof.cli.command import command, make_parser, print_json
from ibprof.errors import InconsistentError
from ibprof.text.quantities import printable

EXAMPLES = """\
examples:
  ibprof doctor && ibprof run -- mpirun ./app
  ibprof doctor -- mpirun -n 16 ./app
"""


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        "ibprof doctor",
        "Check whether a job would be recorded here: MPI, transports, recorded messages, preloading of CMD, limits, "
        "ports, and the output folder. One process is recorded as a trial. If CMD uses Open MPI, two ranks also try "
        "collectives, with CMD's settings. Exit status 5: a job would not be recorded.",
        EXAMPLES,
        usage="ibprof doctor [--json] [-- CMD]",
    )
    parser.add_argument("--json", action="store_true", help="print JSON: all findings, and whether a job is recorded")
    parser.add_argument("command", metavar="CMD", nargs=argparse.REMAINDER, help="the command of a job; it is not run")
    return parser


@command("ibprof doctor")
def main(argv: Sequence[str] | None) -> int:
    """Run `ibprof doctor`."""
    arguments = _parser().parse_args(argv)
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command

    from ibprof.doctor.examination import examine  # noqa: PLC0415  (late, so that --help is fast)

    findings = list(examine(os.environ, command))
    good = all(finding.good for finding in findings)
    if arguments.json:
        print_json({"would_record": good, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            print(f"{'ok ' if finding.good else 'BAD'}  {finding.about:9}  {printable(finding.text)}")
    return 0 if good else InconsistentError.status
