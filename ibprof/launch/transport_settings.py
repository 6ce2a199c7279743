# SPDX-License-Identifier: Apache-2.0
"""Return settings of MPI's transports for some recordings, and settings that load NCCL's profiler plug-in.

IBPROF_SOURCE=exact selects transports that post all bytes by verbs, where ibprof records bytes by port.
IBPROF_INTRANODE=1 sends messages within a host through the network layer, for trials on one host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE_VARIABLE = "IBPROF_SOURCE"
EXACT = "exact"

TRANSPORTS = "UCX_TLS"
SEEN_TRANSPORTS = "rc_verbs,ud_verbs,self,sm"
"""Value of UCX_TLS: transports that post messages by verbs, and transports within a host."""


INTRANODE_VARIABLE = "IBPROF_INTRANODE"

_SETTINGS = {
    # MPICH and derived libraries.
    "MPIR_CVAR_NOLOCAL": "1",
    # Intel MPI.
    "I_MPI_FABRICS": "ofi",
    "I_MPI_COLL_INTRANODE": "pt2pt",
    # Open MPI: the shared-memory component has different names in different versions.
    "OMPI_MCA_btl": "^vader,sm,smcuda",
}


def exact_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that select fully recorded transports; empty if IBPROF_SOURCE is not exact."""
    return {TRANSPORTS: SEEN_TRANSPORTS} if environment.get(SOURCE_VARIABLE, "").lower() == EXACT else {}


def describe_exact(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield sentences on the variables that `exact_settings` sets; nothing if IBPROF_SOURCE is not exact."""
    if not exact_settings(environment):
        return
    if (chosen := environment.get(TRANSPORTS)) and chosen != SEEN_TRANSPORTS:
        yield f"{TRANSPORTS}={chosen} becomes {SEEN_TRANSPORTS}, because of {SOURCE_VARIABLE}={EXACT}"
    yield (
        f"{SOURCE_VARIABLE}={EXACT} sets {TRANSPORTS}={SEEN_TRANSPORTS}, so that all work requests are recorded. "
        "This changes the job's performance: use sizes and rails from this run, not times"
    )


def intranode_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that IBPROF_INTRANODE sets and the user has not set; none if IBPROF_INTRANODE is off."""
    if environment.get(INTRANODE_VARIABLE, "0") in ("", "0"):
        return {}
    return {name: value for name, value in _SETTINGS.items() if name not in environment}


NCCL_PLUGIN = "NCCL_PROFILER_PLUGIN"
NCCL_NEXT = "IBPROF_NCCL_NEXT"

_LONGEST_NCCL_NAME = 254
"""Limit of a plug-in's name in NCCL, in bytes (MAX_STR_LEN of src/plugin/plugin_open.cc)."""


def nccl_settings(environment: Mapping[str, str], plugin: Path) -> dict[str, str]:
    """Return the variables that make NCCL and RCCL load ibprof's profiler plug-in.

    ibprof's plug-in loads the user's own plug-in.

    No variables are returned if the user switches profilers off (`none`), if ibprof's plug-in is not built, or if the
    plug-in's path is too long.

    Args:
        plugin: path of libnccl-profiler-ibprof.so.
    """
    present = environment.get(NCCL_PLUGIN, "")
    if present.lower() == "none" or len(str(plugin).encode()) > _LONGEST_NCCL_NAME or not plugin.is_file():
        return {}
    chained = {} if present in ("", str(plugin)) else {NCCL_NEXT: present}
    return {NCCL_PLUGIN: str(plugin)} | chained
