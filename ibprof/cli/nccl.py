# SPDX-License-Identifier: Apache-2.0
"""`ibprof nccl`: print what proxies of NCCL or RCCL sent, by communicator, algorithm, channel and peer."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from ibprof.cli.command import command, make_parser, print_table
from ibprof.errors import InputError
from ibprof.text.quantities import format_bytes, format_seconds, printable

EXAMPLES = """\
examples:
  ibprof nccl profile.ibprof
  ibprof nccl profile.ibprof --csv flows.csv
"""


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        "ibprof nccl",
        "Print the traffic of NCCL's or RCCL's proxies, and waiting for the GPU, the receiver and the network. "
        "The table has a row for each communicator, function, algorithm, protocol and sending rank. The CSV also has "
        "channels, peers and receives. Archives (profile.otf2) do not have these data.",
        EXAMPLES,
    )
    parser.add_argument("recording", metavar="RECORDING", type=Path, help="a recording: profile.ibprof")
    parser.add_argument("--csv", metavar="FILE", type=Path, help="write rows per channel and peer to FILE; - is stdout")
    parser.add_argument("--run", metavar="NAME", help="which run of a recording (default: the newest)")
    return parser


@command("ibprof nccl")
def main(argv: Sequence[str] | None) -> None:
    """Run `ibprof nccl`."""
    options = _parser().parse_args(argv)

    from ibprof.recording.folder_runs import choose_run, list_runs  # noqa: PLC0415  (late, so that --help is fast)
    from ibprof.recording.nccl_flows import COLUMNS, describe_waits, list_flows, sum_by_sender  # noqa: PLC0415

    flows = list_flows(choose_run(options.recording, list_runs(options.recording), options.run).files)
    if not flows:
        raise InputError(
            options.recording,
            None,
            "flows of NCCL",
            "none: NCCL did not load ibprof's plug-in, or sent no bytes to other hosts",
        )
    if options.csv:
        to_stdout = str(options.csv) == "-"
        with nullcontext(sys.stdout) if to_stdout else options.csv.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(COLUMNS)
            rows.writerows(flow.row() for flow in flows)
        return
    print_table(
        (
            "communicator",
            "ranks",
            "function",
            "algorithm",
            "protocol",
            "rank",
            "sent",
            "steps",
            "for GPU",
            "for peer",
            "for network",
        ),
        (
            (
                printable(each.communicator),
                str(each.ranks or "?"),
                printable(each.function),
                printable(each.algorithm),
                printable(each.protocol),
                str(each.rank),
                format_bytes(each.bytes),
                f"{each.steps:,}",
                *(format_seconds(seconds) for seconds in (each.gpu_wait_s, each.peer_wait_s, each.network_wait_s)),
            )
            for each in sum_by_sender(flows)
        ),
    )
    for sentence in describe_waits(flows):
        print(printable(sentence))
