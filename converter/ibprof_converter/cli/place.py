# SPDX-License-Identifier: Apache-2.0
"""`ibprof-place`: search for a better rank placement on a fabric, and write it in the formats of launchers."""

from __future__ import annotations

import argparse
import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path

from ibprof.cli.command import (
    command,
    make_parser,
    print_captured,
    print_json,
    print_lines,
    print_warnings,
    show_progress,
    show_stages,
)
from ibprof.errors import UsageError, quote_found
from ibprof.text.host_lists import join_hosts
from ibprof.text.quantities import format_seconds
from ibprof_converter.analysis.output_files import STDOUT, check_files, open_output
from ibprof_converter.choices import PATTERN_PREFIX, SEARCH_SECONDS, TRAFFIC_FORMS
from ibprof_converter.cli.arguments import call_with_options
from ibprof_converter.cli.input_arguments import (
    add_adaptive_argument,
    add_input_arguments,
    fabric_options,
    traffic_options,
)
from ibprof_converter.fabric.node_names import natural_key

NAME = "ibprof-place"

_STEPS = 1000
"""Number of steps of the progress bar."""

_CORES_LIMIT = 1 << 16

_EXAMPLE = """\
examples:
  ibprof-place ibdiagnet.lst profile.otf2 -o placement.csv
  ibprof-place rail1.lst rail2.lst profile.otf2 --hosts free.txt --rankfile ranks.txt --time 60
  ibprof-place ibdiagnet.lst profile.otf2 --hosts own --seed 3 --json
  ibprof-place ibdiagnet.lst profile-6.0.otf2 --for-sbatch next; sbatch $(cat next) job.sh
  ibprof-place ibdiagnet.lst --pattern nccl-ring+pipeline+moe-alltoall:tp=8,pp=4,dp=16,ep=8,hidden=8192 -o placement.csv

The same seed, time and input give the same placement, unless the time limit ends the search. The output then says so.
"""

_SHOWN = (
    "--pattern",
    "--placement",
    "--hosts",
    "--slots",
    "--time",
    "--output",
    "--rankfile",
    "--hostfile",
    "--mpich-hostfile",
    "--host-a-rank",
    "--for-sbatch",
    "--json",
)
"""Options in the short help."""


@dataclass(frozen=True, slots=True)
class PlacementFiles:
    """Paths of files to write. None: this file is not requested; `-`: stdout.

    Attributes:
        output: file for placement.csv.
        rankfile, hostfile: files for Open MPI.
        mpich_hosts: file with the value of option `-hosts` of hydra, MPICH's launcher.
        host_a_rank: file with one host per rank, for Slurm and Open MPI.
        mpich_hostfile: file for hydra's option `-f`.
        torchrun: script that starts torchrun on each host.
        for_sbatch: file with options of Slurm's `sbatch`; a second file, with suffix `.hosts`, has one host per rank.
        cores_per_rank: number of cores of each rank in the rank file.
    """

    output: Path | None = None
    rankfile: Path | None = None
    hostfile: Path | None = None
    mpich_hosts: Path | None = None
    host_a_rank: Path | None = None
    mpich_hostfile: Path | None = None
    torchrun: Path | None = None
    for_sbatch: Path | None = None
    cores_per_rank: int = 1

    def check(self) -> None:
        """Raise an error for an invalid number of cores, or for a path that options of `sbatch` cannot contain.

        Raises:
            UsageError: the number of cores is below 1 or too large, or the path is stdout or has blanks or commas.
        """
        if self.for_sbatch and (self.for_sbatch == STDOUT or re.search(r"[\s,]", str(self.for_sbatch.absolute()))):
            raise UsageError(f"--for-sbatch {self.for_sbatch}: expected a file in a path without blanks and commas")
        if not 1 <= self.cores_per_rank <= _CORES_LIMIT:
            raise UsageError(f"--cores-per-rank {self.cores_per_rank}: expected a number from 1 to {_CORES_LIMIT}")

    def by_option(self) -> Mapping[str, Path | None]:
        """Return a dict: option -> path of its file, or None."""
        names = [each.name for each in fields(self) if each.name != "cores_per_rank"]
        return {f"--{name.replace('_', '-')}": getattr(self, name) for name in names}


