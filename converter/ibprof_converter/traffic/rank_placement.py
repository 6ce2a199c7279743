# SPDX-License-Identifier: Apache-2.0
"""Place ranks as recorded, by a rule, or from a file. Write a note if a run used rails without a given fabric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ibprof.errors import IbprofError, InputError, UsageError, quote_found
from ibprof.native.libraries import sum_exactly
from ibprof.profile.port_sums import PortIndex, describe_unmeasured
from ibprof.profile.profile_data import Host, Port, Profile
from ibprof_converter.choices import PLACEMENT_FORMS
from ibprof_converter.fabric.dump_files import peek_dump
from ibprof_converter.fabric.fabric_graph import LIDS, NO_NODE, Fabric, NodeKind
from ibprof_converter.fabric.node_names import natural_key
from ibprof_converter.traffic.csv_tables import read_number, read_rows
from ibprof_converter.traffic.hosts import NO_HOST, HostIndex, Hosts, stack_ports
from ibprof_converter.traffic.patterns import shuffle
from ibprof_converter.traffic.traffic_data import NO_LID

if TYPE_CHECKING:
    from ibprof_converter.traffic.recorded_adapters import PortLids, RankAdapters

_RANDOM = "random:"

_SLURM = "slurm:"


_BY_NAME = "host(s) found by name, since the fabric has none of their port GUIDs"

_BY_LID = "host(s) found by LID alone (is this the fabric that the job ran on?)"

_NOWHERE = "host(s) of the run are not in the fabric (--placement puts their ranks on hosts of the fabric)"

_WHOLE = 0.99
"""If a rail carries at least this share of the bytes, ibprof writes no note on other rails."""


@dataclass(frozen=True, slots=True)
class RankPlacement:
    """Machine and ports of each rank.

    Attributes:
        host: int32 [rank], machine of each rank, `NO_HOST` if unknown.
        ports: int32 [rank, rail, adapter], LIDs of the ports of the rank's machine, in the natural order of the ports'
            names; `NO_LID` fills the rest. If the placement names a rank's port, the rank has only this port.
        notes: sentences on the source of the ranks' ports.
        nic: label of the method that chose the ports (`Traffic.nic`), if ranks are placed on adapters; else None.
        adapters: adapters that the ranks chose, and adapters near the ranks; None unless ranks are placed as recorded.
        in_turn: int32 [rank, rail, turn], ports that the ranks of a machine use in turn, as in `Hosts`; None if no
            machine lacks an adapter.
    """

    host: npt.NDArray[np.int32]
    ports: npt.NDArray[np.int32]
    notes: tuple[str, ...]
    nic: str | None = None
    adapters: RankAdapters | None = None
    in_turn: npt.NDArray[np.int32] | None = None

    @property
    def lid(self) -> npt.NDArray[np.int32]:
        """LID of the first port of each rank's machine on each rail: int32 [rank, rail], `NO_LID` without a port."""
        return self.ports[:, :, 0]


def place_ranks_by_rule(
    rule: str, hosts: Hosts, fabrics: Sequence[Fabric], ranks: int, slots: int = 1
) -> RankPlacement:
    """Return the placement that the value of `--placement` describes.

    Args:
        rule: `packed` fills one leaf switch after the other, `spread` uses a host of each leaf switch in turn,
            `random:SEED` uses random hosts. `slurm:` with a host list assigns ranks in blocks. Any other text is the
            path of a file.
        slots: consecutive ranks per host, for `packed`, `spread` and `random`.

    Raises:
        UsageError: there are fewer slots than ranks, or the rule is invalid.
        InputError: the file does not place these ranks on these hosts.
    """
    if rule.startswith(_SLURM):
        from ibprof_converter.traffic.hostlists import deal_ranks  # noqa: PLC0415  (few placements are lists of hosts)

        named = deal_ranks(rule.removeprefix(_SLURM), ranks)
        return _place_ranks_on(
            named,
            hosts,
            f"--placement {rule}",
            lambda name, why: UsageError(f"--placement {rule}: no host {quote_found(name)}{why}"),
        )
    order = _order_of_rule(rule, hosts)
    if order is None:
        return _read_placement(Path(rule), hosts, fabrics, ranks)
    if ranks > len(order) * slots:
        need = "a host each" if slots == 1 else f"{-(-ranks // slots)} hosts"
        raise UsageError(
            f"--placement {rule}: {ranks} ranks need {need}, and the fabric has {len(order)} hosts; "
            "a CSV file rank,host can put several ranks on one host"
        )
    chosen = np.repeat(order, slots)[:ranks].astype(np.int32)
    return _place_on_hosts(chosen, hosts, f"--placement {rule}")


