# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology remeasure`: a few pairs again, and longer, once the topology is known."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ibprof_converter.cli.arguments import count_in, fill_options, parse_budget
from ibprof_converter.cli.ranks import end_together
from ibprof_converter.latency.measure.mpi_start import start_mpi
from ibprof_converter.topology.throughput.remeasurement import RemeasureOptions, remeasure

_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  mpirun ibprof-topology remeasure topology.json delays.nc --budget 20%
  ibprof-topology infer delays.nc -o better.json

Pairs that the topology does not explain come first, then a few that represent every link. Pairs of one round share no
switch. The lower value of a pair is kept.
"""


def add_remeasure(commands: Any, raw: type[argparse.HelpFormatter]) -> None:
    """Add the command `remeasure`."""
    parser = commands.add_parser(
        "remeasure",
        help="few pairs again, longer, on all processes of an MPI job",
        description="Measure again, with the topology known: outlying pairs, and a few of each class of paths "
        "(Bufe, section 2.5).",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    parser.set_defaults(options=lambda arguments: fill_options(RemeasureOptions, arguments), run=_remeasure)
    add, count = parser.add_argument, count_in(1, 9_999)
    add("topology", metavar="TOPOLOGY", type=Path, help="as JSON, of `ibprof-topology infer`")
    add("delays", metavar="DELAYS", type=Path, help="of ibprof-latency (.nc), which are read and written")
    add("--each", metavar="N", type=count, default=1, help="representatives of a link, each of other hosts (1)")
    add("--budget", metavar="BUDGET", type=parse_budget, default=(1.0, None), help="of all pairs a share such as "
        "20%%, or a time such as 30s (default: no limit)")  # fmt: skip
    add("--repetitions", metavar="N", type=count, default=11, help="batches of a pair, three times as many (11)")
    add("--sequential", action="store_true", help="one pair at a time")


def _remeasure(options: RemeasureOptions) -> int:
    module = start_mpi()
    return end_together(module, lambda: remeasure(module, options))