def write_placement(files: PlacementFiles, hosts: Sequence[str], leaves: int = 0) -> None:
    """Write the files.

    Args:
        hosts: host of each rank.
        leaves: number of leaf switches of the hosts; 0 if unknown.

    Raises:
        OSError: a file cannot be written; the error names the file.
        UsageError: `torchrun_script` or `sbatch_options` fails.
    """
    order = files.for_sbatch and files.for_sbatch.with_name(f"{files.for_sbatch.name}.hosts").absolute()
    outputs = (
        (files.output, placement_csv),
        (files.rankfile, lambda names: open_mpi_rankfile(names, files.cores_per_rank)),
        (files.hostfile, open_mpi_hostfile),
        (files.host_a_rank, host_per_rank),
        (files.mpich_hostfile, mpich_hostfile),
        (files.mpich_hosts, lambda names: mpich_hosts(names) + "\n"),
        (files.torchrun, torchrun_script),
        (files.for_sbatch, lambda names: sbatch_options(names, order, leaves)),
        (order, host_per_rank),
    )
    for path, write in outputs:
        if path is not None:
            with open_output(path) as file:
                file.write(write(hosts))


def placement_csv(hosts: Sequence[str]) -> str:
    """Return CSV with the columns `rank,host`, for the option `--placement`."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("rank", "host"), *enumerate(hosts)])
    return text.getvalue()


def open_mpi_rankfile(hosts: Sequence[str], cores: int = 1) -> str:
    """Return a rank file for `mpirun --rankfile`. On each host, each rank gets the next `cores` cores."""
    taken: dict[str, int] = {}
    lines = []
    for rank, host in enumerate(hosts):
        first = taken.get(host, 0)
        taken[host] = first + cores
        lines.append(f"rank {rank}={host} slot={first}" + (f"-{first + cores - 1}" if cores > 1 else "") + "\n")
    return "".join(lines)


def open_mpi_hostfile(hosts: Sequence[str]) -> str:
    """Return a hostfile for `mpirun --hostfile`; each host has a slot for each of its ranks."""
    return "".join(f"{host} slots={hosts.count(host)}\n" for host in dict.fromkeys(hosts))


def host_per_rank(hosts: Sequence[str]) -> str:
    """Return the host of each rank, one per line, for SLURM_HOSTFILE and Open MPI's `--map-by seq`."""
    return "".join(f"{host}\n" for host in hosts)


def torchrun_script(hosts: Sequence[str]) -> str:
    """Return a shell script that the user runs on each host; it starts torchrun with the host's `--node-rank`.

    Raises:
        UsageError: hosts have different numbers of ranks, a host's ranks are not consecutive, or a name is invalid.
    """
    runs = [(host, len(list(same))) for host, same in groupby(hosts)]
    names = [host for host, _ in runs]
    if len(set(names)) < len(names) or len({count for _, count in runs}) > 1:
        raise UsageError(
            "--torchrun: torchrun needs equal numbers of ranks on all hosts: use --slots N for hosts with N GPUs"
        )
    if odd := [name for name in names if not re.fullmatch(r"[\w.-]+", name, re.ASCII)]:
        raise UsageError(f"--torchrun: {quote_found(odd[0])} cannot be the name of a host")
    cases = "".join(f"{name}|{name}.*) node_rank={number} ;;\n" for number, name in enumerate(names))
    return (
        f"""#!/bin/sh
# Start on each host: srun -N{len(names)} --ntasks-per-node=1 sh FILE train.py ...
case "$(hostname)" in
{cases}*) echo "$(hostname) is not a host of this job" >&2; exit 1 ;;
esac
exec torchrun --nnodes={len(names)} --node-rank="$node_rank" --nproc-per-node={runs[0][1]} """
        f"""--master-addr={names[0]} --master-port="${{MASTER_PORT:-29500}}" "$@"
"""
    )


