# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology`: topologies inferred from measured delays, where no dumps of the fabric are at hand."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ibprof.cli.command import run_command
from ibprof.cli.parsers import make_parser
from ibprof_converter.cli.subcommands import add_subcommands
from ibprof_lab.cli.ranks import run_on_ranks
from ibprof_lab.cli.topology_compare import add_compare
from ibprof_lab.cli.topology_direct_links import add_direct_links_command
from ibprof_lab.cli.topology_infer import add_infer, add_join
from ibprof_lab.cli.topology_regress import add_regress
from ibprof_lab.cli.topology_remeasure import add_remeasure
from ibprof_lab.cli.topology_throughput import add_throughput
from ibprof_lab.cli.topology_view import add_view

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
    description = "Infer hosts, switches and links from measured delays, without dumps of the fabric."
    parser = make_parser(NAME, description, _EXAMPLES)
    commands = add_subcommands(parser)
    add_infer(commands)
    add_join(commands)
    add_remeasure(commands)
    add_throughput(commands)
    add_direct_links_command(commands)
    add_compare(commands)
    add_regress(commands)
    add_view(commands)
    return parser
