# SPDX-License-Identifier: Apache-2.0
"""`ibprof matrix`: print the bytes between ranks, hosts or ports as CSV."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from ibprof.cli.command import add_row_arguments, command, make_parser

COLUMNS = ("src", "dst", "bytes", "messages")
PORT_COLUMNS = ("src_port", "dst_port")

EXAMPLES = """\
examples:
  ibprof matrix profile.otf2 --by rank -o matrix.csv
  ibprof matrix profile.otf2 --by host --operation ALLTOALL
  ibprof matrix profile.otf2 --by rank --site solver.c:212
  ibprof matrix profile.otf2 --by port
  ibprof matrix profile.otf2 --by rank --region app.c:120 --since-start
"""


@command("ibprof matrix")
def main(argv: Sequence[str] | None) -> None:
    """Run `ibprof matrix`."""
    options = _parser().parse_args(argv)

    from ibprof.load import load_profile  # noqa: PLC0415  (late, so that --help is fast)
    from ibprof.profile.communication_matrix import Selection, build_matrix  # noqa: PLC0415
    from ibprof.profile.missing_data import describe_run_losses  # noqa: PLC0415
    from ibprof.profile.profile_data import Kind  # noqa: PLC0415

    selection = Selection(
        operation=options.operation,
        region=options.region,
        site=options.site,
        since_start=options.since_start,
        kind=Kind[options.kind.upper()],
        received=options.direction == "received",
    )
    run = load_profile(options.profile, options.run)
    matrix = build_matrix(run, options.by, selection)
    for note in (*describe_run_losses(run), *matrix.notes):
        print(f"ibprof matrix: {note}", file=sys.stderr)
    output = options.output.open("w", newline="", encoding="utf-8") if options.output else nullcontext(sys.stdout)
    with output as file:
        rows = csv.writer(file, lineterminator="\n")
        if matrix.labels:
            label = dict(zip(matrix.names, matrix.labels, strict=True))
            rows.writerow(COLUMNS + PORT_COLUMNS)
            rows.writerows((*row, label[row[0]], label[row[1]]) for row in matrix.rows())
        else:
            rows.writerow(COLUMNS)
            file.writelines(matrix.text())


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        "ibprof matrix",
        "Print bytes and messages of each pair with traffic as CSV: src,dst,bytes,messages. With --by port, the "
        "columns src_port,dst_port follow: host, device and port number. Bytes are then those posted to queue pairs, "
        "if ibprof recorded these.",
        EXAMPLES,
    )
    parser.add_argument("profile", metavar="PROFILE", type=Path, help="a profile or a recording")
    parser.add_argument(
        "--by",
        choices=("rank", "host", "port"),
        default="rank",
        help="kind of sender and receiver (default: %(default)s)",
    )
    add_row_arguments(parser)
    parser.add_argument(
        "--since-start",
        action="store_true",
        help="with --region NAME: on each rank, add the bytes of regions whose last end is before the last end of NAME",
    )
    parser.add_argument(
        "--kind",
        choices=("user", "control"),
        default="user",
        help="user: the program's bytes; control: bytes of MPI's own messages (default: %(default)s)",
    )
    parser.add_argument(
        "--direction",
        choices=("sent", "received"),
        default="sent",
        help="sent: bytes counted by senders; received: by receivers, for a check (default: %(default)s)",
    )
    parser.add_argument("--run", metavar="NAME", help="which run of a recording (default: the newest)")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of stdout")
    return parser
