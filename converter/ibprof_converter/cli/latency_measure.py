# SPDX-License-Identifier: Apache-2.0
"""`ibprof-latency measure`: started on every process of a job."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ibprof.errors import UsageError, quote_found
from ibprof_converter.cli.ranks import KILLED_BY, end_together
from ibprof_converter.latency.files.pair_files import read_pairs
from ibprof_converter.latency.measure.batch_samples import Sampling
from ibprof_converter.latency.measure.measurement_plan import MODES, BackgroundNoise, MeasurementPlan
from ibprof_converter.latency.measure.message_lengths import parse_lengths
from ibprof_converter.latency.measure.mpi_start import start_mpi
from ibprof_converter.latency.measure.progress_meter import show_seconds
from ibprof_converter.latency.measure.schedules import SCHEDULES, color_pairs
from ibprof_converter.latency.measure.session import Chooser, MeasurementOutcome, MeasurementSession

EXAMPLES = """\
examples:
  mpirun -n 64 ibprof-latency measure -o delays.nc
  mpirun -n 64 ibprof-latency measure --lengths 0,64,1K:1M:x2 --max-time 10m -o delays.nc
  mpirun -n 64 ibprof-latency measure --lengths 0,64,1K:1M:x2 --resume -o delays.nc
  mpirun -n 64 ibprof-latency measure --mode bandwidth --lengths 1M -o bandwidth.nc
  mpirun -n 64 ibprof-latency measure --schedule sequential --noise-processes 8 --noise-messages 4 \\
      --noise-length 64K -o noisy.nc
"""

_LONGEST_S = 1e9


def add_measure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.set_defaults(run=run_measure)
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", type=Path, required=True, help="delays as NetCDF-4, such as delays.nc")
    add("--lengths", metavar="LIST", default="0", help="bytes: 0,64,1K:1M:x2 or 1K:64K:1K (default: 0)")
    add("--mode", choices=MODES, default=MODES[0], help="what a pair does, as in network_tests2 (default: one_to_one)")
    add(
        "--schedule",
        choices=tuple(SCHEDULES),
        default="rounds",
        help="who measures at the same time: disjoint pairs, one pair, Bufe's halves, everybody (default: rounds)",
    )
    add("--repetitions", metavar="N", type=_count, default=11, help="batches of a pair and length (default: 11)")
    add("--batch-time", metavar="T", type=_seconds, default=1e-3, help="least time of a batch (default: 1ms)")
    add("--one-way", action="store_true", help="answer with empty messages, so that directions can differ")
    add("--window", metavar="N", type=_count, default=64, help="messages at once in --mode bandwidth (default: 64)")
    add(
        "--noise-processes",
        metavar="N",
        type=_number,
        default=0,
        help="others that exchange meanwhile, even (default: 0)",
    )
    add("--noise-messages", metavar="N", type=_count, default=1, help="of one burst of noise (default: 1)")
    add("--noise-length", metavar="BYTES", default="64K", help="of a message of noise (default: 64K)")
    add("--seed", metavar="N", type=_number, default=0, help="of what is drawn (default: 0)")
    add(
        "--again",
        metavar="BUDGET",
        type=parse_budget,
        default=(0.05, None),
        help="of doubtful pairs to measure again: a share such as 5%% (default) or a time",
    )
    add("--pairs", metavar="FILE", type=Path, help="measure these again and nothing else: sender,receiver a line")
    add("--resume", action="store_true", help="keep what FILE has, measure the rest")
    add("--max-time", metavar="T", type=_seconds, help="stop after it, such as 90s, 10m or 2h; --resume goes on")
    add("--save-every", metavar="T", type=_seconds, default=30.0, help="save what is measured so far (default: 30s)")
    add("--dry-run", action="store_true", help="only tell how long it would take")


def run_measure(arguments: argparse.Namespace) -> int:
    """Measure; the status is 128 + n where signal n ended it, with what was measured so far in the file."""
    plan = MeasurementPlan(
        lengths=parse_lengths(arguments.lengths),
        mode=arguments.mode,
        schedule=arguments.schedule,
        sampling=Sampling(arguments.repetitions, arguments.batch_time),
        one_way=arguments.one_way,
        window=arguments.window,
        noise=BackgroundNoise(
            arguments.noise_processes, arguments.noise_messages, _noise_length(arguments.noise_length)
        ),
        seed=arguments.seed,
        save_every_s=arguments.save_every,
        limit_s=arguments.max_time,
        again=arguments.again[0],
        again_s=arguments.again[1],
    )
    module = start_mpi()
    return end_together(module, lambda: _measure(module, plan, arguments))


def _measure(module: Any, plan: MeasurementPlan, arguments: argparse.Namespace) -> int:
    session = MeasurementSession(module, plan, arguments.output)
    plan.check(session.size)
    session.estimate()
    if arguments.dry_run:
        return 0
    outcome = session.measure(arguments.resume, _choose(arguments.pairs, plan) if arguments.pairs else None)
    conclude(session, outcome)
    return KILLED_BY + outcome.signal if outcome.signal else 0


def _choose(path: Path, plan: MeasurementPlan) -> Chooser:
    """Give what chooses the pairs of a file."""
    return lambda delays: color_pairs(read_pairs(path, delays.labels), plan.schedule == "sequential")


def conclude(session: MeasurementSession, outcome: MeasurementOutcome) -> None:
    """Say what was measured, on the first process."""
    delays = outcome.delays
    if delays is None:
        return
    found, all_pairs = int(delays.measured.sum()), len(delays.lengths) * session.size * (session.size - 1)
    took = show_seconds(float(delays.attributes["elapsed_s"]))
    if outcome.stopped:
        session.say(
            f"stopped: {session.path} has {found:,} of {all_pairs:,} delays; the same line with --resume goes on"
        )
    else:
        session.say(f"{session.path}: {found:,} delays in {took}")


# -- arguments


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"expected a whole number, found {quote_found(text)}")
    return int(text)


def _count(text: str) -> int:
    number = _number(text)
    if not 0 < number <= 1_000_000:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to 1000000, found {quote_found(text)}")
    return number


def _noise_length(text: str) -> int:
    lengths = parse_lengths(text)
    if len(lengths) != 1:
        raise UsageError(f"--noise-length: expected one length, found {quote_found(text)}")
    return int(lengths[0])


def _seconds(text: str) -> float:
    units: dict[str, float] = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "m": 60, "h": 3600, "": 1}
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = units.get(text.strip()[len(digits) :])
    try:
        seconds = float(digits) * unit if unit is not None else -1.0
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < _LONGEST_S:
        raise argparse.ArgumentTypeError(
            f"expected a time such as 500us, 1ms, 30s, 10m or 2h, found {quote_found(text)}"
        )
    return seconds


def parse_budget(text: str) -> tuple[float, float | None]:
    """Read a share of the pairs, `5%`, or a time, `30s`."""
    if text.endswith(("s", "m", "min", "h")):
        return 0.0, _seconds(text)
    number, scale = (text[:-1], 0.01) if text.endswith("%") else (text, 1.0)
    try:
        share = float(number) * scale
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(
            f"expected a share such as 5% or a time such as 30s, found {quote_found(text)}"
        )
    return share, None


Runner = Callable[[argparse.Namespace], int | None]
