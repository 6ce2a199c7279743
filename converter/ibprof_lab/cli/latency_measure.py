# SPDX-License-Identifier: Apache-2.0
"""`ibprof-latency measure`: started on every process of a job."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from ibprof_converter.cli.arguments import count_in, fill_options, type_of
from ibprof_converter.cli.subcommands import Subcommands, add_subcommand
from ibprof_lab.latency.measure.batch_samples import Sampling
from ibprof_lab.latency.measure.budgets import parse_budget, parse_duration
from ibprof_lab.latency.measure.delay_measurement import MeasureOptions, measure_delays
from ibprof_lab.latency.measure.joint_work import work_together
from ibprof_lab.latency.measure.measurement_plan import MODES, BackgroundNoise, MeasurementPlan
from ibprof_lab.latency.measure.schedules import SCHEDULES
from ibprof_lab.latency.model.message_lengths import parse_length, parse_lengths
from ibprof_lab.topology.infer.pair_search import PairSearch

_EXAMPLES = """\
examples:
  mpirun -n 64 ibprof-latency measure -o delays.nc
  mpirun -n 64 ibprof-latency measure --lengths 0,64,1K:1M:x2 --max-time 10m -o delays.nc
  mpirun -n 64 ibprof-latency measure --lengths 0,64,1K:1M:x2 --resume -o delays.nc
  mpirun -n 1000 ibprof-latency measure --few-pairs -o delays.nc
  mpirun -n 64 ibprof-latency measure --mode bandwidth --lengths 1M -o bandwidth.nc
  mpirun -n 64 ibprof-latency measure --schedule sequential --noise-processes 8 --noise-messages 4 \\
      --noise-length 64K -o noisy.nc
"""

_count = count_in(1, 1_000_000)
_number = count_in(0)
_length = type_of(parse_length)
_lengths = type_of(parse_lengths)
_duration = type_of(parse_duration)
_budget = type_of(parse_budget)


def add_measure(commands: Subcommands) -> None:
    """Add the command `measure`."""
    summary = "measure, on all processes of an MPI job"
    parser = add_subcommand(commands, "measure", summary, _EXAMPLES, _build_options, _measure)
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", type=Path, required=True, help="delays as NetCDF-4, such as delays.nc")
    add(
        "--lengths",
        metavar="LIST",
        type=type_of(parse_lengths),
        default="0",
        help="bytes: 0,64,1K:1M:x2 or 1K:64K:1K (default: 0)",
    )
    add("--mode", choices=MODES, default=MODES[0], help="what a pair does, as in network_tests2 (default: one_to_one)")
    add("--schedule", choices=tuple(SCHEDULES), default="rounds", help="who measures at the same time: disjoint pairs, "
        "one pair, Bufe's halves, all processes (default: rounds)")  # fmt: skip
    add("--repetitions", metavar="N", type=_count, default=11, help="batches of a pair and length (default: 11)")
    add("--batch-time", metavar="T", type=_duration, default=1e-3, help="shortest time of a batch (default: 1ms)")
    add("--one-way", action="store_true", help="answer with empty messages, so that directions can differ")
    add("--window", metavar="N", type=_count, default=64, help="messages in flight in --mode bandwidth (default: 64)")
    add("--noise-processes", metavar="N", type=_number, default=0, help="others that exchange messages meanwhile, an "
        "even number (default: 0)")  # fmt: skip
    add("--noise-messages", metavar="N", type=_count, default=1, help="of one burst of noise (default: 1)")
    add("--noise-length", metavar="BYTES", type=_length, default="64K", help="of a message of noise (default: 64K)")
    add("--seed", metavar="N", type=_number, default=0, help="of random choices (default: 0)")
    add("--again", metavar="BUDGET", type=_budget, default=(0.05, None), help="of outlying pairs to measure "
        "again: a share such as 5%% (default) or a time")  # fmt: skip
    add("--pairs", metavar="FILE", type=Path, help="measure these again and nothing else: sender,receiver a line")
    add("--few-pairs", action="store_true", help="choose pairs by what was measured, one process of each host: enough "
        "for `ibprof-topology infer` where switches are nested; otherwise all are measured")  # fmt: skip
    add("--resume", action="store_true", help="keep what FILE has, measure the rest")
    add("--max-time", metavar="T", type=_duration, help="stop after it, such as 90s, 10m or 2h; --resume goes on")
    add("--save-every", metavar="T", type=_duration, default=30.0, help="save results so far (default: 30s)")
    add("--dry-run", action="store_true", help="only estimate how long it would take")


def _build_options(arguments: argparse.Namespace) -> MeasureOptions:
    plan = fill_options(
        MeasurementPlan,
        arguments,
        sampling=Sampling(arguments.repetitions, arguments.batch_time),
        noise=BackgroundNoise(arguments.noise_processes, arguments.noise_messages, arguments.noise_length),
        save_every_s=arguments.save_every,
        limit_s=arguments.max_time,
        again=arguments.again[0],
        again_s=arguments.again[1],
    )
    return fill_options(MeasureOptions, arguments, plan=plan)


def _measure(options: MeasureOptions) -> int:
    search = partial(PairSearch, seed=options.plan.seed)
    return work_together(lambda module: measure_delays(module, options, search))
