# SPDX-License-Identifier: Apache-2.0
"""IBPROF_INTRANODE=1: settings that send messages within a host through the network layer, for trials on one host."""

from __future__ import annotations

from collections.abc import Mapping

ASKED = "IBPROF_INTRANODE"

_SETTINGS = {
    # MPICH and derived libraries.
    "MPIR_CVAR_NOLOCAL": "1",
    # Intel MPI.
    "I_MPI_FABRICS": "ofi",
    "I_MPI_COLL_INTRANODE": "pt2pt",
    # Open MPI, whose shared-memory component differs in name between versions.
    "OMPI_MCA_btl": "^vader,sm,smcuda",
}


def intranode_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to set; none if it was not asked for, and none that the user has set.

    Args:
        environment: of the job.
    """
    if environment.get(ASKED, "0") in ("", "0"):
        return {}
    return {name: value for name, value in _SETTINGS.items() if name not in environment}
