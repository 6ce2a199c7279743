# SPDX-License-Identifier: Apache-2.0
"""What the one-file web view is made of: a traffic on a fabric, what it is compared with, and what the user told."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ibprof.errors import UsageError
from ibprof.text.quantities import printable
from ibprof_converter.cli.inputs import Loaded, Network, load_traffic, split_inputs
from ibprof_converter.cli.layout_outputs import name_fabrics, naming, titles_of
from ibprof_converter.hotspots.coverage import describe_coverage
from ibprof_converter.traffic.counter_agreement import Agreement
from ibprof_converter.traffic.loaded_links import Loads, match_counters
from ibprof_converter.traffic.traffic_data import ALL, PortCounters, Traffic, no_counters
from ibprof_converter.viewer import user_attributes as data
from ibprof_converter.viewer.html_page import write_page
from ibprof_converter.viewer.interval_arrays import merge_intervals
from ibprof_converter.viewer.view_document import encode_document
from ibprof_converter.viewer.view_runs import FLOW_LIMIT, ViewRun

_RECORDED = "as recorded"
_PREDICTED = "predicted"
_MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class Compared:
    """Another run on the same fabric.

    Attributes:
        traffics, placements: as the user named them, one a job.
        loaded: what they are.
    """

    traffics: tuple[str, ...]
    placements: tuple[str, ...]
    loaded: Loaded


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for what is known of ranks and nodes beside the traffic."""
    parser.add_argument(
        "--rank-data",
        metavar="FILE",
        type=Path,
        help="CSV with the column rank, then any others: numbers or words to colour ranks by; x, y and z are the "
        "place on the problem's own grid (else: the grid that the program made by MPI_Cart_create)",
    )
    parser.add_argument(
        "--node-data",
        metavar="FILE",
        type=Path,
        help="CSV with the column host, node (a description) or guid, then any others: numbers or words, such as a "
        "role, to colour nodes and to choose them by",
    )


