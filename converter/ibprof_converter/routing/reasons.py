# SPDX-License-Identifier: Apache-2.0
"""Reasons why a flow arrives or does not."""

from __future__ import annotations

from enum import IntEnum, auto

from ibprof.native.headers import kernels_headers


class Reason(IntEnum):
    """How a path ends. The first two are no fault; all others leave a flow's bytes unrouted."""

    _generate_next_value_ = kernels_headers().numbers_of("ibp_reason", "IBP_")
    DELIVERED = auto()
    SAME_PORT = auto()
    UNKNOWN_LID = auto()
    UNKNOWN_PORT = auto()
    MISSING_TABLE = auto()
    UNREACHABLE = auto()
    WRONG_END = auto()
    LOOP = auto()

    @property
    def label(self) -> str:
        """Name in reports."""
        return _LABELS[self]

    @property
    def arrives(self) -> bool:
        """True if the bytes reach their destination."""
        return self <= Reason.SAME_PORT


_LABELS = {
    Reason.DELIVERED: "delivered",
    Reason.SAME_PORT: "same port",  # The adapter loops it back: no link is loaded.
    Reason.UNKNOWN_LID: "unknown LID",  # Source or destination belongs to no port of the fabric.
    Reason.UNKNOWN_PORT: "unknown port",  # The egress port has no active link.
    Reason.MISSING_TABLE: "missing table",  # A switch on the path has no forwarding table.
    Reason.UNREACHABLE: "unreachable LID",  # A switch on the path has no entry for the destination.
    Reason.WRONG_END: "wrong end",  # The route ends at a port that is not the destination.
    Reason.LOOP: "loop",
}