def _place_on_hosts(host: npt.NDArray[np.int32], hosts: Hosts, source: str) -> RankPlacement:
    """Place each rank on a host, with all ports of the host.

    Args:
        host: int32 [rank], index of each rank's host.
    """
    in_turn = None if hosts.in_turn is None else hosts.in_turn[host]
    return RankPlacement(host, hosts.ports[host], (f"ranks are placed by {source}",), in_turn=in_turn)


def _order_of_rule(rule: str, hosts: Hosts) -> npt.NDArray[np.intp] | None:
    count = len(hosts.name)
    if rule == "packed":
        return np.arange(count)
    if rule == "spread":
        # Use the first host of each leaf switch, then the second host of each leaf switch, and so on.
        first = np.searchsorted(hosts.leaf, hosts.leaf)
        return np.lexsort((hosts.leaf, np.arange(count) - first))
    if rule.startswith(_RANDOM):
        seed = rule.removeprefix(_RANDOM)
        if not (seed.isascii() and seed.isdigit() and len(seed) < 12):
            raise UsageError(f"--placement {rule}: expected {_RANDOM}SEED, where SEED is a number, found {seed!r}")
        return shuffle(count, int(seed))
    return None


def _read_placement(path: Path, hosts: Hosts, fabrics: Sequence[Fabric], ranks: int) -> RankPlacement:
    if path.is_dir() or not path.exists():
        raise UsageError(f"--placement {path}: no such file; expected {PLACEMENT_FORMS}")
    from ibprof_converter.traffic.hostlists import find_line, looks_like_host_list, read_host_list  # noqa: PLC0415  (few are files)

    if path.is_file() and looks_like_host_list(peek_dump(path).decode("utf-8", "backslashreplace")):
        named = read_host_list(path, ranks)
        return _place_ranks_on(
            named,
            hosts,
            str(path),
            lambda name, why: InputError(path, find_line(path, name), "a host of the fabric", quote_found(name) + why),
        )
    host = np.full(ranks, NO_HOST, np.int32)
    ports = np.full((ranks, *hosts.ports.shape[1:]), NO_LID, np.int32)
    index = HostIndex(hosts.name, hosts.shared)
    seen: set[int] = set()
    rows = read_rows(path)
    _, header = next(rows, (1, [""]))
    form = tuple(column.strip().lower() for column in header)
    if form not in {("rank", "host"), ("rank", "lid")}:
        raise InputError(path, 1, "the header rank,host or rank,lid", quote_found(",".join(header)))
    for line, fields in rows:
        if len(fields) != 2:
            raise InputError(path, line, "2 columns", f"{len(fields)}")
        rank = read_number(path, line, fields[0], "a rank", ranks)
        if rank in seen:
            raise InputError(path, line, "each rank once", f"rank {rank} again")
        seen.add(rank)
        if form[1] == "host":
            name = fields[1].strip()
            found = index.find(name)
            if found is None:
                raise InputError(path, line, "a host of the fabric", quote_found(name) + index.describe_unknown(name))
            host[rank] = found
        else:
            host[rank], ports[rank] = _host_of_lid(path, line, fields[1], hosts, fabrics[0])
    if len(seen) < ranks:
        missing = next(rank for rank in range(ranks) if rank not in seen)
        raise InputError(path, None, f"a host for each of the {ranks} ranks", f"none for rank {missing}")
    if form[1] == "host":
        return _place_on_hosts(host, hosts, str(path))
    return RankPlacement(host=host, ports=ports, notes=(f"ranks are placed by {path}",))


def _place_ranks_on(
    named: Sequence[str], hosts: Hosts, source: str, refuse: Callable[[str, str], IbprofError]
) -> RankPlacement:
    """Place each rank on the host with the given name.

    Args:
        named: host name of each rank.
        source: the rule or file, for the notes.
        refuse: function that returns an error for an unknown name and the reason.
    """
    index = HostIndex(hosts.name, hosts.shared)
    found = {name: index.find(name) for name in dict.fromkeys(named)}
    for name, host in found.items():
        if host is None:
            raise refuse(name, index.describe_unknown(name))
    chosen = np.array([found[name] for name in named], np.int32)
    return _place_on_hosts(chosen, hosts, source)


def _host_of_lid(path: Path, line: int, text: str, hosts: Hosts, fabric: Fabric) -> tuple[int, npt.NDArray[np.int32]]:
    """Return the host with LID `text` on rail 0, and its LIDs: [rail, adapter], with only `text` on rail 0."""
    value = read_number(path, line, text, "a LID", LIDS)
    node = int(fabric.lid_node[value])
    host = NO_HOST if node == NO_NODE else int(hosts.of_node[0][node])
    if host == NO_HOST:
        raise InputError(path, line, "a LID of a host of the (first) fabric", quote_found(text))
    ports = hosts.ports[host].copy()
    ports[0] = NO_LID
    ports[0, 0] = value
    return host, ports


