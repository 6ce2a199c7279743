# SPDX-License-Identifier: Apache-2.0
"""A rank placement as files and options of launchers: Open MPI, MPICH, Slurm."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path

from ibprof.errors import UsageError
from ibprof_converter.analysis.output_files import open_output

_CORES_LIMIT = 1 << 16


@dataclass(frozen=True, slots=True)
class PlacementFiles:
    """Files to write; None for those not asked for, `-` for stdout.

    Attributes:
        output: placement.csv.
        rankfile, hostfile: of Open MPI.
        mpich_hosts: the value of hydra's `-hosts`.
        host_a_rank: a host for each rank, for Slurm and Open MPI.
        mpich_hostfile: of hydra's `-f`.
        cores_per_rank: that each rank of the rank file takes.
    """

    output: Path | None = None
    rankfile: Path | None = None
    hostfile: Path | None = None
    mpich_hosts: Path | None = None
    host_a_rank: Path | None = None
    mpich_hostfile: Path | None = None
    cores_per_rank: int = 1

    def check(self) -> None:
        """Refuse an invalid number of cores.

        Raises:
            UsageError: it is below 1 or too large.
        """
        if not 1 <= self.cores_per_rank <= _CORES_LIMIT:
            raise UsageError(f"--cores-per-rank {self.cores_per_rank}: expected a number from 1 to {_CORES_LIMIT}")

    def by_option(self) -> Mapping[str, Path | None]:
        """Return the file that each option names."""
        names = [each.name for each in fields(self) if each.name != "cores_per_rank"]
        return {f"--{name.replace('_', '-')}": getattr(self, name) for name in names}


def write_placement(files: PlacementFiles, hosts: Sequence[str]) -> None:
    """Write the files.

    Args:
        files: which ones.
        hosts: of each rank.

    Raises:
        OSError: a file cannot be written; it names it.
    """
    outputs = (
        (files.output, placement_csv),
        (files.rankfile, lambda names: open_mpi_rankfile(names, files.cores_per_rank)),
        (files.hostfile, open_mpi_hostfile),
        (files.host_a_rank, host_per_rank),
        (files.mpich_hostfile, mpich_hostfile),
        (files.mpich_hosts, lambda names: mpich_hosts(names) + "\n"),
    )
    for path, write in outputs:
        if path is not None:
            with open_output(path) as file:
                file.write(write(hosts))


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