def sbatch_options(hosts: Sequence[str], order: Path | None, leaves: int) -> str:
    """Return options for `sbatch`. With these options, `srun` in the job starts each rank on its host.

    `srun` reads the order of ranks from SLURM_HOSTFILE, because Slurm ignores the order of nodes in a list. Without
    this variable `srun` fails with --distribution=arbitrary (Slurm 22.05).

    Args:
        hosts: host of each rank.
        order: path of a file with the host of each rank.
        leaves: number of leaf switches of the hosts; 0 if unknown.

    Raises:
        UsageError: a host's name cannot be in a node list of Slurm.
    """
    nodes = sorted(set(hosts), key=natural_key)
    if odd := [name for name in nodes if not re.fullmatch(r"[\w.-]+", name, re.ASCII)]:
        raise UsageError(f"--for-sbatch: {quote_found(odd[0])} cannot be a node of Slurm")
    words = [f"--nodes={len(nodes)}", f"--ntasks={len(hosts)}", f"--nodelist={join_hosts(nodes)}"]
    words += [f"--switches={leaves}"] if leaves else []
    return "\n".join([*words, "--distribution=arbitrary", f"--export=ALL,SLURM_HOSTFILE={order}", ""])


def mpich_hosts(hosts: Sequence[str]) -> str:
    """Return the value of hydra's option `-hosts`: HOST for one rank, HOST:N for N consecutive ranks."""
    runs = [(host, len(list(same))) for host, same in groupby(hosts)]
    return ",".join(host if count == 1 else f"{host}:{count}" for host, count in runs)


def mpich_hostfile(hosts: Sequence[str]) -> str:
    """Return the hosts for hydra's option `-f`, one HOST or HOST:N per line."""
    return "".join(f"{each}\n" for each in mpich_hosts(hosts).split(","))


@command(NAME)
def main(argv: Sequence[str] | None) -> None:
    """Run `ibprof-place`."""
    arguments = _parser().parse_intermixed_args(argv)
    # --help and invalid options do not need the analysis, which is slow to import.
    from ibprof.profile.missing_data import describe_losses  # noqa: PLC0415
    from ibprof_converter.analysis.rank_placing import PlaceOptions, place_ranks, read_ranks_to_place  # noqa: PLC0415
    from ibprof_converter.hotspots.coverage import describe_lost  # noqa: PLC0415
    from ibprof_converter.placement.candidates import describe_unrouted_candidates  # noqa: PLC0415
    from ibprof_converter.routing.route_choice import describe_routes  # noqa: PLC0415
    from ibprof_converter.traffic.interfaces import describe_interfaces  # noqa: PLC0415

    if arguments.pattern:
        arguments.inputs.append(f"{PATTERN_PREFIX}{arguments.pattern}")
    traffic = traffic_options(arguments)
    if len(traffic.names) > 1 or len(traffic.placements) > 1:
        raise UsageError("one job is placed at a time: expected one TRAFFIC, with at most one --placement")
    fabric = fabric_options(arguments)
    if arguments.json and arguments.output == STDOUT:
        raise UsageError("-o - and --json: both write to stdout; use one")
    options = call_with_options(PlaceOptions, arguments, placement=next(iter(traffic.placements), None))
    options.check()
    files = call_with_options(PlacementFiles, arguments)
    files.check()
    check_files((*fabric.files(), *traffic.files(), *options.files()), files.by_option())
    with show_stages() as progress:
        subnets, hosts, demand = read_ranks_to_place(fabric, traffic.names[0], progress, traffic.chosen)
    with show_progress("searching") as tell:

        def show(share: float, best: float) -> None:
            tell(round(share * _STEPS), _STEPS, f"searching; most loaded link {format_seconds(best)}")

        comparison = place_ranks(subnets, hosts, demand, options, show)
    lost = [*describe_lost(subnets, hosts), *describe_unrouted_candidates(comparison)]
    # `describe_lost` names hosts.
    accounts = [each for each in comparison.accounts if each.noun != "hosts" or not lost]
    routes = [
        *describe_interfaces([subnet.fabric for subnet in subnets]),
        *lost,
        *describe_losses(accounts, complete=not (lost or comparison.interfaces)),
        *filter(None, [describe_routes(subnets)]),
    ]
    leaf_of = dict(zip(hosts.name, hosts.leaf.tolist(), strict=True))
    write_placement(files, comparison.hosts, len({leaf_of[name] for name in comparison.hosts}))
    if arguments.json:
        print_json(comparison.as_json())
    elif files.output == STDOUT:
        print_warnings(NAME, routes)
    else:
        from ibprof_converter.placement.candidates import print_placements  # noqa: PLC0415  (rich is slow to import)

        print_lines(routes)
        print_captured(lambda console: print_placements(console, comparison))


