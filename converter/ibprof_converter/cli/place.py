# SPDX-License-Identifier: Apache-2.0
"""`ibprof-place`: a better placement of the ranks, on this fabric with its real tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.cli.command import run_command
from ibprof.errors import UsageError
from ibprof.text.quantities import format_seconds
from ibprof_converter.cli.inputs import add_input_arguments, read_subnets, show_stages, split_inputs
from ibprof_converter.cli.printing import print_captured, print_json
from ibprof_converter.placement import free_hosts
from ibprof_converter.placement import launcher_files as launchers
from ibprof_converter.placement.candidates import CandidateRow, CandidateTimes, PlacementComparison
from ibprof_converter.placement.lower_bound import bound_max_seconds
from ibprof_converter.placement.placement_problem import PlacementProblem, SlotOfRank, find_neighbours
from ibprof_converter.placement.slots import RankSlots, assign_slots, slots_on_hosts
from ibprof_converter.placement.starting_placements import fabric_aware_slots, packed_slots, spread_slots
from ibprof_converter.placement.swap_search import search
from ibprof_converter.placement.switch_paths import SwitchPaths, find_switch_paths
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic import rail_policies as rails
from ibprof_converter.traffic.hosts import Hosts, find_hosts
from ibprof_converter.traffic.rank_placement import place_ranks_as_recorded, place_ranks_by_rule
from ibprof_converter.traffic.traffic_data import RankTraffic
from ibprof_converter.traffic.traffic_reader import KINDS, read_traffic

NAME = "ibprof-place"

_TIME_S = 10.0

_SEEDS = 1 << 32

_EXAMPLE = f"""\
examples:
  ibprof-place ibdiagnet.lst profile.otf2 -o placement.csv
  ibprof-place rail1.lst rail2.lst profile.otf2 --hosts free.txt --rankfile ranks.txt --time 60
  ibprof-place ibdiagnet.lst profile.otf2 --hosts own --seed 3 --json

The same seed, time and input give the same placement, unless the clock cut the search short (it says so).

{KINDS}"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-place`."""
    return run_command(NAME, _place, argv)


def _place(argv: Sequence[str] | None) -> None:
    arguments = _parser().parse_intermixed_args(argv)
    _check(arguments)
    with show_stages() as progress:
        subnets = read_subnets(split_inputs(arguments.inputs)[0], arguments, progress)
        progress("reading the traffic")
        fabrics = [subnet.fabric for subnet in subnets]
        hosts = find_hosts(fabrics, arguments.host_names)
        demand = read_traffic(arguments.inputs[-1], hosts, fabrics)
        if not isinstance(demand, RankTraffic):
            raise UsageError(f"{arguments.inputs[-1]}: only a traffic between ranks can be placed anew")
        progress("following the tables")
        given = _given_hosts(arguments, demand, hosts, subnets)
        slots, notes = _find_slots(arguments, hosts, given, demand.ranks)
        problem = _make_problem(demand, arguments.rails, slots, subnets)
    comparison = _compare(arguments, problem, subnets, _Given(given, hosts, demand), notes)
    _write_files(arguments, comparison.hosts)
    if arguments.json:
        print_json(comparison.as_json())
    elif arguments.output != Path("-"):
        from ibprof_converter.placement.placement_table import print_placements  # noqa: PLC0415  (rich is slow to import)

        print_captured(lambda console: print_placements(console, comparison))


def _check(arguments: argparse.Namespace) -> None:
    listings, traffics = split_inputs(arguments.inputs)
    if len(traffics) > 1 or len(arguments.placement or ()) > 1:
        raise UsageError("one job is placed at a time: expected one TRAFFIC, with at most one --placement")
    if not listings:
        raise UsageError("expected at least one LST, then TRAFFIC; see --help")
    if arguments.json and arguments.output == Path("-"):
        raise UsageError("-o - and --json: both go to stdout")
    free_hosts.check_slots(arguments.slots)
    if not 0 <= arguments.seed < _SEEDS:
        raise UsageError(f"--seed {arguments.seed}: expected a number from 0 to {_SEEDS - 1}")
    if not 0 < arguments.time < 1e6:
        raise UsageError(f"--time {arguments.time:g}: expected seconds, more than 0")


class _Given:
    """The placement that the ranks have now, if any."""

    def __init__(self, host: npt.NDArray[np.int32] | None, hosts: Hosts, demand: RankTraffic) -> None:
        self.host, self.hosts, self.demand = host, hosts, demand


def _given_hosts(
    arguments: argparse.Namespace, demand: RankTraffic, hosts: Hosts, subnets: Sequence[Subnet]
) -> npt.NDArray[np.int32] | None:
    """Find where the ranks are: as --placement says, else as they were recorded; None where neither tells."""
    fabrics = [subnet.fabric for subnet in subnets]
    if arguments.placement is not None:
        placement = place_ranks_by_rule(arguments.placement[0], hosts, fabrics, demand.ranks, arguments.slots or 1)
    elif demand.profile is not None:
        placement = place_ranks_as_recorded(demand.profile, hosts, fabrics, demand.ranks)
    else:
        return None
    return free_hosts.host_of_ranks(placement, hosts, fabrics)


