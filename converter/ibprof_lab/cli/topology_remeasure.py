# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology remeasure`: a few pairs again, and longer, once the topology is known."""

from __future__ import annotations

from pathlib import Path

from ibprof_converter.cli.arguments import count_in, type_of
from ibprof_converter.cli.subcommands import Subcommands, add_subcommand
from ibprof_lab.latency.measure.budgets import parse_budget
from ibprof_lab.latency.measure.joint_work import work_together
from ibprof_lab.topology.throughput.remeasurement import RemeasureOptions, remeasure

_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  mpirun ibprof-topology remeasure topology.json delays.nc --budget 20%
  ibprof-topology infer delays.nc -o better.json

Pairs that the topology does not explain come first, then a few that represent every link. Pairs of one round share no
switch. The lower value of a pair is kept.
"""


def add_remeasure(commands: Subcommands) -> None:
    """Add the command `remeasure`."""
    description = (
        "Measure again, with the topology known: outlying pairs, and a few of each class of paths (Bufe, section 2.5)."
    )
    summary = "few pairs again, longer, on all processes of an MPI job"
    parser = add_subcommand(commands, "remeasure", summary, _EXAMPLES, RemeasureOptions, _remeasure, description)
    add, count, budget = parser.add_argument, count_in(1, 9_999), type_of(parse_budget)
    add("topology", metavar="TOPOLOGY", type=Path, help="as JSON, of `ibprof-topology infer`")
    add("delays", metavar="DELAYS", type=Path, help="of ibprof-latency (.nc), which are read and written")
    add("--each", metavar="N", type=count, default=1, help="representatives of a link, each of other hosts (1)")
    add("--budget", metavar="BUDGET", type=budget, default=(1.0, None), help="of all pairs a share such as "
        "20%%, or a time such as 30s (default: no limit)")  # fmt: skip
    add("--repetitions", metavar="N", type=count, default=11, help="batches of a pair, three times as many (11)")
    add("--sequential", action="store_true", help="one pair at a time")


def _remeasure(options: RemeasureOptions) -> int:
    return work_together(lambda module: remeasure(module, options))
