# SPDX-License-Identifier: Apache-2.0
"""Search for a better placement of ranks on a fabric, and compare the result with other placements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError, UsageError
from ibprof.native.libraries import sum_exactly
from ibprof.profile.missing_data import StageAccount
from ibprof.profile.profile_rows import ALL_ROWS, RowChoice
from ibprof.text.quantities import count_of, format_bytes
from ibprof_converter.analysis.pipeline_options import FabricOptions, Progress, no_progress
from ibprof_converter.analysis.pipeline_stages import Demand, read_subnets
from ibprof_converter.choices import SEARCH_SECONDS
from ibprof_converter.fabric.node_names import show_some
from ibprof_converter.hotspots.coverage import Coverage, describe_coverage
from ibprof_converter.placement.candidates import (
    RANDOM_SEEDS,
    STOPPED_BY_CLOCK,
    CandidateRow,
    CandidateTimes,
    PlacementComparison,
    order_of_row,
)
from ibprof_converter.placement.lower_bound import bound_kept_together, find_bounds
from ibprof_converter.placement.placement_problem import PlacementProblem, SlotOfRank, find_neighbours
from ibprof_converter.placement.slots import (
    OWN,
    RankSlots,
    all_hosts,
    assign_slots,
    check_slots,
    hold_together,
    host_of_ranks,
    own_hosts,
    read_free_hosts,
    slots_on_hosts,
)
from ibprof_converter.placement.starting_placements import random_slots, starting_placements
from ibprof_converter.placement.swap_search import TimeBounds, search
from ibprof_converter.placement.switch_paths import find_switch_paths
from ibprof_converter.routing.route_choice import name_routes
from ibprof_converter.routing.spread import Reason, spread
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic import adapter_policies
from ibprof_converter.traffic.adapter_policies import describe_nic, label_of_policy
from ibprof_converter.traffic.hosts import Hosts, describe_lacking, find_hosts
from ibprof_converter.traffic.link_loads import ESTIMATE, STATIC
from ibprof_converter.traffic.rank_placement import place_ranks_as_recorded, place_ranks_by_rule
from ibprof_converter.traffic.traffic_data import NO_LID, RankTraffic
from ibprof_converter.traffic.traffic_reader import choose_demand, read_traffic
from ibprof_converter.traffic.training_jobs import note_divided, note_training, ranks_a_host, tensor_group_size

WHOLE_GROUPS = "each tensor group stays on one host; --divide-groups lets the search divide groups"

_MOST_SECONDS = 60.0
_RANKS = 1024

_SEEDS = 1 << 32

SearchProgress = Callable[[float, float], None]
"""Function that is called with the done share of the search (0 to 1), and the best time so far, in seconds."""


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """Options of a search for a placement.

    Attributes:
        placement: rule or file for the ranks' present hosts. If None: the recorded hosts.
        rails: policy for bytes on several rails. If None: the default policy.
        nic: policy that chooses a rank's adapter in one subnet. If None: the default policy for ranks on other hosts.
        adaptive: true to judge by loads of adaptive routing, even if no dump shows adaptive routing.
        hosts: file with hosts to choose from, or `OWN` for the ranks' present hosts; None: all.
        slots: ranks per host; None: with `OWN` the present number, else the number in a training pattern, else 1.
        seed: seed of the random choices.
        seconds: time limit of the search, in seconds; None: the default for the number of ranks.
        divide_groups: true if tensor groups of a training job may be on several hosts.
    """

    placement: str | None = None
    rails: str | None = None
    hosts: str | None = None
    slots: int | None = None
    seed: int = 1
    seconds: float | None = None
    nic: str | None = None
    adaptive: bool = False
    divide_groups: bool = False

    def files(self) -> Iterator[Path]:
        """Yield the files to read. A placement rule such as `packed` is also yielded, as a path."""
        named = (self.placement, None if self.hosts == OWN else self.hosts)
        yield from (Path(name) for name in named if name is not None)

    def check(self) -> None:
        """Check the options before any file is read.

        Raises:
            UsageError: a number is out of range.
        """
        check_slots(self.slots)
        if not 0 <= self.seed < _SEEDS:
            raise UsageError(f"--seed {self.seed}: expected a number from 0 to {_SEEDS - 1}")
        if self.seconds is not None and not 0 < self.seconds < 1e6:
            raise UsageError(f"--time {self.seconds:g}: expected seconds, more than 0")


def read_ranks_to_place(
    fabric: FabricOptions, traffic: str, progress: Progress = no_progress, chosen: RowChoice = ALL_ROWS
) -> tuple[tuple[Subnet, ...], Hosts, RankTraffic]:
    """Read fabrics and traffic; return rails, hosts and traffic between ranks, for `place_ranks`.

    Args:
        chosen: the calls whose bytes are used; by default, all calls.

    Raises:
        UsageError: the traffic has no ranks.
        IbprofError: `read_subnets` or `read_traffic` fails.
    """
    subnets = read_subnets(fabric, progress)
    progress("reading the traffic")
    fabrics = [subnet.fabric for subnet in subnets]
    hosts = find_hosts(fabrics, fabric.host_names)
    demand = choose_demand(read_traffic(traffic, hosts, fabrics, over_hosts=True), chosen, traffic)
    return subnets, hosts, require_ranks(demand)


def default_seconds(ranks: int) -> float:
    """Return the default `PlaceOptions.seconds` for a number of ranks."""
    return min(_MOST_SECONDS, SEARCH_SECONDS * max(1.0, ranks / _RANKS))


def require_ranks(demand: Demand) -> RankTraffic:
    """Return the traffic if it is between ranks.

    Raises:
        UsageError: the traffic has no ranks.
    """
    if not isinstance(demand, RankTraffic):
        raise UsageError(f"{demand.origin}: expected traffic between ranks, because ibprof places ranks on hosts")
    return demand


def place_ranks(
    subnets: Sequence[Subnet],
    hosts: Hosts,
    demand: RankTraffic,
    options: PlaceOptions,
    progress: SearchProgress = lambda _share, _best: None,
) -> PlacementComparison:
    """Search for a placement with the least load on the most loaded link.

    If two placements are equal in this load, the load of the most loaded link between switches decides.

    Args:
        progress: function that is called during the search.

    Raises:
        UsageError: there are too many ranks; or `hosts` is `OWN`, but the ranks' present hosts are unknown.
        InputError: a file of hosts or of a placement is invalid.
        InconsistentError: in the best placement, some ranks cannot reach each other.
    """
    given = _given_hosts(subnets, hosts, demand, options)
    slots, notes = _find_slots(hosts, given, demand, options)
    problem = _make_problem(demand, options, slots, subnets)
    named = starting_placements(
        problem.neighbours,
        slots,
        problem.paths,
        options.seed,
        _find_recorded_grid(demand),
    )
    starts: list[SlotOfRank] = list(named.values())
    is_adaptive = _is_adaptive(subnets, options)
    times = CandidateTimes(problem, slots.rails_among(subnets), is_adaptive)
    rows = [times.row(name, named[name]) for name in ("packed", "spread")]
    if given is not None:
        slot_of_rank = slots_on_hosts(slots, given)
        if slot_of_rank is not None:
            starts[:0] = [slot_of_rank] if slots.keeps_groups(slot_of_rank) else []
            rows.insert(0, times.row("given", slot_of_rank))
        else:
            rows.insert(0, _judge_elsewhere(subnets, hosts, demand, given, options))
            notes = (
                *notes,
                "some of the ranks' present hosts are not among the hosts to choose from, or have too few slots",
            )
    # The bounds are valid only if forwarding tables fix the link directions of each flow.
    bounds = TimeBounds() if is_adaptive else find_bounds(problem)
    seconds = options.seconds or default_seconds(demand.ranks)
    found = search(problem, starts, options.seed, seconds, bounds, progress=progress)
    if not is_adaptive and not found.score.lost:
        together = bound_kept_together(problem, found.score.bottleneck_seconds)
        bounds = TimeBounds(max(bounds.bottleneck_seconds, together), bounds.max_seconds)
    if found.stopped_by_clock:
        notes = (*notes, STOPPED_BY_CLOCK)
    best, chosen = times.row("best", found.slot_of_rank), found.slot_of_rank
    if is_adaptive:
        randoms = [random_slots(slots, demand.ranks, seed) for seed in range(RANDOM_SEEDS)]
        candidates = [(times.row("best", each), each) for each in (*starts, *randoms)]
        best, chosen = min([(best, chosen), *candidates], key=lambda one: order_of_row(one[0]))
    if best.lost_bytes:
        where = _describe_unreachable(subnets, hosts, slots.host[slots.host_of_slot[chosen]])
        raise InconsistentError(
            f"no placement was found with routes between all {demand.ranks} ranks; the best one leaves "
            f"{format_bytes(best.lost_bytes)} without a route: {where}"
        )
    coverage, sent = describe_coverage(demand, None, subnets, hosts), sum_exactly(demand.bytes)
    names = tuple(slots.name[host] for host in slots.host_of_slot[chosen].tolist())
    return PlacementComparison(
        rows=(best, *rows, *times.random_rows()),
        bounds=bounds,
        found=found,
        hosts=names,
        free_hosts=len(slots.host),
        slots=slots.count,
        notes=(
            *notes,
            *note_divided(demand.origin, names),
            *problem.paths.notes,
            *_list_gaps(coverage, subnets, demand, options, slots, hosts),
        ),
        accounts=(*coverage.accounts, StageAccount("place", "bytes", sent, sent)),
        nic=slots.nic,
        load_basis=ESTIMATE if is_adaptive else STATIC,
        routes=name_routes(subnets),
        interfaces=next((subnet.fabric.interfaces for subnet in subnets), None),
    )


def _describe_unreachable(subnets: Sequence[Subnet], hosts: Hosts, chosen: npt.NDArray[np.integer]) -> str:
    """Return text on groups of hosts that no route joins; one host of each leaf is checked."""
    used = np.unique(chosen)
    leaf, first, inverse = np.unique(hosts.leaf[used], return_index=True, return_inverse=True)
    one = used[first]
    arrives = np.eye(len(one), dtype=np.bool_)
    for rail, subnet in enumerate(subnets):
        lid = hosts.lid[one, rail]
        source, destination = np.repeat(lid, len(lid)), np.tile(lid, len(lid))
        nothing = np.zeros(len(source), np.uint64)
        reason = spread(subnet.routes, source, destination, nothing, np.zeros(len(source), np.int32), 1).reason
        present = (source != NO_LID) & (destination != NO_LID)
        arrives |= (present & (reason <= Reason.SAME_PORT)).reshape(len(lid), len(lid))
    groups: dict[bytes, list[int]] = {}
    for number in range(len(leaf)):
        groups.setdefault((arrives[number] & arrives[:, number]).tobytes(), []).append(number)
    named = []
    for members in groups.values():
        names = [hosts.name[host] for host in used[np.isin(inverse, members)].tolist()]
        named.append(f"{show_some(names)} ({count_of(len(names), 'host')})")
    if len(named) < 2:
        return f"hosts such as {named[0]} have no route even to other hosts of their leaf switch"
    return f"routes are missing between {show_some(named)}".replace("), ", ") and ")


def _find_recorded_grid(demand: RankTraffic) -> npt.NDArray[np.int64] | None:
    """Return each rank's position in the grid with the most axes of rank 0's MPI_Cart_create calls: int64 [rank, axis].

    The result is None if any rank is not in this grid.
    """
    ranks = [] if demand.profile is None else [each for each in demand.profile.ranks if each.rank < demand.ranks]
    grids = {each.rank: each.grids for each in ranks}
    if len(grids) < demand.ranks or not all(grids.values()):
        return None
    extents = max((grid.extents for grid in grids[0]), key=lambda sides: (len(sides), sides))
    places = [next((grid.place for grid in grids[rank] if grid.extents == extents), None) for rank in range(len(grids))]
    return None if None in places else np.array(places, np.int64)


def _is_adaptive(subnets: Sequence[Subnet], options: PlaceOptions) -> bool:
    return options.adaptive or any(subnet.adaptive is not None for subnet in subnets)


def _given_hosts(
    subnets: Sequence[Subnet], hosts: Hosts, demand: RankTraffic, options: PlaceOptions
) -> npt.NDArray[np.int32] | None:
    """Return the host of each rank, by the options or else as recorded: int32 [rank]; None if any host is unknown."""
    fabrics = [subnet.fabric for subnet in subnets]
    if options.placement is not None:
        slots = options.slots or ranks_a_host(demand.origin) or 1
        placement = place_ranks_by_rule(options.placement, hosts, fabrics, demand.ranks, slots)
    elif demand.profile is not None:
        placement = place_ranks_as_recorded(demand.profile, hosts, fabrics, demand.ranks)
    else:
        return None
    return host_of_ranks(placement, hosts, fabrics)


def _find_slots(
    hosts: Hosts, given: npt.NDArray[np.int32] | None, demand: RankTraffic, options: PlaceOptions
) -> tuple[RankSlots, tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    whole = ranks_a_host(demand.origin)
    slots = options.slots or whole or 1
    if options.hosts is None:
        free, notes = all_hosts(hosts, slots, demand.ranks)
    elif options.hosts == OWN:
        if given is None:
            raise UsageError(
                "--hosts own: hosts of some ranks are unknown, or not in this fabric; name hosts with --placement"
            )
        free = own_hosts(given, options.slots)
    else:
        free = read_free_hosts(Path(options.hosts), hosts, slots)
    found = assign_slots(hosts, free, demand.ranks, options.nic, whole)
    if not options.divide_groups:
        found = hold_together(found, tensor_group_size(demand.origin))
    return found, notes if found.together == 1 else (*notes, WHOLE_GROUPS)


def _make_problem(
    demand: RankTraffic, options: PlaceOptions, slots: RankSlots, subnets: Sequence[Subnet]
) -> PlacementProblem:
    rails = slots.rails_among(subnets)
    neighbours = find_neighbours(demand, options.rails or adapter_policies.SPLIT, slots.rails, len(rails))
    return PlacementProblem(neighbours, slots, find_switch_paths(rails, slots.lid))


def _list_gaps(
    coverage: Coverage,
    subnets: Sequence[Subnet],
    demand: RankTraffic,
    options: PlaceOptions,
    slots: RankSlots,
    hosts: Hosts,
) -> Iterator[str]:
    """Yield sentences on unrecorded and modelled data, on hosts that lack adapters, and on bytes without ranks."""
    yield from (f"not seen: {sentence}" for sentence in coverage.not_seen)
    if len(subnets) > 1:
        yield f"modelled: rails that carry the bytes: modelled ({options.rails or adapter_policies.SPLIT})"
    if slots.nic:
        yield f"modelled: adapter that a rank uses on its host: {describe_nic(slots.nic)}"
    if slots.nic == label_of_policy(adapter_policies.RANK):
        yield from chain(*describe_lacking(hosts, set(slots.host.tolist())))
    yield from (*coverage.notes, *note_training(demand.origin))
    yield from (f"{amount} bytes are not part of the times: {reason}" for reason, amount in demand.unmapped.items())


def _judge_elsewhere(
    subnets: Sequence[Subnet], hosts: Hosts, demand: RankTraffic, given: npt.NDArray[np.int32], options: PlaceOptions
) -> CandidateRow:
    """Judge the present placement, if the search has too few slots on any present host."""
    slots = assign_slots(hosts, own_hosts(given, None), len(given), options.nic)
    slot_of_rank = slots_on_hosts(slots, given)
    assert slot_of_rank is not None
    problem = _make_problem(demand, options, slots, subnets)
    is_adaptive = _is_adaptive(subnets, options)
    return CandidateTimes(problem, slots.rails_among(subnets), is_adaptive).row("given", slot_of_rank)