def _find_slots(
    arguments: argparse.Namespace, hosts: Hosts, given: npt.NDArray[np.int32] | None, ranks: int
) -> tuple[RankSlots, tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    if arguments.hosts is None:
        slots, notes = free_hosts.all_hosts(hosts, arguments.slots or 1, ranks)
    elif arguments.hosts == free_hosts.OWN:
        if given is None:
            raise UsageError("--hosts own: it is not known which hosts the ranks are on; --placement can tell")
        slots = free_hosts.own_hosts(given, arguments.slots)
    else:
        slots = free_hosts.read_free_hosts(Path(arguments.hosts), hosts, arguments.slots or 1)
    return assign_slots(hosts, slots, ranks), notes


def _make_problem(
    demand: RankTraffic, policy: str | None, slots: RankSlots, subnets: Sequence[Subnet]
) -> PlacementProblem:
    paths: SwitchPaths = find_switch_paths(subnets, slots.lid)
    return PlacementProblem(find_neighbours(demand, policy or rails.SPLIT, slots.rails, len(subnets)), slots, paths)


def _compare(
    arguments: argparse.Namespace,
    problem: PlacementProblem,
    subnets: Sequence[Subnet],
    given: _Given,
    notes: tuple[str, ...],
) -> PlacementComparison:
    slots, ranks = problem.slots, problem.ranks
    rules = {"packed": packed_slots(slots, ranks), "spread": spread_slots(slots, ranks)}
    starts: list[SlotOfRank] = [*rules.values(), *fabric_aware_slots(problem.neighbours, slots, problem.paths).values()]
    times = CandidateTimes(problem, subnets)
    rows = [times.row(name, slot_of_rank) for name, slot_of_rank in rules.items()]
    if given.host is not None:
        slot_of_rank = slots_on_hosts(slots, given.host)
        if slot_of_rank is not None:
            starts.insert(0, slot_of_rank)
            rows.insert(0, times.row("given", slot_of_rank))
        else:
            rows.insert(0, _row_elsewhere(arguments, given, subnets))
            notes = (*notes, "the ranks are now on hosts that are not among those to choose from")
    bound = bound_max_seconds(problem)
    with _show_search() as progress:
        found = search(problem, starts, arguments.seed, arguments.time, bound, progress=progress)
    if found.stopped_by_clock:
        notes = (*notes, "the clock cut the search short: a run with more --time can find more, and come out otherwise")
    best = times.row("best", found.slot_of_rank, found.score)
    return PlacementComparison(
        rows=(best, *rows, *times.random_rows()),
        bound_seconds=bound,
        found=found,
        hosts=tuple(slots.name[site] for site in slots.host_of_slot[found.slot_of_rank].tolist()),
        free_hosts=len(slots.host),
        slots=slots.count,
        notes=(*notes, *problem.paths.notes),
    )


def _row_elsewhere(arguments: argparse.Namespace, given: _Given, subnets: Sequence[Subnet]) -> CandidateRow:
    """Judge the placement that the ranks have now, on the hosts that it is on."""
    assert given.host is not None
    slots = assign_slots(given.hosts, free_hosts.own_hosts(given.host, None), len(given.host))
    slot_of_rank = slots_on_hosts(slots, given.host)
    assert slot_of_rank is not None
    problem = _make_problem(given.demand, arguments.rails, slots, subnets)
    return CandidateTimes(problem, subnets).row("given", slot_of_rank)


@contextmanager
def _show_search() -> Iterator[Callable[[float, float], None]]:
    if not sys.stderr.isatty():
        yield lambda _share, _best: None
        return
    from rich.console import Console  # noqa: PLC0415  (only who watches waits for it)
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("searching", total=1.0)

        def tell(share: float, best: float) -> None:
            bar.update(task, completed=share, description=f"searching; busiest link {format_seconds(best)}")

        yield tell


def _write_files(arguments: argparse.Namespace, hosts: tuple[str, ...]) -> None:
    outputs = (
        (arguments.output, launchers.placement_csv),
        (arguments.rankfile, launchers.open_mpi_rankfile),
        (arguments.hostfile, launchers.open_mpi_hostfile),
        (arguments.host_a_rank, launchers.host_per_rank),
        (arguments.mpich_hosts, lambda names: launchers.mpich_hosts(names) + "\n"),
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
        default=_TIME_S,
        help="that the search may take: they set its work, which an idle core does in a tenth to a fifth of them "
        f"(default: {_TIME_S:g})",
    )
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument("-o", "--output", metavar="FILE", type=Path, help="placement.csv: rank,host")
    outputs.add_argument("--rankfile", metavar="FILE", type=Path, help="for Open MPI: mpirun --rankfile FILE")
    outputs.add_argument(
        "--hostfile", metavar="FILE", type=Path, help="for Open MPI, beside it: mpirun --hostfile FILE"
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
