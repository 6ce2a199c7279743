# SPDX-License-Identifier: Apache-2.0
"""A rank placement as files and options of launchers: Open MPI, MPICH, Slurm."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from itertools import groupby


def placement_csv(hosts: Sequence[str]) -> str:
    """Return `rank,host` as CSV, the form that `--placement` reads."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("rank", "host"), *enumerate(hosts)])
    return text.getvalue()


def open_mpi_rankfile(hosts: Sequence[str], cores: int = 1) -> str:
    """Return a rank file for `mpirun --rankfile`; ranks of one host take its cores in turn, `cores` each."""
    taken: dict[str, int] = {}
    lines = []
    for rank, host in enumerate(hosts):
        first = taken.get(host, 0)
        taken[host] = first + cores
        lines.append(f"rank {rank}={host} slot={first}" + (f"-{first + cores - 1}" if cores > 1 else "") + "\n")
    return "".join(lines)


def open_mpi_hostfile(hosts: Sequence[str]) -> str:
    """Return the hosts with their slots for `mpirun --hostfile`, to be used with a rank file."""
    return "".join(f"{host} slots={hosts.count(host)}\n" for host in dict.fromkeys(hosts))


def host_per_rank(hosts: Sequence[str]) -> str:
    """Return one host per rank: `SLURM_HOSTFILE` of `srun --distribution=arbitrary`; Open MPI's `--map-by seq`."""
    return "".join(f"{host}\n" for host in hosts)


def mpich_hosts(hosts: Sequence[str]) -> str:
    """Return the value of hydra's `-hosts`: HOST for one rank, HOST:N for N consecutive ranks."""
    runs = [(host, len(list(same))) for host, same in groupby(hosts)]
    return ",".join(host if count == 1 else f"{host}:{count}" for host, count in runs)


def mpich_hostfile(hosts: Sequence[str]) -> str:
    """Return the same as lines of a host file for hydra's `-f`, for more hosts than a command line takes."""
    return "".join(f"{each}\n" for each in mpich_hosts(hosts).split(","))
