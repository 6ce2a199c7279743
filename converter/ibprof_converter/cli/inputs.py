# SPDX-License-Identifier: Apache-2.0
"""What `ibprof-layout` and `ibprof-report` read: fabrics, a traffic, and how the one is put on the other."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ibprof.errors import InconsistentError, UsageError
from ibprof.profile.gaps import describe_gaps
from ibprof.profile.profile_data import Profile
from ibprof.text.quantities import printable
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.hotspots.coverage import describe_coverage
from ibprof_converter.layout.positions import FabricLayout, lay_out
from ibprof_converter.routing.rail_files import find_rails, has_links
from ibprof_converter.routing.subnet import Subnet, check_rails, read_rail
from ibprof_converter.traffic import rail_policies as rails
from ibprof_converter.traffic.all_to_all import load_all_to_all
from ibprof_converter.traffic.counter_agreement import Agreement, compare_counters
from ibprof_converter.traffic.hosts import Hosts, find_hosts
from ibprof_converter.traffic.lid_traffic import map_to_lids
from ibprof_converter.traffic.loaded_links import Loads, load_counted, load_links
from ibprof_converter.traffic.merged_jobs import merge_jobs
from ibprof_converter.traffic.patterns import PREFIX, read_all_to_all
from ibprof_converter.traffic.port_counters import subtract_counters
from ibprof_converter.traffic.rail_bounds import LABEL, Bounds, bound_loads
from ibprof_converter.traffic.rank_placement import FORMS
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic, Traffic
from ibprof_converter.traffic.traffic_reader import is_traffic, read_traffic

REGION = "region"
OPERATION = "operation"


@dataclass(frozen=True, slots=True)
class Network:
    """Fabrics, a rail each, as all traffics are put on them.

    Attributes:
        subnets, layouts: the rails.
        hosts: of them.
    """

    subnets: tuple[Subnet, ...]
    layouts: tuple[FabricLayout, ...]
    hosts: Hosts


@dataclass(frozen=True, slots=True)
class Loaded:
    """A traffic on the links of a fabric, and all that led there.

    Attributes:
        subnets, layouts: the rails.
        demand: the traffic between ranks; None where it knows no ranks, and for several jobs.
        profiles: for each job the run that it was recorded in; None where it was no run.
        placed: the same on the fabric; of all jobs.
        loads: of the links.
        hosts: of the fabrics.
        agreement: of the loads with port counters; None where none were given.
        bounds: of adaptive routing; None where nothing says that switches route so.
    """

    subnets: tuple[Subnet, ...]
    layouts: tuple[FabricLayout, ...]
    demand: RankTraffic | None
    profiles: tuple[Profile | None, ...]
    placed: Traffic | PortCounters
    loads: Loads
    hosts: Hosts
    agreement: Agreement | None = None
    bounds: Bounds | None = None


def add_input_arguments(parser: argparse.ArgumentParser, fabric_needed: bool) -> None:
    """Add the arguments that name fabrics and traffic."""
    fabrics = "LST..." if fabric_needed else "[LST...]"
    parser.usage = f"{parser.prog} [options] {fabrics} TRAFFIC..."
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="LST... TRAFFIC...",
        help="the fabric: dumps of ibdiagnet, OpenSM or infiniband-diags, folders of them, or the name of one that is "
        "made up (several: rails); last, what is sent over it (several: jobs that share the network)",
    )
    add_fabric_arguments(parser)


def add_fabric_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how fabrics are read, and a traffic is put on them."""
    parser.add_argument(
        "--fdbs",
        nargs="+",
        metavar="FILE",
        default=[],
        help="forwarding tables, one file a LST in the same order (else: among LST, or the file beside it). "
        "In front of LST..., end it with --",
    )
    parser.add_argument(
        "--placement",
        metavar="HOW",
        action="append",
        help=f"where the ranks are, whatever was recorded: {FORMS}; with several jobs one for each, in their order",
    )
    parser.add_argument(
        "--host-names",
        metavar="REGEX",
        type=_pattern,
        help="where the host's name is in the description of an adapter: the first group, or all that matches "
        "(default: the first word, without endings as _hca0 or -mlx5_0)",
    )
    parser.add_argument(
        "--level-hosts",
        metavar="REGEX",
        type=_pattern,
        help="CAs whose names match are the hosts that levels are counted from (default: the cabling tells)",
    )
    parser.add_argument(
        "--rails",
        choices=rails.POLICIES,
        help=f"which rail bytes take where nothing measured it (default: {rails.SPLIT})",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="fail when any byte cannot be routed, or when forwarding tables lead to switches, LIDs or links that "
        "LST lacks",
    )


