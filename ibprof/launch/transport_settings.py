# SPDX-License-Identifier: Apache-2.0
"""Settings that change how MPI sends, for recordings that need it; and the plug-in that NCCL loads.

IBPROF_SOURCE=exact selects transports whose every byte is seen at the ports. IBPROF_INTRANODE=1 sends messages within a
host through the network layer, for trials on one host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE_VARIABLE = "IBPROF_SOURCE"
EXACT = "exact"

TRANSPORTS = "UCX_TLS"
SEEN_TRANSPORTS = "rc_verbs,ud_verbs,self,sm"
"""UCX's transports that post by verbs; its direct ones for mlx5 bypass them. Within a host nothing uses a port."""


INTRANODE_VARIABLE = "IBPROF_INTRANODE"

_SETTINGS = {
    # MPICH and derived libraries.
    "MPIR_CVAR_NOLOCAL": "1",
    # Intel MPI.
    "I_MPI_FABRICS": "ofi",
    "I_MPI_COLL_INTRANODE": "pt2pt",
    # Open MPI, whose shared-memory component differs in name between versions.
    "OMPI_MCA_btl": "^vader,sm,smcuda",
}


def exact_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to set, regardless of their current values; none if IBPROF_SOURCE is not exact.

    Args:
        environment: of the job.
    """
    return {TRANSPORTS: SEEN_TRANSPORTS} if environment.get(SOURCE_VARIABLE, "").lower() == EXACT else {}


def describe_exact(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield what these settings change, a sentence each; nothing if IBPROF_SOURCE is not exact."""
    if not exact_settings(environment):
        return
    if (chosen := environment.get(TRANSPORTS)) and chosen != SEEN_TRANSPORTS:
        yield f"{TRANSPORTS}={chosen} becomes {SEEN_TRANSPORTS}, because of {SOURCE_VARIABLE}={EXACT}"
    yield (
        f"{SOURCE_VARIABLE}={EXACT}: {TRANSPORTS}={SEEN_TRANSPORTS}, so that all work requests are recorded. "
        "This changes the job's performance: use sizes and rails from this run, not times"
    )


def intranode_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to set; none if it was not asked for, and none that the user has set.

    Args:
        environment: of the job.
    """
    if environment.get(INTRANODE_VARIABLE, "0") in ("", "0"):
        return {}
    return {name: value for name, value in _SETTINGS.items() if name not in environment}


NCCL_PLUGIN = "NCCL_PROFILER_PLUGIN"
NCCL_NEXT = "IBPROF_NCCL_NEXT"

_LONGEST_NCCL_NAME = 254
"""Bytes that NCCL keeps of the name of a plug-in (MAX_STR_LEN of src/plugin/plugin_open.cc)."""


def nccl_settings(environment: Mapping[str, str], plugin: Path) -> dict[str, str]:
    """Return the variables by which NCCL and RCCL load ibprof's profiler plug-in, and that one the user's own.

    There are none where the user switches profilers off (`none`), where NCCL would cut the plug-in's path, and where
    it was not built.

    Args:
        environment: of the job.
        plugin: path of libnccl-profiler-ibprof.so.
    """
    present = environment.get(NCCL_PLUGIN, "")
    if present.lower() == "none" or len(str(plugin).encode()) > _LONGEST_NCCL_NAME or not plugin.is_file():
        return {}
    chained = {} if present in ("", str(plugin)) else {NCCL_NEXT: present}
    return {NCCL_PLUGIN: str(plugin)} | chained
