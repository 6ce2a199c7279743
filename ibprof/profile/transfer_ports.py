# SPDX-License-Identifier: Apache-2.0
"""The ports at both ends of work requests, and whether these carried all that a run sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ibprof.native.kernel_library import sum_exactly
from ibprof.profile.profile_data import Direction, Kind, Port, PortPair, Profile

_COMPLETE = 0.99
"""Work requests carry headers in addition to user data, but a message may still be in transit when MPI ends."""

_PREFIX_DIGITS = 19
"""Digits of a GID's subnet prefix, as sysfs writes it."""


@dataclass(frozen=True, slots=True)
class PortEnd:
    """One end of work requests.

    Attributes:
        host: index into `Profile.hosts`; None where no recorded host has the port.
        port: None where it was not recorded.
        name: the port's GUID, else its GID, else its LID and the local port.
        label: host, device and number, where known.
    """

    host: int | None
    port: Port | None
    name: str
    label: str


class PortIndex:
    """Find the recorded port of a GID or a LID.

    Args:
        run: the profile with the ports.
    """

    def __init__(self, run: Profile) -> None:
        self._hosts = run.hosts
        self._by_gid: dict[str, list[_HostPort]] = {}
        self._by_lid: dict[int, list[_HostPort]] = {}
        self._by_name: dict[tuple[int, str, int], Port] = {}
        for number, host in enumerate(run.hosts):
            for port in host.ports:
                self._by_name[number, port.device, port.port] = port
                for gid in set(port.gids):
                    self._by_gid.setdefault(gid, []).append((number, port))
                for lid in range(port.lid, port.lid + (1 << port.lmc)) if port.lid is not None and port.lmc < 8 else ():
                    self._by_lid.setdefault(lid, []).append((number, port))

    def ends(self, pair: PortPair) -> tuple[PortEnd, PortEnd]:
        """Return the local and the remote end of a pair."""
        own = self._own(pair)
        return own, self._remote(pair, own)

    def _own(self, pair: PortPair) -> PortEnd:
        found = self._by_name.get((pair.host, pair.device, pair.port))
        label = self._label(pair.host, pair.device or "unknown device", pair.port)
        return PortEnd(pair.host, found, found.port_guid if found else pair.gid or label, label)

    def _remote(self, pair: PortPair, own: PortEnd) -> PortEnd:
        found = _only(self._by_gid.get(pair.remote_gid, []))
        if found is None and pair.remote_lid is not None:
            found = self._with_lid(pair.remote_lid, own)
        if found:
            host, port = found
            return PortEnd(host, port, port.port_guid, self._label(host, port.device, port.port))
        if pair.remote_gid:
            return PortEnd(None, None, pair.remote_gid, "")
        name = f"LID {pair.remote_lid} from {own.label}" if pair.remote_lid is not None else f"unknown from {own.label}"
        return PortEnd(None, None, name, "")

    def _label(self, host: int, device: str, port: int) -> str:
        return f"{self._hosts[host].name} {device}/{port}"

    def _with_lid(self, lid: int, own: PortEnd) -> _HostPort | None:
        """Return the port of a LID. Each subnet has its own LIDs: of several ports those like the local one are chosen.

        Adapters of one kind are mostly cabled alike, so a device of the same name is on the same subnet.
        """
        found = self._by_lid.get(lid, [])
        if len(found) > 1 and own.port:
            found = [each for each in found if _prefix(each[1]) == _prefix(own.port)] or found
        if len(found) > 1 and own.port:
            found = [each for each in found if (each[1].device, each[1].port) == (own.port.device, own.port.port)]
        return _only(found)


_HostPort = tuple[int, Port]
"""A port and the number of its host."""


def _prefix(port: Port) -> str:
    return port.gids[0][:_PREFIX_DIGITS] if port.gids else ""


def _only(found: Sequence[_HostPort]) -> _HostPort | None:
    return found[0] if len(found) == 1 else None


def bytes_posted(run: Profile) -> int:
    """Return the bytes posted to queue pairs between different ports."""
    own = np.array([_is_loop(pair) for pair in run.pairs], bool)
    return sum_exactly(run.transfers.bytes[~own[run.transfers.pair]]) if len(own) else 0


def _is_loop(pair: PortPair) -> bool:
    """Return whether a pair leads from a port to itself, so that no wire carries it."""
    by_gid = bool(pair.gid) and pair.gid == pair.remote_gid
    return by_gid or (pair.lid is not None and pair.lid == pair.remote_lid)


def describe_unmeasured(run: Profile) -> str | None:
    """Return why recorded work requests are not all that was sent; None where they are, as far as is known."""
    posted = bytes_posted(run)
    if not posted:
        return "no work requests were recorded at queue pairs"
    if unseen := sum(rank.queue_pairs_unseen for rank in run.ranks):
        return f"{unseen} queue pair(s) bypass verbs (vendors' calls; IBPROF_SOURCE=exact selects recorded transports)"
    between = _bytes_between_hosts(run)
    if posted < _COMPLETE * between:
        return f"of {between} bytes between hosts only {posted} were recorded at queue pairs: MPI also used others"
    return None


def _bytes_between_hosts(run: Profile) -> int:
    """Return what ranks sent to ranks on other hosts, by the source that knows ranks."""
    counters = run.counters
    host = np.full(run.world_size + 1, -1, np.int64)
    for rank in run.ranks:
        if rank.rank < run.world_size:
            host[rank.rank] = rank.host
    sent = (counters.kind == Kind.USER) & (counters.direction != Direction.RECEIVED)
    mine, theirs = host[counters.rank[sent]], host[np.minimum(counters.peer[sent], run.world_size)]
    apart = (mine >= 0) & (theirs >= 0) & (mine != theirs)
    sources = counters.source[sent][apart]
    amounts = counters.bytes[sent][apart]
    return max((sum_exactly(amounts[sources == source]) for source in np.unique(sources)), default=0)
