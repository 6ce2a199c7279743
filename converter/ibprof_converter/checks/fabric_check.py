# SPDX-License-Identifier: Apache-2.0
"""Run all checks on all rails of a fabric, and write the result as JSON and as text."""

from __future__ import annotations

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from itertools import combinations

import numpy as np

from ibprof.errors import InconsistentError, InputError
from ibprof.profile.missing_data import StageAccount, accounts_as_json, describe_losses
from ibprof.text.notebook_html import NotebookView
from ibprof.text.quantities import count_of
from ibprof_converter.checks.cabling_check import check_cabling
from ibprof_converter.checks.fabric_findings import FabricFinding, FindingKind
from ibprof_converter.checks.route_check import check_dumps, check_routes, check_tables
from ibprof_converter.fabric.assemble import DuplicateLidError
from ibprof_converter.fabric.fabric_graph import Fabric, InterfaceChoice, NodeKind
from ibprof_converter.fabric.node_names import adapter_name
from ibprof_converter.layout.node_levels import find_chassis, find_levels
from ibprof_converter.routing.rail_files import RailFiles
from ibprof_converter.routing.subnet import MissingTablesError, Subnet, check_rails, read_rail, read_without_tables
from ibprof_converter.traffic.hosts import NO_HOST, Hosts, account_for_fabrics, find_hosts
from ibprof_converter.traffic.interfaces import choose_interfaces
from ibprof_converter.traffic.traffic_data import NO_LID

_WIDTH = 120


