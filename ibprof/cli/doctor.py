# SPDX-License-Identifier: Apache-2.0
"""`ibprof doctor`: say whether a job would be recorded here, and what to change if not."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

from ibprof.cli.command import run_command
from ibprof.errors import InconsistentError
from ibprof.text.quantities import printable

EXAMPLES = """\
examples:
  ibprof doctor && ibprof run -- mpirun ./app
  ibprof doctor -- mpirun -n 16 ./app
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof doctor`."""
    return run_command("ibprof doctor", _examine, argv)


def _examine(argv: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog="ibprof doctor",
        usage="ibprof doctor [--json] [-- CMD]",
        description="Say whether a job would be recorded here: which MPI, what its messages go through, where they are "
        "seen and what is not, whether CMD can be preloaded, limits, ports, and the folder to record in. A process is "
        "recorded on trial. Status 5 when a job would not be recorded.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--json", action="store_true", help="for programs: what was found, and whether a job is recorded"
    )
    parser.add_argument(
        "command", metavar="CMD", nargs=argparse.REMAINDER, help="the command of a job, which is not run"
    )
    wanted = parser.parse_args(argv)
    command = wanted.command[1:] if wanted.command[:1] == ["--"] else wanted.command

    from ibprof.doctor.examination import examine  # noqa: PLC0415  (--help must come at once)

    findings = list(examine(os.environ, command))
    good = all(finding.good for finding in findings)
    if wanted.json:
        json.dump({"would_record": good, "findings": [asdict(finding) for finding in findings]}, sys.stdout, indent=2)
        print()
    else:
        for finding in findings:
            print(f"{'ok ' if finding.good else 'BAD'}  {finding.about:9}  {printable(finding.text)}")
    return 0 if good else InconsistentError.status
