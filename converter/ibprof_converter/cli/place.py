# SPDX-License-Identifier: Apache-2.0
"""`ibprof-place`: a better placement of the ranks, on this fabric with its real tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ibprof.cli.command import run_command
from ibprof.errors import UsageError
from ibprof.text.quantities import format_seconds
from ibprof_converter.analysis.load_options import FabricOptions
from ibprof_converter.analysis.output_files import STDOUT
from ibprof_converter.analysis.rank_placing import SEARCH_SECONDS, PlaceOptions, place_ranks
from ibprof_converter.analysis.routed_fabric import read_subnets
from ibprof_converter.cli.input_arguments import add_input_arguments, fabric_options, traffic_options
from ibprof_converter.cli.printing import print_captured, print_json, show_stages
from ibprof_converter.placement import launcher_files
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.traffic_data import RankTraffic
from ibprof_converter.traffic.traffic_reader import KINDS, read_traffic

NAME = "ibprof-place"

_EXAMPLE = f"""\
examples:
  ibprof-place ibdiagnet.lst profile.otf2 -o placement.csv
  ibprof-place rail1.lst rail2.lst profile.otf2 --hosts free.txt --rankfile ranks.txt --time 60
  ibprof-place ibdiagnet.lst profile.otf2 --hosts own --seed 3 --json

The same seed, time and input give the same placement, unless the clock cut the search short (it says so).

{KINDS}"""


@dataclass(frozen=True, slots=True)
class PlacementFiles:
    """Files to write for launchers; None for those not asked for."""

    output: Path | None
    rankfile: Path | None
    hostfile: Path | None
    mpich_hosts: Path | None
    host_a_rank: Path | None


@dataclass(frozen=True, slots=True)
class PlaceCommandOptions:
    """Inputs of `ibprof-place`, how it searches, and its outputs."""

    fabric: FabricOptions
    traffic: str
    search: PlaceOptions
    files: PlacementFiles
    as_json: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-place`."""
    return run_command(NAME, _place, argv)


def _place(argv: Sequence[str] | None) -> None:
    options = _place_options(_parser().parse_intermixed_args(argv))
    with show_stages() as progress:
        subnets = read_subnets(options.fabric, progress)
        progress("reading the traffic")
        fabrics = [subnet.fabric for subnet in subnets]
        hosts = find_hosts(fabrics, options.fabric.host_names)
        demand = read_traffic(options.traffic, hosts, fabrics)
    if not isinstance(demand, RankTraffic):
        raise UsageError(f"{options.traffic}: only a traffic between ranks can be placed anew")
    with _show_search() as progress_of_search:
        comparison = place_ranks(subnets, hosts, demand, options.search, progress_of_search)
    _write_files(options.files, comparison.hosts)
    if options.as_json:
        print_json(comparison.as_json())
    elif options.files.output != STDOUT:
        from ibprof_converter.placement.placement_table import print_placements  # noqa: PLC0415  (rich is slow to import)

        print_captured(lambda console: print_placements(console, comparison))


def _place_options(arguments: argparse.Namespace) -> PlaceCommandOptions:
    traffic = traffic_options(arguments)
    if len(traffic.names) > 1 or len(traffic.placements) > 1:
        raise UsageError("one job is placed at a time: expected one TRAFFIC, with at most one --placement")
    fabric = fabric_options(arguments)
    if arguments.json and arguments.output == STDOUT:
        raise UsageError("-o - and --json: both go to stdout")
    search = PlaceOptions(
        placement=traffic.placements[0] if traffic.placements else None,
        rails=arguments.rails,
        hosts=arguments.hosts,
        slots=arguments.slots,
        seed=arguments.seed,
        seconds=arguments.time,
    )
    search.check()
    files = PlacementFiles(
        arguments.output, arguments.rankfile, arguments.hostfile, arguments.mpich_hosts, arguments.host_a_rank
    )
    return PlaceCommandOptions(fabric, traffic.names[0], search, files, arguments.json)


@contextmanager
def _show_search() -> Iterator[Callable[[float, float], None]]:
    if not sys.stderr.isatty():
        yield lambda _share, _best: None
        return
    from rich.console import Console  # noqa: PLC0415  (only who watches waits for it)
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("searching", total=1.0)

        def show(share: float, best: float) -> None:
            bar.update(task, completed=share, description=f"searching; busiest link {format_seconds(best)}")

        yield show


def _write_files(files: PlacementFiles, hosts: tuple[str, ...]) -> None:
    outputs = (
        (files.output, launcher_files.placement_csv),
        (files.rankfile, launcher_files.open_mpi_rankfile),
        (files.hostfile, launcher_files.open_mpi_hostfile),
        (files.host_a_rank, launcher_files.host_per_rank),
        (files.mpich_hosts, lambda names: launcher_files.mpich_hosts(names) + "\n"),
    )
    for path, write in outputs:
        if path == Path("-"):
            sys.stdout.write(write(hosts))
        elif path is not None:
            path.write_text(write(hosts), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Find a placement of the ranks that loads the busiest link between switches less, and compare it "
        "with others. Both rails count at once; a host takes one rank unless --slots says more.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_input_arguments(parser, fabric_needed=True)
    what = parser.add_argument_group("what to choose from")
    what.add_argument(
        "--hosts",
        metavar="FILE",
        help="hosts to choose from: one a line, with slots=N or :N, a PBS node file or a Slurm list as node[01-16]; "
        "`own`: those that the ranks are on (default: all)",
    )
    what.add_argument("--slots", metavar="N", type=int, help="ranks that a host takes (default: 1)")
    what.add_argument("--seed", metavar="S", type=int, default=1, help="of the random choices (default: 1)")
    what.add_argument(
        "--time",
        metavar="SECONDS",
        type=float,
        default=SEARCH_SECONDS,
        help="that the search may take: they set its work, which an idle core does in a tenth to a fifth of them "
        f"(default: {SEARCH_SECONDS:g})",
    )
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument("-o", "--output", metavar="FILE", type=Path, help="placement.csv: rank,host")
    outputs.add_argument("--rankfile", metavar="FILE", type=Path, help="for Open MPI: mpirun --rankfile FILE")
    outputs.add_argument(
        "--hostfile", metavar="FILE", type=Path, help="for Open MPI, with the rank file: mpirun --hostfile FILE"
    )
    outputs.add_argument("--mpich-hosts", metavar="FILE", type=Path, help="for MPICH: mpiexec -hosts $(cat FILE)")
    outputs.add_argument(
        "--host-a-rank",
        metavar="FILE",
        type=Path,
        help="for Slurm: SLURM_HOSTFILE=FILE srun --distribution=arbitrary; for Open MPI: --map-by seq",
    )
    outputs.add_argument("--json", action="store_true", help="the comparison for programs, on stdout")
    return parser