def place_ranks_as_recorded(run: Profile, hosts: Hosts, fabrics: Sequence[Fabric], ranks: int) -> RankPlacement:
    """Place each rank on the machine where it ran.

    A rank gets all active ports of its machine that are in the fabrics, in the natural order of the ports' names. The
    machine is found by GUIDs of active InfiniBand ports, else by name, else by the ports' LIDs. Notes report machines
    that are found by LID, because other fabrics have the same LIDs, and machines with recorded GUIDs that are found by
    name.
    """
    ports = lids_by_port_guid(fabrics)
    index = HostIndex(hosts.name, hosts.shared)
    lids_of_host: list[list[list[int]]] = []
    ports_of_host: list[PortLids] = []
    chosen_of_host: list[PortLids] = []
    found: dict[str, list[str]] = {_BY_NAME: [], _BY_LID: [], _NOWHERE: []}
    moved = 0
    for host in run.hosts:
        found_ports, changed = _ports_of_guids(_active_ports(host), ports, hosts.rails)
        _add_planes(found_ports, fabrics)
        moved += changed
        chosen = _drop_left_out(found_ports, fabrics)
        ports_of_host.append(found_ports)
        chosen_of_host.append(chosen)
        lids = [[lid for _, lid in some] for some in chosen]
        if not any(lids):
            if (match := index.find(host.name)) is not None:
                lids, how = [[lid for lid in some if lid != NO_LID] for some in hosts.ports[match].tolist()], _BY_NAME
            else:
                lids = _known_lids(_active_ports(host), fabrics)
                how = _BY_LID if any(lids) else _NOWHERE
            # A host without recorded ports can be found only by name: write no note.
            if how != _BY_NAME or _active_ports(host):
                found[how].append(host.name)
        lids_of_host.append(lids)
    host_of_rank = np.full(ranks, NO_HOST, np.int32)
    for rank in run.ranks:
        host_of_rank[rank.rank] = rank.host
    # `NO_HOST` indexes the last element, which has no port.
    ports_of_rank = stack_ports([*lids_of_host, []], hosts.rails)[host_of_rank]
    in_turn = _find_turns([*lids_of_host, []], hosts, fabrics)
    notes = [f"{len(names)} {how}: {_some(names)}" for how, names in found.items() if names]
    if moved:
        notes.append(f"{moved} port(s) have a different LID in the fabric than in the run; the fabric's LID is used")
    from ibprof_converter.traffic.recorded_adapters import find_rank_adapters  # noqa: PLC0415  (most placements are not recorded)

    adapters = find_rank_adapters(run, ports_of_host, chosen_of_host, ranks, hosts.rails)
    return RankPlacement(
        host=host_of_rank,
        ports=ports_of_rank,
        notes=tuple(notes),
        adapters=adapters,
        in_turn=None if in_turn is None else in_turn[host_of_rank],
    )


def _find_turns(
    lids_of_machine: Sequence[Sequence[Sequence[int]]], hosts: Hosts, fabrics: Sequence[Fabric]
) -> npt.NDArray[np.int32] | None:
    """Return the ports that the ranks of each machine use in turn, as in `Hosts`: int32 [machine, rail, turn].

    An adapter is missing if the fabric lacks it, or if it was inactive in the recorded run. The result is None if no
    machine has a missing adapter.
    """
    turns: list[list[list[int]]] = []
    for machine in lids_of_machine:
        turns.append([])
        for rail, own in enumerate(machine):
            host = int(hosts.of_node[rail][fabrics[rail].lid_node[own[0]]]) if len(own) > 1 else NO_HOST
            whole = [lid for lid in hosts.turns[host, rail].tolist() if lid != NO_LID] if host != NO_HOST else []
            if len(whole) <= len(own) or not set(own) <= set(whole):
                whole = list(own)
            turns[-1].append([lid if lid in own else own[turn % len(own)] for turn, lid in enumerate(whole)])
    if turns == [[[*own] for own in machine] for machine in lids_of_machine]:
        return None
    return stack_ports(turns, hosts.rails)


def _active_ports(host: Host) -> list[Port]:
    active = [port for port in host.ports if port.link_layer == "InfiniBand" and port.is_active]
    return sorted(active, key=lambda port: (natural_key(port.device), port.port))


def lids_by_port_guid(fabrics: Sequence[Fabric]) -> dict[int, tuple[int, int]]:
    """Return PORT GUID -> (rail, base LID) of each adapter port."""
    ports: dict[int, tuple[int, int]] = {}
    for rail, fabric in enumerate(fabrics):
        is_adapter = fabric.node_kind[fabric.port_node] == NodeKind.CA
        for guid, lid in zip(fabric.port_guid[is_adapter].tolist(), fabric.port_lid[is_adapter].tolist(), strict=True):
            ports[guid] = (rail, lid)
    return ports


