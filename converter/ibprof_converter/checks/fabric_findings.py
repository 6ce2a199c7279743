# SPDX-License-Identifier: Apache-2.0
"""Kinds of findings, with their meaning for the user."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ibprof_converter.fabric.node_names import show_some


@dataclass(frozen=True, slots=True)
class _Meaning:
    """Meaning of a kind of finding.

    Attributes:
        name: name for scripts.
        untrusted: true if the finding makes routes untrustworthy.
        text: text for people.
    """

    name: str
    untrusted: bool
    text: str


class FindingKind(Enum):
    """Kinds of findings."""

    CONTRADICTION = _Meaning(
        "contradiction",
        True,
        "the dump contradicts itself, as when links were moved while it was taken: take it again",
    )
    LID_TWICE = _Meaning(
        "lid-twice",
        True,
        "nobody can tell where packets to this LID go: take the dump again; if it stays, tell whoever runs the subnet "
        "manager",
    )
    NO_TABLES = _Meaning(
        "no-tables",
        True,
        "only links were given, so no route can be followed. Take the tables with `dump_fts > FILE`, `ibdiagnet -r`, "
        "or `ibroute LID > FILE` for each switch, or let OpenSM write them (`opensm -D 0x43 --dump_files_dir DIR`). "
        "Then name that file or its folder too",
    )
    TABLELESS = _Meaning(
        "modelled-routes",
        True,
        "commands follow shortest paths in place of the network's own routes, and print that they do; `--routes` "
        "selects the model",
    )
    DAMAGED = _Meaning(
        "damaged-dump",
        True,
        "these lines are damaged or missing, and what they listed is not used; all others are: take the dump again",
    )
    NO_TABLE = _Meaning(
        "switch-without-table",
        True,
        "the tool got no answer from these switches in time; what would pass them counts as unrouted: take the tables "
        "again, with a longer timeout, or from OpenSM",
    )
    FOREIGN_TABLE = _Meaning(
        "table-without-switch",
        True,
        "the tables know switches that the list of links lacks: the list is cut, or of another day",
    )
    UNLISTED_LID = _Meaning(
        "unlisted-lid",
        True,
        "the tables lead to LIDs that no listed port has: the list of links is cut, or of another day, or ports have "
        "an LMC that no dump states (OpenSM's guid2lid does)",
    )
    NO_LINK = _Meaning(
        "route-without-link",
        True,
        "tables send packets out of ports at which no active link is listed: the list is cut, or the link went down "
        "since",
    )
    HALF_LINK = _Meaning(
        "half-link",
        True,
        "only one of the two ends lists it: the file is cut, or a node did not answer",
    )
    UNREACHABLE = _Meaning(
        "unreachable-lid",
        True,
        "some hosts' packets to these LIDs are lost, for a switch on their path has no entry for them: the subnet "
        "manager has not finished, or found no path",
    )
    LOOP = _Meaning(
        "loop",
        True,
        "packets to these LIDs go round without end: tables of different days, or broken ones",
    )
    WRONG_END = _Meaning(
        "wrong-end",
        True,
        "routes to these LIDs end at another port: tables and links are of different days",
    )
    NO_ANSWER = _Meaning(
        "no-answer",
        False,
        "the tool waited for an answer in vain: a node, or the end of a table, may be missing from the dump. Take it "
        "again with a longer timeout (-t) if so",
    )
    STRAY_LINES = _Meaning(
        "stray-lines",
        False,
        "text of a terminal or of another program, passed over: nothing of the dump is lost",
    )
    ENDS_DIFFER = _Meaning(
        "ends-differ",
        False,
        "the two ends of a link have different widths or speeds, so it trained badly or the dump is of two moments; "
        "the lower rate is used",
    )
    INACTIVE = _Meaning(
        "inactive-link",
        False,
        "cabled and up, but the subnet manager has not made it active: it carries nothing",
    )
    NO_LID = _Meaning(
        "no-lid",
        False,
        "no packet can be addressed to ports without a LID: the subnet manager has not configured them, or it has not "
        "run at all. If no port of the fabric has a LID, commands assign synthetic LIDs and model the routes. If "
        "some ports have one, the hosts without a LID are left out",
    )
    SLOW_LINK = _Meaning(
        "slow-link",
        False,
        "it carries less than links of its kind: a bad or badly seated cable, or an older adapter; what passes waits",
    )
    SLOW_SWITCH = _Meaning(
        "slow-switch",
        False,
        "all of its links to a level are slower than those of its peers. Either it is of an older generation and was "
        "bought so, or something limits it: a speed or width set on its ports, wrong cables, firmware",
    )
    NARROW_LINK = _Meaning(
        "narrow-link",
        False,
        "not all of its lanes work: a bad or badly seated cable; what passes waits",
    )
    UNKNOWN_RATE = _Meaning(
        "unknown-rate",
        False,
        "the dump gives these links no width or speed that is known: times on them are unknown, and they are compared "
        "with no others",
    )
    FEW_UPLINKS = _Meaning(
        "few-uplinks",
        False,
        "fewer cables lead up than from others of its level: hosts below get less of the fabric",
    )
    FEW_LINKS = _Meaning(
        "few-links",
        False,
        "they carry less than others of their level, and switches below have no fewer uplinks: it was built so, or "
        "all cables to them lack one",
    )
    RAILS_SWAPPED = _Meaning(
        "rails-swapped",
        False,
        "other hosts have these adapters on the other rail: cables are swapped at these hosts, or descriptions are. "
        "Messages that stay on one rail elsewhere may cross rails here",
    )
    UNEVEN_UPLINKS = _Meaning(
        "uneven-uplinks",
        False,
        "it was built so, or cables are missing in many places: hosts below those with few get less of the fabric",
    )
    MISSING_CABLE = _Meaning(
        "missing-cable",
        False,
        "the regular fabric that fits best has these cables, and others of the level have theirs: pulled, broken, "
        "never plugged, or the fabric was built so",
    )
    WRONG_CABLE = _Meaning(
        "wrong-cable",
        False,
        "the regular fabric that fits best has no such cable: plugged into the wrong switch, or the fabric was "
        "built so",
    )
    SKIPPED_PORTS = _Meaning(
        "skipped-ports",
        False,
        "these switches skip the same ports: a neighbour of all of them is off or was removed, or they were cabled so",
    )
    LOOPED_CABLE = _Meaning(
        "looped-cable",
        False,
        "both ends are in one switch, so no route uses it: plugged into the wrong switch",
    )
    SEPARATE_PARTS = _Meaning(
        "separate-parts",
        False,
        "no packet can pass from one part to another: cables or switches are missing, or these are planes or subnets "
        "that were built apart",
    )
    NAMELESS_HOST = _Meaning(
        "nameless-host",
        False,
        "their descriptions are empty, an adapter's model, or shared, so GUIDs stand for their hosts, and ranks may "
        "have no place: restart the service that sets descriptions (rdma-ndd), or name them with --node-name-map",
    )
    MISSING_HOST = _Meaning(
        "host-missing-on-rail",
        False,
        "these hosts have no port on this rail: messages to and from them take the others",
    )
    RAILS_DIFFER = _Meaning(
        "rails-differ",
        False,
        "a dump may be cut, or the rails are built differently: loads of the two do not compare",
    )


@dataclass(frozen=True, slots=True)
class FabricFinding:
    """A defect of a fabric or its dumps.

    Attributes:
        rail: the rail's number, from 0.
        what: the defect in words, with numbers.
        places: the affected nodes, links, LIDs or hosts.
    """

    kind: FindingKind
    rail: int
    what: str
    places: tuple[str, ...]

    @property
    def untrusted(self) -> bool:
        """Return true if the finding makes routes untrustworthy."""
        return self.kind.value.untrusted

    @property
    def line(self) -> str:
        """The finding and its places, in one line."""
        return f"{self.what}: {show_some(self.places)}" if self.places else self.what

    def as_json(self) -> dict[str, object]:
        """Return the finding as plain values."""
        meaning = self.kind.value
        return {
            "name": meaning.name,
            "rail": self.rail,
            "what": self.what,
            "count": len(self.places),
            "places": list(self.places),
            "meaning": meaning.text,
            "routes_untrusted": meaning.untrusted,
        }
