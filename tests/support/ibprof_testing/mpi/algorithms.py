# SPDX-License-Identifier: Apache-2.0
"""The algorithms of collectives that an MPI lists, and the settings that force them."""

from __future__ import annotations

import re
from pathlib import Path

from ibprof_testing import processes
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.mpis import Mpi

_OF_OPEN_MPI = re.compile(
    r"^mca:coll:\w+:param:(coll_(?:tuned|libnbc)_\w+_algorithm):enumerator:value:(\d+):(\w+)$", re.MULTILINE
)
_OF_MPICH = re.compile(r"^\t(MPIR_CVAR_\w+_(?:INTRA|INTER)_ALGORITHM)\s*=.*\n((?:^\w+ *- .*\n)+)", re.MULTILINE)
_OF_INTEL = re.compile(rb"\b(I_MPI_ADJUST_\w+)_LIST\0")
_VALUES_OF_INTEL = 25
"""Upper limit of the numbers of an operation's algorithms. A number without an algorithm has no effect."""

_NAME = re.compile(r"^(\w+) *- Force", re.MULTILINE)
_FOR_TWO_RANKS = "two_proc"
_WRONG = "sparbit"
"""An algorithm that does not pass on the data of MPI_IN_PLACE (Open MPI 5.0.11), also without ibprof."""

FORCED = {"coll_tuned_use_dynamic_rules": "1"}
"""The setting without which Open MPI ignores the others."""


def list_algorithms(mpi: Mpi, ranks: int) -> dict[str, list[str]]:
    """Return, for each setting that forces an algorithm, its values for communicators of that number of ranks.

    A setting is a parameter of Open MPI (`coll_tuned_bcast_algorithm`), or a variable of MPICH
    (`MPIR_CVAR_BCAST_INTRA_ALGORITHM`) or Intel MPI (`I_MPI_ADJUST_BCAST`); the MPI itself lists the values of the
    former two.
    """
    found: dict[str, list[str]] = {}
    if mpi.name == mpis.INTEL:
        settings = _OF_INTEL.findall((mpi.folder.parent / "lib" / "libmpi.so.12").read_bytes())
        return {name.decode(): [str(1 + each) for each in range(_VALUES_OF_INTEL)] for name in settings}
    if mpi.is_mpich_like:
        listed = processes.run([mpi.program("mpivars")], check=True, env=mpis.environment(mpi.variables)).stdout
        return {setting: _NAME.findall(lines) for setting, lines in _OF_MPICH.findall(listed)}
    line: list[str | Path] = [mpi.program("ompi_info"), "--param", "coll", "all", "--level", "9", "--parsable"]
    listed = processes.run(line, check=True, env=mpis.environment()).stdout
    for setting, value, name in _OF_OPEN_MPI.findall(listed):
        if value != "0" and name != _WRONG and (name != _FOR_TWO_RANKS or ranks == 2):
            found.setdefault(setting, []).append(value)
    return found


def list_rounds(mpi: Mpi, ranks: int) -> list[dict[str, str]]:
    """Return settings for some runs that use each algorithm once: run n uses the n-th algorithm of each call."""
    algorithms = list_algorithms(mpi, ranks)
    rounds = max(map(len, algorithms.values()))
    return [
        {setting: values[number] for setting, values in algorithms.items() if number < len(values)}
        for number in range(rounds)
    ]