@dataclass(frozen=True, slots=True)
class RailSummary:
    """Contents of a rail.

    Attributes:
        links_from: file with the links.
        tables_from: file with the forwarding tables; None if the rail is unusable.
        switches, adapters, routers, links, tables: numbers of switches, adapters, ... of the rail.
        adaptive: true if the files show that switches route adaptively.
        hosts_by_adapters: number of adapters in this subnet -> number of hosts.
        hosts_by_ports: number of active ports in this subnet -> number of hosts.
        remarks: warnings of the readers, for example on data that the files lack.
        directors: descriptions of chassis with several switch chips.
        unused: sentences on files that were found but not used.
    """

    links_from: str
    tables_from: str | None
    switches: int = 0
    adapters: int = 0
    routers: int = 0
    links: int = 0
    tables: int = 0
    adaptive: bool = False
    hosts_by_adapters: dict[int, int] = field(default_factory=dict)
    hosts_by_ports: dict[int, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    directors: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class FabricHealth(NotebookView):
    """All findings on a fabric.

    Attributes:
        findings: all findings; findings that make routes unreliable come first.
        accounts: numbers of checked and of left-out rails, links and hosts.
        interfaces: the choice of adapters in reports; None if all adapters are chosen. The checks use all adapters.
    """

    rails: tuple[RailSummary, ...]
    findings: tuple[FabricFinding, ...]
    accounts: tuple[StageAccount, ...] = ()
    interfaces: InterfaceChoice | None = None

    def __repr__(self) -> str:
        routes = "routes can be trusted" if self.trusted else "routes cannot be trusted"
        return f"<FabricHealth of {len(self.rails)} rail(s): {len(self.findings)} findings, {routes}>"

    @property
    def trusted(self) -> bool:
        """Return true if no finding makes routes unreliable."""
        return not any(finding.untrusted for finding in self.findings)

    def as_json(self) -> dict[str, object]:
        """Return the result as a JSON object."""
        return {
            "routes_trusted": self.trusted,
            "rails": [asdict(rail) for rail in self.rails],
            "interfaces": asdict(self.interfaces) if self.interfaces else None,
            "findings": [finding.as_json() for finding in self.findings],
            "coverage": accounts_as_json(self.accounts),
        }


def check_fabric_files(
    rails: Sequence[RailFiles],
    progress: Callable[[str], None] = lambda _: None,
    interfaces: str | None = None,
    host_names: re.Pattern[str] | None = None,
) -> FabricHealth:
    """Read rails and check them.

    Args:
        progress: function that is called with the name of each stage.
        interfaces: the choice of adapters, as in `choose_interfaces`.
        host_names: pattern for hosts' names, as in `find_hosts`.

    Raises:
        UsageError: `interfaces` selects no adapter.
        InputError: a file is invalid.
        InconsistentError: two rails are the same subnet.
    """
    findings: list[FabricFinding] = []
    summaries: list[RailSummary] = []
    subnets: list[Subnet] = []
    for number, files in enumerate(rails):
        progress(f"reading rail {number}")
        try:
            subnet, unused, unreadable = _read(files, number)
        except InconsistentError as error:
            kind = FindingKind.LID_TWICE if isinstance(error, DuplicateLidError) else FindingKind.CONTRADICTION
            findings.append(FabricFinding(kind, number, str(error), ()))
            summaries.append(RailSummary(str(files.links), None, unused=files.notes))
            continue
        subnets.append(subnet)
        summaries.append(_summarise(subnet, (*files.notes, *unused), host_names))
        progress(f"following the routes of rail {number}")
        if unreadable is not None:
            findings.append(
                FabricFinding(FindingKind.DAMAGED, number, "forwarding tables cannot be used", (unreadable,))
            )
        findings += check_dumps(number, subnet)
        findings += check_tables(number, subnet)
        findings += check_routes(number, subnet)
        findings += check_cabling(number, subnet.fabric)
    check_rails(subnets)
    fabrics = [subnet.fabric for subnet in subnets]
    hosts = find_hosts(fabrics, host_names) if fabrics else None
    lost = len(rails) - len(subnets)
    if hosts and not lost:
        findings += check_rails_alike(fabrics, hosts)
        for number, fabric in enumerate(fabrics):
            findings += _find_nameless(number, fabric, hosts)
    accounts = (
        StageAccount("check", "rails", len(rails), len(subnets), {"cannot be used": lost} if lost else {}),
        *account_for_fabrics(fabrics, hosts),
    )
    chosen = next((fabric.interfaces for fabric in choose_interfaces(fabrics, interfaces, host_names)), None)
    findings.sort(key=lambda finding: not finding.untrusted)
    return FabricHealth(tuple(summaries), tuple(findings), accounts, chosen)


def _find_nameless(rail: int, fabric: Fabric, hosts: Hosts) -> Iterator[FabricFinding]:
    """Yield a finding if descriptions of adapters name no host."""
    nodes = np.flatnonzero(hosts.of_node[rail] != NO_HOST).tolist()
    guids = [f"0x{int(fabric.node_guid[node]):016x}" for node in nodes]
    places = tuple(
        guid if fabric.node_name[node] == guid else f"{guid} ({fabric.node_name[node]!r})"
        for node, guid in zip(nodes, guids, strict=True)
        if hosts.name[hosts.of_node[rail][node]] == guid
    )
    if places:
        what = f"{count_of(len(places), 'adapter')} whose description names no host"
        yield FabricFinding(FindingKind.NAMELESS_HOST, rail, what, places)


def _read(files: RailFiles, number: int) -> tuple[Subnet, tuple[str, ...], str | None]:
    """Read a rail; if its forwarding tables are missing or invalid, read only its links.

    Returns:
        The rail; sentences on files with tables of other fabrics; and the reason why the tables are invalid, or None.
    """
    try:
        return read_rail(files, number), (), None
    except MissingTablesError as error:
        return read_without_tables(files, error.unused), error.unused, None
    except InputError as error:
        return read_without_tables(files), (), str(error)


def _summarise(subnet: Subnet, unused: tuple[str, ...], host_names: re.Pattern[str] | None) -> RailSummary:
    fabric = subnet.fabric
    hosts = find_hosts([fabric], host_names)
    switches, adapters, routers = (
        int((fabric.node_kind == kind).sum()) for kind in (NodeKind.SWITCH, NodeKind.CA, NodeKind.ROUTER)
    )
    return RailSummary(
        links_from=fabric.name,
        tables_from=subnet.tables.name,
        switches=switches,
        adapters=adapters,
        routers=routers,
        links=fabric.links,
        tables=len(subnet.tables.switch_guid),
        adaptive=subnet.adaptive is not None,
        hosts_by_adapters=hosts.count_by_adapters(0),
        hosts_by_ports=hosts.count_by_ports(0),
        remarks=subnet.warnings,
        directors=describe_directors(fabric),
        unused=unused,
    )


_BOARD = re.compile(r"/([A-Za-z]{1,9}\d{1,3})(?:/\w{1,9})?(?: \(\.\.\w+\))?$")
"""Matches the description of a switch chip; group 1 is the board: L07 in `MF0;NAME:MCS8500/L07/U2`."""


def describe_directors(fabric: Fabric) -> tuple[str, ...]:
    """Describe each director switch: name, numbers of chips and boards, and chips per level."""
    chassis = find_chassis(fabric, fabric.node_kind == NodeKind.SWITCH)
    level = find_levels(fabric)
    directors = []
    for number in np.unique(chassis[chassis >= 0]).tolist():
        nodes = np.flatnonzero(chassis == number).tolist()
        names = [fabric.node_name[node] for node in nodes]
        boards = {match[1] for name in names if (match := _BOARD.search(name))}
        boxes = {name.split("/", 1)[0] for name in names}
        name = boxes.pop() if boards and len(boxes) == 1 else f"{int(fabric.system_guid[nodes[0]]):#018x}"
        chips = ", ".join(
            f"{count} at level {each}" for each, count in zip(*np.unique(level[nodes], return_counts=True), strict=True)
        )
        on = f" on {len(boards)} boards" if boards else ""
        directors.append(f"{name!r}: {len(nodes)} chips{on} ({chips})")
    return tuple(sorted(directors))


def check_rails_alike(fabrics: Sequence[Fabric], hosts: Hosts) -> Iterator[FabricFinding]:
    """Find hosts that are on some rails only, and differences in size between rails."""
    if len(fabrics) < 2:
        return
    for rail in range(len(fabrics)):
        missing = np.flatnonzero(hosts.lid[:, rail] == NO_LID)
        if len(missing):
            what = f"{len(missing)} of {len(hosts.name)} hosts are not on rail {rail}"
            yield FabricFinding(
                FindingKind.MISSING_HOST, rail, what, tuple(hosts.name[host] for host in missing.tolist())
            )
    yield from _check_adapters(fabrics, hosts)
    for what, sizes in (
        ("switches", [int((fabric.node_kind == NodeKind.SWITCH).sum()) for fabric in fabrics]),
        (
            "links between switches",
            [int((fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1).sum()) for fabric in fabrics],
        ),
        ("hosts", [int((hosts.lid[:, rail] != NO_LID).sum()) for rail in range(len(fabrics))]),
    ):
        if len(set(sizes)) > 1:
            smallest = int(np.argmin(sizes))
            words = f"the rails have different numbers of {what}: {', '.join(map(str, sizes))}"
            yield FabricFinding(FindingKind.RAILS_DIFFER, smallest, words, (f"rail {smallest}",))


def _check_adapters(fabrics: Sequence[Fabric], hosts: Hosts) -> Iterator[FabricFinding]:
    """Find hosts that lack adapters on a rail, and hosts on which the adapters of two rails are swapped.

    A host lacks no adapter if at least two hosts, and at least a quarter of all hosts, have the same numbers of
    adapters by rail. If at least half of all hosts lack adapters, no host is reported. To find swaps, hosts with equal
    adapter names are compared.
    """
    names: list[list[set[str]]] = []
    for fabric, of_node in zip(fabrics, hosts.of_node, strict=True):
        adapters: list[set[str]] = [set() for _ in hosts.name]
        for node in np.flatnonzero(of_node != NO_HOST).tolist():
            words = adapter_name(fabric.node_name[node], hosts.name[of_node[node]]).split()
            adapters[of_node[node]].add(words[-1] if words else "")
        names.append(adapters)
    count = np.array([[len(each) for each in adapters] for adapters in names])
    _, kind, hosts_alike = np.unique(count, axis=1, return_inverse=True, return_counts=True)
    is_usual = (hosts_alike >= max(2, len(hosts.name) / 4))[kind.ravel()]
    lacking = (count > 0) & (count < count.max(axis=0)) & ~is_usual
    if 2 * lacking.any(axis=0).sum() < len(hosts.name):
        for rail in np.flatnonzero(lacking.any(axis=1)).tolist():
            few = np.flatnonzero(lacking[rail]).tolist()
            what = f"{len(few)} of {len(hosts.name)} hosts have fewer adapters on rail {rail} than on others"
            places = tuple(f"{hosts.name[host]} has {count[rail, host]} of {count[:, host].max()}" for host in few)
            yield FabricFinding(FindingKind.MISSING_HOST, rail, what, places)
    alike: dict[frozenset[str], list[int]] = defaultdict(list)
    for host in range(len(hosts.name)):
        alike[frozenset().union(*(adapters[host] for adapters in names))].append(host)
    for one, other in combinations(range(len(names)), 2):
        swapped = [host for each in alike.values() for host in _find_swapped(names[one], names[other], each)]
        if swapped:
            what = f"{count_of(len(swapped), 'host')} with the adapters of rails {one} and {other} swapped"
            places = tuple(hosts.name[host] for host in sorted(swapped))
            yield FabricFinding(FindingKind.RAILS_SWAPPED, one, what, places)


def _find_swapped(one: Sequence[Set[str]], other: Sequence[Set[str]], hosts: Sequence[int]) -> list[int]:
    """Return the hosts with swapped adapters: on each of two rails is an adapter that is usually on the other rail.

    If at least half of `hosts` have swapped adapters, the result is empty.
    """
    usual, usual_there = (
        Counter(frozenset(rail[host]) for host in hosts).most_common(1)[0][0] for rail in (one, other)
    )
    here, there = usual - usual_there, usual_there - usual
    swapped = [host for host in hosts if one[host] & there and other[host] & here]
    return swapped if 2 * len(swapped) < len(hosts) else []


def describe_health(health: FabricHealth) -> Iterator[str]:
    """Yield lines of text: first the checked rails, then each finding."""
    for number, rail in enumerate(health.rails):
        yield _describe_rail(number, rail)
        if max((*rail.hosts_by_adapters, *rail.hosts_by_ports), default=1) > 1:
            yield f"rail {number}: {_describe_hosts(rail.hosts_by_adapters, rail.hosts_by_ports)}"
        for director in rail.directors:
            yield f"rail {number}: director {director}"
        yield from rail.unused
    if health.interfaces:
        yield f"interfaces: {health.interfaces.text}"
    yield from describe_losses(health.accounts, complete=not health.findings)
    if not health.findings:
        yield "nothing is wrong"
    for finding in health.findings:
        meaning = finding.kind.value
        yield ""
        yield f"rail {finding.rail}: {meaning.name}: {finding.line}"
        # Capitals, so that readers see these findings in a long list.
        text = f"{'ROUTES CANNOT BE TRUSTED: ' if meaning.untrusted else ''}{meaning.text}"
        yield from textwrap.wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")


def _describe_hosts(hosts_by_adapters: Mapping[int, int], hosts_by_ports: Mapping[int, int]) -> str:
    """Return text on how many hosts have each number of adapters and, if different, each number of active ports."""
    parts = [_count_hosts(hosts_by_adapters, "adapter")]
    if hosts_by_ports not in (hosts_by_adapters, {}):
        parts.append(_count_hosts(hosts_by_ports, "active port"))
    return f"{'; '.join(parts)} in one subnet"


def _count_hosts(hosts_by_number: Mapping[int, int], noun: str) -> str:
    return ", ".join(
        f"{count_of(hosts, 'host')} with {count_of(number, noun)}" for number, hosts in hosts_by_number.items()
    )


def _describe_rail(number: int, rail: RailSummary) -> str:
    if rail.tables_from is None:
        return f"rail {number}: {rail.links_from}: cannot be used"
    routers = f", {count_of(rail.routers, 'router')}" if rail.routers else ""
    adaptive = "; switches route adaptively: the tables show only one of several paths" if rail.adaptive else ""
    return (
        f"rail {number}: {rail.links_from}: {count_of(rail.switches, 'switch')}, "
        f"{count_of(rail.adapters, 'adapter')}{routers}, {count_of(rail.links, 'link')}; "
        f"{count_of(rail.tables, 'table')} from {rail.tables_from}{adaptive}"
    )
