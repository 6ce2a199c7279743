# SPDX-License-Identifier: Apache-2.0
"""IBPROF_SOURCE=exact: what makes MPI use transports of which every byte is seen at the ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

ASKED = "IBPROF_SOURCE"
EXACT = "exact"

TRANSPORTS = "UCX_TLS"
SEEN_TRANSPORTS = "rc_verbs,ud_verbs,self,sm"
"""UCX's transports that post by verbs; its direct ones for mlx5 go past them. Within a host nothing touches a port."""


def exact_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Give the variables to set, whatever they are now; none when it was not asked for.

    Args:
        environment: that the job is started in.
    """
    return {TRANSPORTS: SEEN_TRANSPORTS} if environment.get(ASKED, "").lower() == EXACT else {}


def describe_exact(environment: Mapping[str, str]) -> Iterator[str]:
    """Say what that changes, a sentence each; nothing when it was not asked for."""
    if not exact_settings(environment):
        return
    if (chosen := environment.get(TRANSPORTS)) and chosen != SEEN_TRANSPORTS:
        yield f"{TRANSPORTS}={chosen} becomes {SEEN_TRANSPORTS}, since {ASKED}={EXACT}"
    yield (
        f"{ASKED}={EXACT}: {TRANSPORTS}={SEEN_TRANSPORTS}, so that all work requests are seen. This changes how fast "
        "the job communicates: take sizes and rails from this run, not times"
    )
