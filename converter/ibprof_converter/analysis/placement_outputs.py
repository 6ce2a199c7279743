# SPDX-License-Identifier: Apache-2.0
"""Write a rank placement into files for launchers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from ibprof.errors import UsageError
from ibprof_converter.analysis.output_files import open_output
from ibprof_converter.placement import launcher_files

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
        (files.output, launcher_files.placement_csv),
        (files.rankfile, lambda names: launcher_files.open_mpi_rankfile(names, files.cores_per_rank)),
        (files.hostfile, launcher_files.open_mpi_hostfile),
        (files.host_a_rank, launcher_files.host_per_rank),
        (files.mpich_hostfile, launcher_files.mpich_hostfile),
        (files.mpich_hosts, lambda names: launcher_files.mpich_hosts(names) + "\n"),
    )
    for path, write in outputs:
        if path is not None:
            with open_output(path) as file:
                file.write(write(hosts))
