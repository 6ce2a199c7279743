# SPDX-License-Identifier: Apache-2.0
"""List the collective algorithms of an MPI, and the settings that force each of them."""

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
"""Intel MPI numbers the algorithms of an operation from 1, up to at most this number. Unused numbers have no effect."""

_NAME = re.compile(r"^(\w+) *- Force", re.MULTILINE)
_FOR_TWO_RANKS = "two_proc"
_WRONG = "sparbit"
"""A broken algorithm of Open MPI 5.0.11, which does not pass on the data of MPI_IN_PLACE, even without ibprof."""

FORCED = {"coll_tuned_use_dynamic_rules": "1"}
"""Without this setting, Open MPI ignores the settings that choose algorithms."""


def list_algorithms(mpi: Mpi, ranks: int) -> dict[str, list[str]]:
    """Return the values of each setting that forces an algorithm, for communicators of `ranks` ranks.

    A setting is a parameter of Open MPI (`coll_tuned_bcast_algorithm`), or a variable of MPICH
    (`MPIR_CVAR_BCAST_INTRA_ALGORITHM`) or Intel MPI (`I_MPI_ADJUST_BCAST`). Open MPI's and MPICH's tools list the
    values.
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
    """Return the settings of several runs: run n uses the n-th algorithm of each operation."""
    algorithms = list_algorithms(mpi, ranks)
    rounds = max(map(len, algorithms.values()))
    return [
        {setting: values[number] for setting, values in algorithms.items() if number < len(values)}
        for number in range(rounds)
    ]