def _ports_of_guids(
    active: list[Port], ports: dict[int, tuple[int, int]], rails: int
) -> tuple[list[list[tuple[Port, int]]], int]:
    """Return a machine's ports with LIDs, for each rail; and the number of ports that had another LID in the run."""
    found: list[list[tuple[Port, int]]] = [[] for _ in range(rails)]
    moved = 0
    for port in active:
        rail, lid = ports.get(guid_number(port.port_guid), (0, NO_LID))
        if lid != NO_LID and all(lid != known for _, known in found[rail]):
            found[rail].append((port, lid))
            moved += lid != port.lid
    return found, moved


def _drop_left_out(found: PortLids, fabrics: Sequence[Fabric]) -> PortLids:
    """Remove a machine's ports of left-out adapters, unless no port would remain."""
    kept = [
        [(port, lid) for port, lid in some if not fabric.is_left_out[fabric.lid_node[lid]]]
        for some, fabric in zip(found, fabrics, strict=True)
    ]
    return kept if any(kept) else found


def _add_planes(found: Sequence[list[tuple[Port, int]]], fabrics: Sequence[Fabric]) -> None:
    """Add each adapter's ports on other planes to `found`: a host reports one port for all planes of an adapter."""
    for rail, fabric in enumerate(fabrics):
        others = [each for each, other in enumerate(fabrics) if other.plane_of and other.plane_of == fabric.plane_of]
        for port, lid in list(found[rail]):
            node = int(fabric.lid_node[lid])
            for each in others:
                other = fabrics[each]
                alike = other.node_guid[other.port_node] == fabric.node_guid[node]
                if not alike.any():  # compare names: some dumps have one NODE GUID per plane
                    alike = np.array([other.node_name[own] == fabric.node_name[node] for own in other.port_node])
                for other_lid in other.port_lid[alike].tolist():
                    if all(other_lid != known for _, known in found[each]):
                        found[each].append((port, other_lid))


def _known_lids(active: list[Port], fabrics: Sequence[Fabric]) -> list[list[int]]:
    """Return the recorded LIDs that are LIDs of hosts in the fabric of a rail, for each rail.

    With several rails, port i is searched only on rail i. On a single rail, all ports are searched.
    """
    lids: list[list[int]] = [[] for _ in fabrics]
    rails = [0] * len(active) if len(fabrics) == 1 else range(len(fabrics))
    for rail, port in zip(rails, active, strict=False):
        lid = port.lid if port.lid is not None and port.lid < LIDS else NO_LID
        node = fabrics[rail].lid_node[lid]
        if node != NO_NODE and fabrics[rail].node_kind[node] == NodeKind.CA:
            lids[rail].append(lid)
    return lids


def guid_number(text: str) -> int:
    """Return a GUID as a number; 0 if it is invalid."""
    try:
        return int(text, 16)
    except ValueError:
        return 0


def _some(names: list[str], limit: int = 5) -> str:
    listed = ", ".join(quote_found(name) for name in names[:limit])
    return listed if len(names) <= limit else f"{listed} and {len(names) - limit} more"


def describe_other_rails(run: Profile, fabric: Fabric) -> str | None:
    """Return a note if bytes of a run used, or may have used, other rails than `fabric`; else None."""
    here = lids_by_port_guid([fabric])
    if describe_unmeasured(run) is None:
        index = PortIndex(run)
        is_here = np.array(
            [any(guid_number(end.port.port_guid) in here for end in index.ends(pair) if end.port) for pair in run.pairs]
        )
        transfers = run.transfers
        part = sum_exactly(transfers.bytes[is_here[transfers.pair]]) / max(sum_exactly(transfers.bytes), 1)
        if not 0 < part < _WHOLE:
            return None
        return (
            f"{part:.0%} of the run's bytes took this rail by measurement. The simulation sends all bytes over this "
            "rail, so the simulated time is too long"
        )
    used = {rank.host for rank in run.ranks}
    lacking = 0
    for number, host in enumerate(run.hosts):
        active = [port for port in host.ports if port.is_active and port.lid and number in used]
        found = [guid_number(port.port_guid) in here for port in active]
        lacking += any(found) and not all(found)
    if not lacking:
        return None
    hosts = "1 host has an active port" if lacking == 1 else f"{lacking} hosts have active ports"
    return (
        f"{hosts} on other rails; the simulation sends all bytes of the run over this rail. If the run used several "
        "rails, the simulated time is too long"
    )
