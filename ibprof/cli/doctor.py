# SPDX-License-Identifier: Apache-2.0
"""`ibprof doctor`: say whether a job would be recorded here, and what to change if not."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from ibprof.cli.command import run_command
from ibprof.doctor import examine
from ibprof.errors import InconsistentError

EXAMPLES = """\
example:
  ibprof doctor && ibprof run -- mpirun ./app
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof doctor`."""
    return run_command("ibprof doctor", _examine, argv)


def _examine(argv: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog="ibprof doctor",
        description="Say which MPI is found, whether the library loads, whether another of its name comes first, and "
        "whether a recording can be written. Status 5 when a job would not be recorded.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.parse_args(argv)
    findings = list(examine(os.environ))
    for finding in findings:
        print(f"{'ok ' if finding.good else 'BAD'}  {finding.about:8} {finding.text}")
    return 0 if all(finding.good for finding in findings) else InconsistentError.status
