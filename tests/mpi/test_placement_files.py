# SPDX-License-Identifier: Apache-2.0
"""Real launchers take what `ibprof-place` writes, and put every rank where it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ibprof_converter.placement import launcher_files as launchers
from ibprof_testing.lab import hosts as lab
from ibprof_testing.mpi.mpis import (
    FROM_PYPI,
    MPICH,
    MPICH_SYSTEM,
    SYSTEM,
    Mpi,
    environment,
    find_mpi,
    find_mpich_like,
)

WANTED = ("node3", "node1", "node2", "node3", "node2")
"""Host of each rank: no more on one than the smallest test machine has cores, since a rank file binds each to one."""

OMP_4, OMP_5 = FROM_PYPI


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Hosts]:
    with lab.up(3, tmp_path_factory.mktemp("hosts")) as up:
        yield up


def launch(
    hosts: lab.Hosts, mpi: Mpi, folder: Path, options: list[str], rank: str = "OMPI_COMM_WORLD_RANK"
) -> list[str]:
    """Start ranks that say where they are; give the host of each."""
    for name, write in (
        ("ranks", launchers.open_mpi_rankfile),
        ("hosts", launchers.open_mpi_hostfile),
        ("host_a_rank", launchers.host_per_rank),
    ):
        (folder / name).write_text(write(WANTED))
    command = [str(mpi.program("mpirun")), *options, "sh", "-c", f'echo "rank ${rank} $(hostname)"']
    done = hosts.run("node1", command, environment(mpi.variables), folder)
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("rank ")]
    return [host for _, host in sorted((int(number), host) for number, host in said)]


@pytest.mark.parametrize("name", [SYSTEM, OMP_4])
@pytest.mark.parametrize(
    "by", [["--hostfile", "hosts", "--rankfile", "ranks"], ["--hostfile", "host_a_rank", "--map-by", "seq"]]
)
def test_open_mpi_4(hosts: lab.Hosts, name: str, by: list[str], tmp_path: Path) -> None:
    options = ["--mca", "plm_rsh_agent", str(hosts.agent), "-n", str(len(WANTED)), *by]
    assert launch(hosts, find_mpi(name), tmp_path, options) == list(WANTED)


def test_open_mpi_5_on_one_host(hosts: lab.Hosts, tmp_path: Path) -> None:
    """Its daemons on other hosts crash in this laboratory, however ranks are mapped; so on the first host alone."""
    (tmp_path / "on_one").write_text(launchers.open_mpi_rankfile(("node1", "node1")))
    (tmp_path / "one").write_text(launchers.open_mpi_hostfile(("node1", "node1")))
    options = ["-n", "2", "--hostfile", "one", "--map-by", f"rankfile:file={tmp_path}/on_one"]
    assert launch(hosts, find_mpi(OMP_5), tmp_path, options) == ["node1", "node1"]


@pytest.mark.parametrize("name", [MPICH_SYSTEM, f"mpich-{MPICH}"])
def test_mpich(hosts: lab.Hosts, name: str, tmp_path: Path) -> None:
    hydra = ["-launcher", "ssh", "-launcher-exec", str(hosts.agent), "-n", str(len(WANTED))]
    options = [*hydra, "-hosts", launchers.mpich_hosts(WANTED)]
    assert launch(hosts, find_mpich_like(name), tmp_path, options, "PMI_RANK") == list(WANTED)