def add_compare_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for what the traffic is compared with."""
    compared = parser.add_argument_group("compare", "side by side with TRAFFIC, and the difference from it")
    compared.add_argument(
        "--compare", metavar="TRAFFIC", action="append", default=[], help="another traffic on the same fabric; several"
    )
    compared.add_argument(
        "--compare-placement",
        metavar="HOW",
        action="append",
        default=[],
        help="where its ranks are, as for --placement: one for each --compare in their order; without --compare the "
        "same TRAFFIC placed otherwise (several jobs: one for each, in their order); several",
    )


def load_compared(
    arguments: argparse.Namespace, network: Network, progress: Callable[[str], None]
) -> tuple[Compared, ...]:
    """Read what a traffic is to be compared with.

    Args:
        arguments: of `add_input_arguments` and `add_compare_arguments`.
        network: the fabric.
        progress: is told what begins.

    Raises:
        IbprofError: of any kind.
    """
    compared = []
    for traffics, placements in _list_compared(arguments):
        inherited = not arguments.compare_placement
        asked = argparse.Namespace(**{**vars(arguments), "placement": placements})
        asked.counters = []
        loaded = load_traffic(network, asked, traffics, (), progress, FLOW_LIMIT, inherited)
        compared.append(Compared(tuple(traffics), tuple(placements or ()), loaded))
    return tuple(compared)


def _list_compared(arguments: argparse.Namespace) -> list[tuple[list[str], list[str] | None]]:
    """Give the traffics and placements of each run that is asked for; of the jobs that there are, or another one each.

    Raises:
        UsageError: there are too few or too many placements.
    """
    placements: list[str] = arguments.compare_placement
    own = split_inputs(arguments.inputs)[1]
    if not arguments.compare:
        jobs = len(own)
        if len(placements) % jobs:
            raise UsageError(
                f"--compare-placement: expected one for each of {jobs} jobs, once for each run, found {len(placements)}"
            )
        return [(own, placements[first : first + jobs]) for first in range(0, len(placements), jobs)]
    if not placements:
        # The rule of the run itself holds for the others too.
        shared = arguments.placement or []
        return [([traffic], shared if len(shared) == 1 else None) for traffic in arguments.compare]
    if len(placements) != len(arguments.compare):
        raise UsageError(
            f"--compare-placement: expected one for each of {len(arguments.compare)} --compare, found {len(placements)}"
        )
    return [([traffic], [placement]) for traffic, placement in zip(arguments.compare, placements, strict=True)]


def write_view(
    path: Path, loaded: Loaded, arguments: argparse.Namespace | None = None, compared: Sequence[Compared] = ()
) -> None:
    """Write the one-file web view.

    Args:
        path: the file.
        loaded: what it shows.
        arguments: of `add_input_arguments` and `add_data_arguments`, if any.
        compared: what it is compared with.

    Raises:
        OSError: the file cannot be written; it names it.
    """
    document = describe_view(loaded, arguments, compared)
    with naming(path):
        write_page(path, document)


def describe_view(
    loaded: Loaded, arguments: argparse.Namespace | None = None, compared: Sequence[Compared] = ()
) -> bytes:
    """Give all that the web view shows, as its page reads it.

    Args:
        loaded: fabric and traffic; port counters that it was held against are a run of their own.
        arguments: of `add_input_arguments` and `add_data_arguments`, if any.
        compared: what it is compared with.

    Raises:
        InputError: a file of such data is not what it should be.
        UsageError: there are no ranks that data could be of.
    """
    profile = loaded.demand.profile if loaded.demand else None
    attributes: list[data.UserAttribute] = []
    grid = data.find_recorded_grid(profile)
    if arguments is not None and arguments.rank_data is not None:
        ranks = loaded.placed.rank_lid if isinstance(loaded.placed, Traffic) else ()
        if not len(ranks):
            raise UsageError(f"--rank-data {arguments.rank_data}: the traffic knows no ranks")
        attributes, told = data.read_rank_data(arguments.rank_data, len(ranks))
        grid = told or grid
    if arguments is not None and arguments.node_data is not None:
        fabrics = [subnet.fabric for subnet in loaded.subnets]
        attributes += data.read_node_data(arguments.node_data, fabrics, loaded.hosts)
    names = _name_runs(loaded, arguments, compared)
    runs = [
        _run_of(name, each) for name, each in zip(names, [loaded, *(each.loaded for each in compared)], strict=True)
    ]
    if loaded.agreement:
        runs.append(_run_of_counters(loaded, loaded.agreement))
    title = titles_of(loaded)[0]
    if len(runs) > 1:
        title = printable(f"{' | '.join(run.name for run in runs)} on {name_fabrics(loaded)}")
    return encode_document(title, loaded.subnets, loaded.layouts, loaded.hosts, runs, attributes, grid)


def _run_of(name: str, loaded: Loaded) -> ViewRun:
    coverage = describe_coverage(loaded.demand, loaded.placed, loaded.subnets)
    if isinstance(loaded.placed, PortCounters):
        known = match_counters(loaded.placed, [subnet.fabric for subnet in loaded.subnets])[1]
        return ViewRun(name, loaded.placed, loaded.loads, coverage, known=known)
    timed = [profile.intervals if profile else None for profile in loaded.profiles]
    intervals = merge_intervals(timed, loaded.placed.first_rank)
    return ViewRun(name, loaded.placed, loaded.loads, coverage, intervals)


def _run_of_counters(loaded: Loaded, agreement: Agreement) -> ViewRun:
    nothing = no_counters(agreement.origin, agreement.notes)
    loads = Loads(
        by_rail=tuple(counted[:, :, None] for counted in agreement.counted),
        groups=((ALL, ALL),),
        bytes_total=agreement.bytes_counted,
        bytes_routed=agreement.bytes_counted,
        bytes_on_host=0,
        bytes_unrouted={},
    )
    coverage = describe_coverage(None, nothing, loaded.subnets)
    return ViewRun(_MEASURED, nothing, loads, coverage, known=agreement.known)


def _name_runs(loaded: Loaded, arguments: argparse.Namespace | None, compared: Sequence[Compared]) -> Sequence[str]:
    """Name runs by what tells them apart: the traffic, the placement, or both; by number where nothing does."""
    if not compared or arguments is None:
        return [_PREDICTED if loaded.agreement else ""]
    own = (tuple(split_inputs(arguments.inputs)[1]), tuple(arguments.placement or ()))
    told = [own, *((each.traffics, each.placements) for each in compared)]
    traffics = [" + ".join(map(_shorten, named)) for named, _ in told]
    placements = [" + ".join(map(_shorten, named)) or _RECORDED for _, named in told]
    if len(set(traffics)) == 1 and len({named for named, _ in told}) > 1:
        traffics = [" + ".join("/".join(Path(name).parts[-2:]) for name in named) for named, _ in told]
    if len(set(traffics)) == 1:
        names = placements
    elif len(set(placements)) == 1:
        names = traffics
    else:
        names = [f"{traffic}, {placement}" for traffic, placement in zip(traffics, placements, strict=True)]
    return [name if names.count(name) == 1 else f"{name} #{at + 1}" for at, name in enumerate(names)]


def _shorten(name: str) -> str:
    """Leave out the folders of a file's name."""
    return Path(name).name if Path(name).exists() else name
