# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology`: topologies inferred from measured delays, where no dumps of the fabric are at hand."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ibprof.cli.command import run_command
from ibprof_converter.cli import (
    topology_compare,
    topology_infer,
    topology_regress,
    topology_remeasure,
    topology_throughput,
    topology_view,
)
from ibprof_converter.cli.ranks import run_on_ranks

NAME = "ibprof-topology"

_EXAMPLES = """\
examples:
  mpirun ibprof-latency measure -o delays.nc
  ibprof-topology infer delays.nc -o topology.lst -o topology.json --html topology.html
  mpirun ibprof-topology throughput topology.json -o topology.lst
  ibprof-layout topology.lst profile.otf2 -o links.csv
  ibprof-topology compare delays.nc plan.dot --fail
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-topology`."""
    return run_command(NAME, _run, argv)


def _run(argv: Sequence[str] | None) -> int | None:
    return run_on_ranks(_parser, argv)


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Infer hosts, switches and links from measured delays, without dumps of the fabric.",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    topology_infer.add_commands(commands, raw)
    topology_remeasure.add_remeasure(commands, raw)
    topology_throughput.add_throughput(commands, raw)
    topology_compare.add_compare(commands, raw)
    topology_regress.add_regress(commands, raw)
    topology_view.add_command(commands, raw)
    return parser