def _parser() -> argparse.ArgumentParser:
    description = (
        "Find a rank placement with less load on the most loaded link, then on the most loaded link between switches, "
        "over all rails. Compare this placement with others. A host runs one rank, or at most --slots ranks."
    )
    parser = make_parser(NAME, description, _EXAMPLE, shown=_SHOWN, details=TRAFFIC_FORMS)
    add_input_arguments(parser, fabric_needed=True)
    add_adaptive_argument(parser)
    parser.add_argument(
        "--pattern",
        metavar="NAME:SIZES",
        help="in place of TRAFFIC: a step of a training job, such as nccl-ring+pipeline:tp=8,pp=4,dp=16. "
        "--help-all lists names and sizes",
    )
    what = parser.add_argument_group("choice of hosts, and search")
    what.add_argument(
        "--hosts",
        metavar="FILE",
        help="hosts to choose from: a file with HOST, HOST slots=N or HOST:N on each line, a PBS node file, or a Slurm "
        "list such as node[01-16]. `own`: the ranks' present hosts (default: all)",
    )
    what.add_argument(
        "--slots",
        metavar="N",
        type=int,
        help="largest number of ranks per host (default: 1; for a training job, gpus in SIZES)",
    )
    what.add_argument(
        "--divide-groups",
        action="store_true",
        help="let a tensor group of a training job use several hosts (default: a group stays on one host)",
    )
    what.add_argument("--seed", metavar="N", type=int, default=1, help="seed of random choices (default: 1)")
    what.add_argument(
        "--time",
        dest="seconds",
        metavar="SECONDS",
        type=float,
        help="time limit of the search; also sets the number of changes to try. On two idle cores, the search ends "
        f"earlier (default: {SEARCH_SECONDS:g}; above 1,024 ranks, in proportion to the ranks, up to 60)",
    )
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument("-o", "--output", metavar="FILE", type=Path, help="placement.csv: rank,host")
    outputs.add_argument("--rankfile", metavar="FILE", type=Path, help="for Open MPI: mpirun --rankfile FILE")
    outputs.add_argument(
        "--hostfile", metavar="FILE", type=Path, help="for Open MPI, with the rank file: mpirun --hostfile FILE"
    )
    outputs.add_argument(
        "--cores-per-rank",
        metavar="C",
        type=int,
        default=1,
        help="number of cores of each rank in the rank file, for ranks with threads (default: 1)",
    )
    outputs.add_argument("--mpich-hostfile", metavar="FILE", type=Path, help="for MPICH: mpiexec -f FILE")
    outputs.add_argument("--mpich-hosts", metavar="FILE", type=Path, help="for MPICH: mpiexec -hosts $(cat FILE)")
    outputs.add_argument(
        "--host-a-rank",
        metavar="FILE",
        type=Path,
        help="for Slurm: SLURM_HOSTFILE=FILE srun --distribution=arbitrary; for Open MPI: --map-by seq",
    )
    outputs.add_argument(
        "--for-sbatch",
        metavar="FILE",
        type=Path,
        help="for Slurm: sbatch $(cat FILE) job.sh; the order of the ranks goes to FILE.hosts",
    )
    outputs.add_argument(
        "--torchrun", metavar="FILE", type=Path, help="for PyTorch: a script to start on each host, `sh FILE train.py`"
    )
    outputs.add_argument("--json", action="store_true", help="print the comparison as JSON")
    return parser
