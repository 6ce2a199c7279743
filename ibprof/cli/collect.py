# SPDX-License-Identifier: Apache-2.0
"""`ibprof collect`: make OTF2 archives of recordings, also of jobs that were killed."""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibprof.cli.command import command, make_parser, print_json, print_table, show_progress
from ibprof.errors import InputError, UsageError
from ibprof.text.quantities import printable

if TYPE_CHECKING:
    from ibprof.recording.run_listing import ListedRun

EXAMPLES = """\
examples:
  ibprof collect profile.ibprof -o profile.otf2
  ibprof collect /scratch/ann --list           all recordings below a folder: job, step, start, ranks, state
  ibprof collect . --run 6_3.0                 step 0 of task 3 of the batch job 6
  ibprof collect . --job 6                     a profile of each step of a job
  srun --ntasks-per-node=1 ibprof collect profile.ibprof --from-node    # after a kill, where REC is on NFS, Lustre, ...
"""


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        "ibprof collect",
        "Make an OTF2 archive of a recording: profile.otf2, with profile.def and profile/ next to it. The archive of a "
        "batch job is profile-JOB.STEP.otf2. If another run has an archive of this name, a number is added.",
        EXAMPLES,
    )
    parser.add_argument(
        "recordings",
        metavar="REC",
        type=Path,
        nargs="+",
        help="a recording's folder, one of its files, or a folder with recordings anywhere below it",
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="the archive (default: REC with .otf2)")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--run", metavar="NAME", help="name of a run, or a step of a batch job, such as 6.0 (default: the newest run)"
    )
    chosen.add_argument(
        "--job", metavar="JOB", help="all runs of a batch job, such as 6, or 6_3 for task 3 of an array"
    )
    chosen.add_argument("--all", action="store_true", help="all runs, one profile for each")
    chosen.add_argument("--list", action="store_true", help="make no archive, but list all runs")
    parser.add_argument("--json", action="store_true", help="print the list, or the written archives, as JSON")
    parser.add_argument(
        "--from-node",
        action="store_true",
        help="make no archive; copy into REC the counters that killed processes left on this node's own storage",
    )
    return parser


@command("ibprof collect")
def main(argv: Sequence[str] | None) -> None:
    """Run `ibprof collect`."""
    options = _parser().parse_args(argv)
    if options.from_node:
        for recording in options.recordings:
            _copy_from_node(recording)
        return

    # Import late: --help must be fast.
    from ibprof.archive.otf2_archive import SUFFIX, check_replaceable  # noqa: PLC0415
    from ibprof.recording.folder_runs import archive_path_of, describe_older_archive  # noqa: PLC0415
    from ibprof.recording.run_listing import choose_runs, find_recordings, list_found  # noqa: PLC0415

    if options.output and options.output.suffix == SUFFIX:
        check_replaceable(options.output)
    try:
        recordings = find_recordings(options.recordings)
        found = list_found(recordings, _warn)
    except InputError:
        older = [options.output] if options.output else [archive_path_of(path) for path in options.recordings]
        for sentence in describe_older_archive(older):
            print(f"ibprof collect: {sentence}", file=sys.stderr)
        raise
    if options.list:
        _print_list(found, as_json=options.json)
        return
    runs = choose_runs(found, options.run, options.job)
    if not (options.run or options.job or options.all):
        if len(recordings) > 1 and len(runs) > 1:
            _print_list(found, as_json=False)
            raise UsageError("there are several runs: choose with --run STEP or --job JOB, or use --all")
        runs = runs[-1:]
    if options.output and len(runs) > 1:
        raise UsageError(f"-o names one archive, and {len(runs)} runs were chosen: choose one with --run")
    written = [_write(run, options.output) for run in runs]
    if options.json:
        print_json(written)


def _warn(error: InputError) -> None:
    print(f"ibprof collect: left out: {error}", file=sys.stderr)


def _write(listed: ListedRun, output: Path | None) -> dict[str, Any]:
    """Write the archive of a run, and return a description of the archive for JSON."""
    from ibprof.archive.otf2_archive import claim_path, write_archive  # noqa: PLC0415  (slow to import)
    from ibprof.profile.missing_data import account_for_run, accounts_as_json, describe_gaps, describe_losses  # noqa: PLC0415
    from ibprof.recording.folder_runs import archive_path_of  # noqa: PLC0415
    from ibprof.recording.recording_reader import merge_run  # noqa: PLC0415

    run = merge_run(listed.recording, listed.run)
    path = archive_path_of(listed.recording, run.scheduler)
    archive = output or claim_path(path, run)
    with show_progress("writing ranks") as progress:
        write_archive(run, archive, progress)
    print(f"{archive}: {len(run.ranks)} of {run.world_size} ranks", file=sys.stderr)
    if archive != path and not output:
        print(f"  {path.name} exists already, with another run", file=sys.stderr)
    accounts, gaps = list(account_for_run(run)), list(describe_gaps(run))
    for sentence in (*describe_losses(accounts, complete=not gaps), *gaps):
        print(f"  {printable(sentence)}", file=sys.stderr)
    return {"archive": str(archive), "run": listed.run.name, "coverage": accounts_as_json(accounts), "not_seen": gaps}


def _print_list(found: Sequence[ListedRun], *, as_json: bool) -> None:
    rows = [run.as_json() for run in found]
    if as_json:
        print_json(rows)
        return
    columns = ("step", "start", "ranks", "state", "whole", "run", "recording")
    print_table(
        columns,
        (
            (
                row["step"] or "-",
                row["start"],
                f"{row['ranks_recorded']} of {row['world_size']}",
                row["state"],
                "yes" if row["whole"] else "no",
                row["run"],
                row["recording"],
            )
            for row in rows
        ),
    )


def _copy_from_node(recording: Path) -> None:
    from ibprof.recording.folder_runs import copy_from_node  # noqa: PLC0415  (needed seldom)

    copied, in_use = copy_from_node(recording)
    for path in in_use:
        print(f"{path}: not copied, since a process still writes it", file=sys.stderr)
    print(f"{recording}: {len(copied)} copied from {socket.gethostname()}", file=sys.stderr)
