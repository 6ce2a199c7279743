# SPDX-License-Identifier: Apache-2.0
"""Commands that dump a fabric, for whoever may run them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """A command for an administrator.

    Attributes:
        command: to type.
        files: what it leaves, to hand over.
        remark: where and how to run it.
    """

    command: str
    files: tuple[str, ...]
    remark: str


REQUESTS = (
    DumpRequest(
        "ibdiagnet -o fabric",
        ("fabric/ibdiagnet.lst", "fabric/ibdiagnet.fdbs"),
        "on any node of the subnet, as root; on a busy fabric look whether every switch is in the .fdbs",
    ),
    DumpRequest(
        "echo 'log_flags 0x43' >> /etc/opensm/opensm.conf && kill -HUP $(pidof opensm)",
        ("/var/log/opensm-subnet.lst", "/var/log/opensm.fdbs", "/var/cache/opensm/guid2lid"),
        "instead of ibdiagnet, on the host of OpenSM, which goes on running; these have the links' true speeds and the "
        "LMC (they lie elsewhere where dump_files_dir or OSM_CACHE_DIR is set)",
    ),
    DumpRequest(
        "ibnetdiscover > ibnetdiscover.out && dump_fts > dump_fts.out",
        ("ibnetdiscover.out", "dump_fts.out"),
        "instead of the above, on any node of the subnet, as root, where infiniband-diags is all there is",
    ),
)