def add_beside_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for what stands beside the loads: counters, and bounds of adaptive routing."""
    parser.add_argument(
        "--adaptive",
        action="store_true",
        help="bounds beside the loads, as if switches chose among minimal ways (by itself where a .ar or .far says so)",
    )
    add_counters_argument(parser)


def add_counters_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument for what ports counted."""
    parser.add_argument(
        "--counters",
        nargs="+",
        metavar="FILE",
        default=[],
        help="port counters to hold the loads against; two files: before and after. In front of LST..., end it with --",
    )


def split_inputs(inputs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Tell fabrics from traffics: the last name is of a traffic, and so are those before it that look like one."""
    first = len(inputs) - 1
    while first > 0 and is_traffic(inputs[first - 1]) and not has_links(Path(inputs[first - 1])):
        first -= 1
    return list(inputs[:first]), list(inputs[first:])


def read_subnets(
    names: Sequence[str], arguments: argparse.Namespace, progress: Callable[[str], None] = lambda _: None
) -> tuple[Subnet, ...]:
    """Read the fabrics and their tables.

    Args:
        names: of the fabrics.
        arguments: of `add_input_arguments`.
        progress: is told what begins.

    Raises:
        IbprofError: of any kind; `InconsistentError` also, with `--strict`, for fabrics that lack what their tables
            lead to.
    """
    progress("reading the fabric")
    rails_files = find_rails(names, arguments.fdbs)
    subnets = tuple(read_rail(files, rail) for rail, files in enumerate(rails_files))
    check_rails(subnets)
    if arguments.strict and (gaps := [gap for subnet in subnets for gap in subnet.gaps]):
        raise InconsistentError(f"--strict: {'; '.join(gaps)}")
    return subnets


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"expected a regular expression, found {text!r}: {error}") from None


def load_inputs(
    arguments: argparse.Namespace,
    by: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
    flows_limit: int | None = None,
) -> Loaded:
    """Read fabrics and traffic, and put the one on the links of the other.

    Args:
        arguments: of `add_input_arguments`, with at least one LST.
        by: what to tell apart, of `REGION` and `OPERATION`.
        progress: is told what begins.
        flows_limit: all-to-all of more flows than this has them in parts alone; None: they are always held.

    Raises:
        IbprofError: of any kind; `InconsistentError` also, with `--strict`, for bytes that cannot be routed and for
            fabrics that lack what their tables lead to.
    """
    network = read_network(arguments, progress)
    return load_traffic(network, arguments, split_inputs(arguments.inputs)[1], by, progress, flows_limit)


def read_network(arguments: argparse.Namespace, progress: Callable[[str], None] = lambda _: None) -> Network:
    """Read the fabrics, and find their levels and hosts.

    Args:
        arguments: of `add_input_arguments`, with at least one LST.
        progress: is told what begins.

    Raises:
        IbprofError: of any kind.
    """
    subnets = read_subnets(split_inputs(arguments.inputs)[0], arguments, progress)
    fabrics = [subnet.fabric for subnet in subnets]
    layouts = tuple(lay_out(fabrics, arguments.level_hosts))
    return Network(subnets, layouts, find_hosts(fabrics, arguments.host_names))


def load_traffic(
    network: Network,
    arguments: argparse.Namespace,
    names: Sequence[str],
    by: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
    flows_limit: int | None = None,
    inherited: bool = False,
) -> Loaded:
    """Read a traffic, and put it on the links of fabrics.

    Args:
        network: the fabrics.
        arguments: of `add_input_arguments`.
        names: of the traffic; several: jobs.
        by, progress, flows_limit: as for `load_inputs`.
        inherited: placement and rails were asked for of another traffic; they hold for this one if it is of ranks.

    Raises:
        IbprofError: as `load_inputs` does.
    """
    subnets, hosts = network.subnets, network.hosts
    fabrics = [subnet.fabric for subnet in subnets]
    progress("reading the traffic")
    pair_bytes = read_all_to_all(names[0], len(hosts.name)) if len(names) == 1 else None
    if flows_limit is None or len(hosts.name) * (len(hosts.name) - 1) <= flows_limit:
        pair_bytes = None
    demands: list[RankTraffic | Traffic | PortCounters] = []
    placed: Traffic | PortCounters
    if pair_bytes is not None and not by and not arguments.placement:
        progress("putting it on the links")
        placed, loads = load_all_to_all(names[0], pair_bytes, hosts, subnets, arguments.rails)
    else:
        demands = [read_traffic(name, hosts, fabrics) for name in names]
        placed = _place_all(names, demands, arguments, hosts, fabrics, inherited)
        progress("putting it on the links")
        loads = _load(names[0], placed, subnets, by)
    if arguments.strict and loads.bytes_unrouted:
        reasons = ", ".join(f"{amount} ({reason})" for reason, amount in loads.bytes_unrouted.items())
        raise InconsistentError(f"--strict: bytes that cannot be routed: {reasons}")
    ranked = [each if isinstance(each, RankTraffic) else None for each in demands]
    return Loaded(
        subnets=subnets,
        layouts=network.layouts,
        demand=ranked[0] if len(ranked) == 1 else None,
        profiles=tuple(each.profile if each else None for each in ranked),
        placed=placed,
        loads=loads,
        hosts=hosts,
        agreement=_hold_against(arguments.counters, loads, placed, fabrics),
        bounds=bound_loads(placed, subnets, arguments.adaptive) if isinstance(placed, Traffic) else None,
    )


def _load(name: str, placed: Traffic | PortCounters, subnets: Sequence[Subnet], by: Sequence[str]) -> Loads:
    if isinstance(placed, Traffic):
        return load_links(placed, subnets, REGION in by, OPERATION in by)
    if by:
        raise UsageError(f"{name}: port counters know of no {' or '.join(by)}")
    return load_counted(placed, [subnet.fabric for subnet in subnets])


def _place_all(
    names: Sequence[str],
    demands: Sequence[RankTraffic | Traffic | PortCounters],
    arguments: argparse.Namespace,
    hosts: Hosts,
    fabrics: Sequence[Fabric],
    inherited: bool,
) -> Traffic | PortCounters:
    """Put each job on the fabric, and all jobs together."""
    placements = arguments.placement or [None] * len(demands)
    if len(placements) != len(demands):
        raise UsageError(f"--placement: expected one for each of {len(demands)} jobs, found {len(placements)}")
    placed: list[Traffic] = []
    for name, demand, placement in zip(names, demands, placements, strict=True):
        if isinstance(demand, RankTraffic):
            job = map_to_lids(demand, hosts, fabrics, placement, arguments.rails)
            missing = describe_gaps(demand.profile) if demand.profile and len(demands) > 1 else ()
            placed.append(replace(job, notes=(*job.notes, *missing)))
        elif (placement or arguments.rails) and not inherited:
            raise UsageError(f"{name} says which ports it is of: --placement and --rails do not apply")
        elif isinstance(demand, Traffic):
            placed.append(demand)
        elif len(demands) > 1:
            raise UsageError(f"{name}: port counters are of all jobs together; --counters holds them against jobs")
        else:
            return demand
    return merge_jobs(
        [name.removeprefix(PREFIX) if name.startswith(PREFIX) else Path(name).stem for name in names], placed
    )


def _hold_against(
    names: Sequence[str], loads: Loads, placed: Traffic | PortCounters, fabrics: Sequence[Fabric]
) -> Agreement | None:
    """Hold loads against port counters, if any: those of one file, or what a second one has more than the first."""
    if not names:
        return None
    if len(names) > 2:
        raise UsageError(f"--counters: expected one file, or two, before and after; found {len(names)}")
    if not isinstance(placed, Traffic):
        raise UsageError(f"--counters: {placed.origin} are counters already, not a prediction")
    read = []
    for name in names:
        counters = read_traffic(name, None, fabrics)
        if not isinstance(counters, PortCounters):
            raise UsageError(f"--counters {name}: expected port counters, found {counters.origin}")
        read.append(counters)
    return compare_counters(loads, subtract_counters(read[1], read[0]) if len(read) > 1 else read[0], fabrics)


@contextmanager
def show_stages() -> Iterator[Callable[[str], None]]:
    """Show on a terminal what is being done; give the function that is to be told."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415  (slow to import, and most runs have no terminal)

    with Console(stderr=True).status("") as status:
        yield status.update


def warn_of_gaps(name: str, loaded: Loaded) -> None:
    """Say on stderr what a report says beside the loads, so that an output that shows only links deceives nobody."""
    loads = loaded.loads
    for note in describe_coverage(loaded.demand, loaded.placed, loaded.subnets).notes:
        print(f"{name}: {printable(note)}", file=sys.stderr)
    if loaded.bounds:
        print(f"{name}: {printable(loaded.bounds.reason)}: {LABEL}", file=sys.stderr)
    for reason, amount in loads.bytes_unrouted.items():
        print(f"{name}: {amount} of {loads.bytes_total} bytes are on no link: {reason}", file=sys.stderr)
    if loads.bytes_total and loads.bytes_on_host == loads.bytes_total:
        print(
            f"{name}: all bytes stay within a host, so no link is loaded; --placement puts the ranks elsewhere",
            file=sys.stderr,
        )
