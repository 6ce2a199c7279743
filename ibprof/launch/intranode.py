# SPDX-License-Identifier: Apache-2.0
"""IBPROF_INTRANODE=1: what makes the ranks of one host talk through the network's layer, for trials on one box."""

from __future__ import annotations

from collections.abc import Mapping

ASKED = "IBPROF_INTRANODE"

_SETTINGS = {
    # MPICH and its kin.
    "MPIR_CVAR_NOLOCAL": "1",
    # Intel MPI.
    "I_MPI_FABRICS": "ofi",
    "I_MPI_COLL_INTRANODE": "pt2pt",
    # Open MPI, whose shared memory has another name in each version.
    "OMPI_MCA_btl": "^vader,sm,smcuda",
}


def intranode_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Give the variables to set; none when it was not asked for, and none that the user has set already.

    Args:
        environment: that the job is started in.
    """
    if environment.get(ASKED, "0") in ("", "0"):
        return {}
    return {name: value for name, value in _SETTINGS.items() if name not in environment}
