# SPDX-License-Identifier: Apache-2.0
"""`ibprof collect`: make an OTF2 archive of a recording, also of a job that was killed."""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from ibprof.cli.command import make_parser, run_command
from ibprof.errors import InputError

EXAMPLES = """\
examples:
  ibprof collect profile.ibprof -o profile.otf2
  srun --ntasks-per-node=1 ibprof collect profile.ibprof --from-node    # after a kill, where REC is on NFS, Lustre, ...
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof collect`."""
    return run_command("ibprof collect", _collect, argv)


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        "ibprof collect",
        "Make an OTF2 archive of a recording: profile.otf2, with profile.def and profile/ next to it.",
        EXAMPLES,
    )
    parser.add_argument("recording", metavar="REC", type=Path, help="the folder that a run left, or one file of it")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="the archive (default: REC with .otf2)",
    )
    parser.add_argument("--run", metavar="NAME", help="which run, if the folder has several (default: the newest)")
    parser.add_argument(
        "--from-node",
        action="store_true",
        help="make no archive, but copy into REC what killed processes left on the storage of this node, which "
        "no other node can read",
    )
    return parser


def _collect(argv: Sequence[str] | None) -> None:
    options = _parser().parse_args(argv)
    if options.from_node:
        _copy_from_node(options.recording)
        return

    # --help must come at once.
    from ibprof.archive.otf2_archive import SUFFIX, check_replaceable, find_free_path, write_archive  # noqa: PLC0415
    from ibprof.cli.terminal import show_progress  # noqa: PLC0415
    from ibprof.profile.gaps import describe_gaps  # noqa: PLC0415
    from ibprof.recording.folder_runs import archive_path_of, describe_older_archive  # noqa: PLC0415
    from ibprof.recording.recording_reader import read_recording  # noqa: PLC0415

    if options.output and options.output.suffix == SUFFIX:
        check_replaceable(options.output)
    output = options.output or find_free_path(archive_path_of(options.recording))
    try:
        run = read_recording(options.recording, options.run)
    except InputError:
        for sentence in describe_older_archive(output):
            print(f"ibprof collect: {sentence}", file=sys.stderr)
        raise
    with show_progress("writing ranks") as progress:
        write_archive(run, output, progress)
    print(f"{output}: {len(run.ranks)} of {run.world_size} ranks", file=sys.stderr)
    for sentence in describe_gaps(run):
        print(f"  {sentence}", file=sys.stderr)


def _copy_from_node(recording: Path) -> None:
    from ibprof.recording.folder_runs import copy_from_node  # noqa: PLC0415  (needed seldom)

    copied = copy_from_node(recording)
    for path in copied.in_use:
        print(f"{path}: not copied, since a process still writes it", file=sys.stderr)
    print(f"{recording}: {len(copied.files)} copied from {socket.gethostname()}", file=sys.stderr)
