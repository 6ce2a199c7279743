# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology remeasure`: a few pairs again, and longer, now that the topology is known."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ibprof.errors import InconsistentError
from ibprof.text.quantities import printable
from ibprof_converter.cli.latency_measure import conclude, parse_budget
from ibprof_converter.cli.ranks import KILLED_BY, end_together
from ibprof_converter.latency.files.delay_files import read_delays
from ibprof_converter.latency.measure.batch_samples import Sampling
from ibprof_converter.latency.measure.measurement_plan import BackgroundNoise, MeasurementPlan
from ibprof_converter.latency.measure.mpi_start import start_mpi
from ibprof_converter.latency.measure.process_agreement import on_first
from ibprof_converter.latency.measure.schedules import Round
from ibprof_converter.latency.measure.session import MeasurementSession
from ibprof_converter.latency.model.delays import Delays
from ibprof_converter.topology.files.topology_json import read_topology
from ibprof_converter.topology.model.inferred_routes import InferredRoutes
from ibprof_converter.topology.model.inferred_topology import InferredTopology
from ibprof_converter.topology.throughput.representatives import (
    choose_representatives,
    find_unexplained_pairs,
    schedule_pairs,
)

_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  mpirun ibprof-topology remeasure topology.json delays.nc --budget 20%
  ibprof-topology infer delays.nc -o better.json

Pairs that the topology does not explain come first, then a few that stand for every link. No two that run at once share
a switch. Of two values of a pair the lower is kept.
"""

_NOISE = ("num_noise_proc", "num_noise_mes", "noise_mes_length")


def add_remeasure(commands: Any, raw: type[argparse.HelpFormatter]) -> None:
    """Add the command `remeasure`."""
    parser = commands.add_parser(
        "remeasure",
        help="few pairs again, longer, on all processes of an MPI job",
        description="Measure again, with the topology known: doubtful pairs, and a few of each class of paths "
        "(Bufe, section 2.5).",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    parser.set_defaults(run=_run)
    add = parser.add_argument
    add("topology", metavar="TOPOLOGY", type=Path, help="as JSON, of `ibprof-topology infer`")
    add("delays", metavar="DELAYS", type=Path, help="of ibprof-latency (.nc), which are read and written")
    add("--each", metavar="N", type=_count, default=1, help="times that other hosts stand for a link (1)")
    add("--budget", metavar="BUDGET", type=parse_budget, default=(1.0, None), help="of all pairs a share such as "
        "20%%, or a time such as 30s (default: no limit)")  # fmt: skip
    add("--repetitions", metavar="N", type=_count, default=11, help="batches of a pair, three times as many (11)")
    add("--sequential", action="store_true", help="one pair at a time")


def _run(arguments: argparse.Namespace) -> int:
    module = start_mpi()
    return end_together(module, lambda: _measure(module, arguments))


def _measure(module: Any, arguments: argparse.Namespace) -> int:
    comm = module.COMM_WORLD
    topology: InferredTopology = comm.bcast(on_first(comm, lambda: read_topology(arguments.topology)))
    known: tuple[Any, dict[str, Any]] = comm.bcast(on_first(comm, lambda: _look(arguments.delays)))
    lengths, attributes = known
    plan = MeasurementPlan(
        lengths=lengths,
        mode=str(attributes.get("mode", "one_to_one")),
        schedule=str(attributes.get("schedule", "rounds")),
        one_way=bool(attributes.get("one_way", 0)),
        window=int(attributes.get("window", 64)),
        noise=BackgroundNoise(
            *(int(attributes.get(name, 0)) for name in ("num_noise_proc", "num_noise_mes", "noise_mes_length"))
        ),
        sampling=Sampling(arguments.repetitions, float(attributes.get("batch_s", 1e-3))),
    )
    session = MeasurementSession(module, plan, arguments.delays)

    def choose(delays: Delays) -> Sequence[Round]:
        return _choose(topology, delays, arguments, session)

    outcome = session.measure(resume=True, choose=choose)
    conclude(session, outcome)
    return KILLED_BY + outcome.signal if outcome.signal else 0


def _look(path: Path) -> tuple[Any, dict[str, Any]]:
    delays = read_delays(path, ())
    return delays.lengths, dict(delays.attributes)


def _choose(
    topology: InferredTopology, delays: Delays, arguments: argparse.Namespace, session: MeasurementSession
) -> Sequence[Round]:
    """Choose pairs of the topology's hosts and give them as rounds of processes."""
    first: dict[str, int] = {}
    for process, names in enumerate(zip(delays.hosts, delays.labels, strict=True)):
        for name in names:
            first.setdefault(name, process)
    missing = [host for host in topology.hosts if host not in first]
    if missing:
        raise InconsistentError(
            f"{arguments.delays}: expected delays of the hosts of {arguments.topology}, found none of "
            f"{printable(', '.join(missing[:5]))}"
        )
    process_of = np.array([first[host] for host in topology.hosts], np.int64)
    routes = InferredRoutes(topology)
    doubtful = find_unexplained_pairs(topology, delays.matrix()[np.ix_(process_of, process_of)].astype(np.float64))
    wanted = list(dict.fromkeys([*doubtful, *choose_representatives(routes, arguments.each)]))
    chosen = wanted[: _count_pairs(arguments.budget, len(topology.hosts), session.plan)]
    session.say(
        f"{len(doubtful)} doubtful pairs and {len(wanted) - len(doubtful)} that stand for links; "
        f"{len(chosen)} of {len(topology.hosts) * (len(topology.hosts) - 1) // 2} pairs are measured again"
    )
    rounds = [[pair] for pair in chosen] if arguments.sequential else schedule_pairs(routes, chosen)
    return [process_of[np.array(pairs, np.int64)].astype(np.int32) for pairs in rounds]


def _count_pairs(budget: tuple[float, float | None], hosts: int, plan: MeasurementPlan) -> int:
    share, seconds = budget
    if seconds is None:
        return math.ceil(share * hosts * (hosts - 1) / 2)
    return int(seconds / plan.seconds_of_pair_again / max(len(plan.lengths), 1))


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:10]) < 10_000):
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text!r}")
    return int(text)
