# SPDX-License-Identifier: Apache-2.0
"""Kinds of findings, each with text that explains it to the user."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ibprof_converter.fabric.node_names import show_some


@dataclass(frozen=True, slots=True)
class _Meaning:
    """Meaning of a kind of finding.

    Attributes:
        name: name in JSON and in text.
        untrusted: true if this finding makes routes unreliable.
        text: the meaning of the finding, and advice to the user.
    """

    name: str
    untrusted: bool
    text: str


class FindingKind(Enum):
    """Kinds of findings."""

    CONTRADICTION = _Meaning(
        "contradiction",
        True,
        "the dump contradicts itself: perhaps cables were moved during the dump. Make the dump again",
    )
    LID_TWICE = _Meaning(
        "lid-twice",
        True,
        "packets with this LID go to an unknown port. Make the dump again; if the finding remains, tell the "
        "administrator of the subnet manager",
    )
    NO_TABLES = _Meaning(
        "no-tables",
        True,
        "only links were given, so no route can be followed. Dump the tables with `dump_fts > FILE`, `ibdiagnet -r`, "
        "or `ibroute LID > FILE` for each switch. OpenSM also writes them: `opensm -D 0x43 --dump_files_dir DIR`. "
        "Then also name this file or its folder",
    )
    TABLELESS = _Meaning(
        "modelled-routes",
        True,
        "commands use modelled shortest paths instead of the network's routes, and print a note; `--routes` selects "
        "the model",
    )
    DAMAGED = _Meaning(
        "damaged-dump",
        True,
        "these lines are damaged or missing; ibprof uses all other lines. Make the dump again",
    )
    NO_TABLE = _Meaning(
        "switch-without-table",
        True,
        "these switches did not answer the tool in time, so bytes through these switches count as unrouted. Dump the "
        "tables again, with a longer timeout, or from OpenSM",
    )
    FOREIGN_TABLE = _Meaning(
        "table-without-switch",
        True,
        "the tables contain switches that the list of links lacks: the list is cut, or was made at another time",
    )
    UNLISTED_LID = _Meaning(
        "unlisted-lid",
        True,
        "the tables lead to LIDs that no listed port has. The list of links is cut, or was made at another time. If "
        "ports have an LMC that no given file contains, copy OpenSM's guid2lid next to the list of links",
    )
    NO_LINK = _Meaning(
        "route-without-link",
        True,
        "tables send packets out of ports without a listed active link. The list is cut, or the link went down after "
        "the dump of the tables",
    )
    HALF_LINK = _Meaning(
        "half-link",
        True,
        "only one end of the link is in the list: the file is cut, or a node did not answer",
    )
    UNREACHABLE = _Meaning(
        "unreachable-lid",
        True,
        "packets of some hosts to these LIDs are lost: a switch on the path has no entry for the LID. The subnet "
        "manager has not finished, or found no path",
    )
    LOOP = _Meaning(
        "loop",
        True,
        "packets to these LIDs run in a loop: tables are of different days, or wrong",
    )
    WRONG_END = _Meaning(
        "wrong-end",
        True,
        "routes to these LIDs end at another port: tables and links were dumped at different times",
    )
    NO_ANSWER = _Meaning(
        "no-answer",
        False,
        "the tool got no answer in time: the dump may lack a node, or the end of a table. If so, make the dump again "
        "with a longer timeout (-t)",
    )
    STRAY_LINES = _Meaning(
        "stray-lines",
        False,
        "text of a terminal or of another program was skipped: no part of the dump is lost",
    )
    ENDS_DIFFER = _Meaning(
        "ends-differ",
        False,
        "the ends of a link have different widths or speeds, and ibprof uses the lower rate. The link trained badly, "
        "or changed during the dump",
    )
    INACTIVE = _Meaning(
        "inactive-link",
        False,
        "the link is cabled and up, but carries no data: the subnet manager has not made the link active",
    )
    NO_LID = _Meaning(
        "no-lid",
        False,
        "no packet reaches ports without a LID: the subnet manager has not configured these ports, or has not run. If "
        "no port of the fabric has a LID, commands assign synthetic LIDs and model the routes. Otherwise hosts "
        "without a LID are left out",
    )
    SLOW_LINK = _Meaning(
        "slow-link",
        False,
        "the link is slower than other links between the same levels, so messages on this link take longer. The cable "
        "is bad or badly plugged in, or the adapter is older",
    )
    SLOW_SWITCH = _Meaning(
        "slow-switch",
        False,
        "all links of the switch to a level are slower than usual. The switch is of an older generation, or "
        "cables, firmware or port settings limit the links",
    )
    NARROW_LINK = _Meaning(
        "narrow-link",
        False,
        "not all lanes of the link work: its cable is bad or badly plugged in. Messages on this link take longer",
    )
    UNKNOWN_RATE = _Meaning(
        "unknown-rate",
        False,
        "the dump states no known width or speed of these links, so times on these links are unknown. "
        "The check does not compare these links with others",
    )
    FEW_UPLINKS = _Meaning(
        "few-uplinks",
        False,
        "the switch has fewer uplinks than usual for its level, so the hosts below get less bandwidth",
    )
    FEW_LINKS = _Meaning(
        "few-links",
        False,
        "these switches have fewer links than usual for their level, but no switch below lacks an uplink. The network "
        "was built so, or each switch below lacks the same number of cables",
    )
    RAILS_SWAPPED = _Meaning(
        "rails-swapped",
        False,
        "cables or descriptions are swapped at these hosts: most hosts have these adapters on the other rail. "
        "Messages from and to these hosts may have to change rails",
    )
    UNEVEN_UPLINKS = _Meaning(
        "uneven-uplinks",
        False,
        "the network was built so, or many cables are missing: hosts below switches with few uplinks get less "
        "bandwidth",
    )
    MISSING_CABLE = _Meaning(
        "missing-cable",
        False,
        "the best-fitting regular fabric has these cables, and other switches of the level lack no cable. The missing "
        "cables were unplugged, broken or never plugged in, or the fabric was built so",
    )
    WRONG_CABLE = _Meaning(
        "wrong-cable",
        False,
        "the best-fitting regular fabric lacks this cable: an end is in the wrong switch, or the fabric is irregular",
    )
    SKIPPED_PORTS = _Meaning(
        "skipped-ports",
        False,
        "several switches have no cable at the same port number. A common neighbour is off or was removed, or the "
        "fabric was built so",
    )
    LOOPED_CABLE = _Meaning(
        "looped-cable",
        False,
        "no route uses a cable with both ends in the same switch: an end is in the wrong switch",
    )
    SEPARATE_PARTS = _Meaning(
        "separate-parts",
        False,
        "no packet can pass between the parts. Cables or switches are missing, or the parts are separate planes or "
        "subnets",
    )
    NAMELESS_HOST = _Meaning(
        "nameless-host",
        False,
        "the adapters' descriptions are empty, shared, or only name a model. GUIDs replace the hosts' names, so "
        "ibprof may not find the ranks' hosts. Restart the service that sets descriptions (rdma-ndd), or name "
        "adapters with --node-name-map",
    )
    MISSING_HOST = _Meaning(
        "host-missing-on-rail",
        False,
        "these hosts lack adapters on this rail: messages to and from these hosts take other rails",
    )
    RAILS_DIFFER = _Meaning(
        "rails-differ",
        False,
        "a dump may be cut, or the rails are built differently: do not compare loads of these rails",
    )


@dataclass(frozen=True, slots=True)
class FabricFinding:
    """A defect of a fabric or its dumps.

    Attributes:
        rail: index of the rail, from 0.
        what: text on the defect, with numbers.
        places: the affected nodes, links, LIDs or hosts.
    """

    kind: FindingKind
    rail: int
    what: str
    places: tuple[str, ...]

    @property
    def untrusted(self) -> bool:
        """Return true if this finding makes routes unreliable."""
        return self.kind.value.untrusted

    @property
    def line(self) -> str:
        """The finding and its places, as one line of text."""
        return f"{self.what}: {show_some(self.places)}" if self.places else self.what

    def as_json(self) -> dict[str, object]:
        """Return the finding as a JSON object."""
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
