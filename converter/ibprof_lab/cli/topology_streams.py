# SPDX-License-Identifier: Apache-2.0
"""Arguments of commands that let pairs of a topology's hosts send at the same time."""

from __future__ import annotations

import argparse
from pathlib import Path

from ibprof.errors import UsageError
from ibprof_converter.cli.arguments import count_in, fill_options, number_in, type_of
from ibprof_lab.latency.measure.concurrent_streams import StreamSettings
from ibprof_lab.latency.model.message_lengths import parse_length
from ibprof_lab.topology.throughput.concurrent_measurement import ConcurrentOptions


def add_stream_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the topology, and how pairs send."""
    add, count = parser.add_argument, count_in(1, 999_999)
    add("topology", metavar="TOPOLOGY", type=Path, help="as JSON, of `ibprof-topology infer`")
    add("--length", metavar="BYTES", type=type_of(parse_length), default="256K", help="of a message (256K)")
    add("--window", metavar="N", type=count, default=16, help="messages in flight (16)")
    add("--seconds", metavar="S", type=number_in(0.001, 3600), default=0.5, help="of one measurement (0.5)")
    add("--repetitions", metavar="N", type=count, default=3, help="of each measurement; the best one counts (3)")
    add("--dry-run", action="store_true", help="only print what would be measured, and for how long")


def build_streams(arguments: argparse.Namespace) -> ConcurrentOptions:
    """Return how pairs send.

    Raises:
        UsageError: messages of no bytes.
    """
    if not arguments.length:
        raise UsageError("--length: expected bytes above 0, found 0")
    return fill_options(ConcurrentOptions, arguments, streams=fill_options(StreamSettings, arguments))
