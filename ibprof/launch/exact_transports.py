# SPDX-License-Identifier: Apache-2.0
"""IBPROF_SOURCE=exact: settings that make MPI use transports whose every byte is seen at the ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

ASKED = "IBPROF_SOURCE"
EXACT = "exact"

TRANSPORTS = "UCX_TLS"
SEEN_TRANSPORTS = "rc_verbs,ud_verbs,self,sm"
"""UCX's transports that post by verbs; its direct ones for mlx5 bypass them. Within a host nothing uses a port."""


def exact_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to set, regardless of their current values; none if IBPROF_SOURCE is not exact.

    Args:
        environment: of the job.
    """
    return {TRANSPORTS: SEEN_TRANSPORTS} if environment.get(ASKED, "").lower() == EXACT else {}


def describe_exact(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield what these settings change, a sentence each; nothing if IBPROF_SOURCE is not exact."""
    if not exact_settings(environment):
        return
    if (chosen := environment.get(TRANSPORTS)) and chosen != SEEN_TRANSPORTS:
        yield f"{TRANSPORTS}={chosen} becomes {SEEN_TRANSPORTS}, because of {ASKED}={EXACT}"
    yield (
        f"{ASKED}={EXACT}: {TRANSPORTS}={SEEN_TRANSPORTS}, so that all work requests are recorded. This changes the "
        "job's performance: use sizes and rails from this run, not times"
    )
