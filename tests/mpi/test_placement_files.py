# SPDX-License-Identifier: Apache-2.0
"""Real launchers accept the files that `ibprof-place` writes, and start each rank on the given host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ibprof_converter.cli import place as launchers
from ibprof_testing.lab import hosts as lab
from ibprof_testing.mpi.mpis import FROM_PYPI, MPICH, MPICH_SYSTEM, SYSTEM, Mpi, environment, find_mpi, find_mpich_like

WANTED = ("node3", "node1", "node2", "node3", "node2")
"""Host of each rank. A rank file binds a rank to a core of the test machine, so a host has at most two ranks."""

OMP_4, OMP_5 = FROM_PYPI


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Hosts]:
    with lab.up(3, tmp_path_factory.mktemp("hosts")) as up:
        yield up


def launch(
    hosts: lab.Hosts, mpi: Mpi, folder: Path, options: list[str], rank: str = "OMPI_COMM_WORLD_RANK"
) -> list[str]:
    """Start ranks that print their host; return the host of each rank."""
    for name, write in (
        ("ranks", launchers.open_mpi_rankfile),
        ("hosts", launchers.open_mpi_hostfile),
        ("host_a_rank", launchers.host_per_rank),
    ):
        (folder / name).write_text(write(WANTED))
    said = run_launcher(hosts, mpi, [*options, "sh", "-c", f'echo "rank ${rank} $(hostname)"'], folder, len(WANTED))
    return [host for _, host in sorted((int(number), host) for number, host in said)]


def run_launcher(hosts: lab.Hosts, mpi: Mpi, options: list[str], folder: Path, ranks: int) -> list[list[str]]:
    """Start ranks that each print a line `rank WORD...`; return the words of each rank."""
    command: list[str | Path] = [mpi.program("mpirun"), *options]
    env = environment(mpi.variables)
    done = hosts.run_open_mpi_5("node1", command, env, folder, lambda printed: len(find_said(printed)) == ranks)
    assert done.returncode == 0, done.stdout + done.stderr
    return find_said(done.stdout)


def find_said(printed: str) -> list[list[str]]:
    return [line.split()[1:] for line in printed.splitlines() if line.startswith("rank ")]


@pytest.mark.parametrize("name", [SYSTEM, OMP_4])
@pytest.mark.parametrize(
    "by", [["--hostfile", "hosts", "--rankfile", "ranks"], ["--hostfile", "host_a_rank", "--map-by", "seq"]]
)
def test_open_mpi_4(hosts: lab.Hosts, name: str, by: list[str], tmp_path: Path) -> None:
    options = ["--mca", "plm_rsh_agent", str(hosts.agent), "-n", str(len(WANTED)), *by]
    assert launch(hosts, find_mpi(name), tmp_path, options) == list(WANTED)


@pytest.mark.parametrize("by", ["rankfile:file={folder}/ranks", "seq:oversubscribe"])
def test_open_mpi_5(hosts: lab.Hosts, by: str, tmp_path: Path) -> None:
    options = ["--prtemca", "plm_ssh_agent", str(hosts.agent), "-n", str(len(WANTED))]
    options += ["--hostfile", "hosts" if by.startswith("rankfile") else "host_a_rank", "--map-by"]
    assert launch(hosts, find_mpi(OMP_5), tmp_path, [*options, by.format(folder=tmp_path)]) == list(WANTED)


@pytest.mark.parametrize("name", [SYSTEM, OMP_5])
def test_ranks_with_threads_get_several_cores(hosts: lab.Hosts, name: str, tmp_path: Path) -> None:
    """A rank on each host gets two cores, because the smallest test machine has two cores."""
    names = ("node3", "node1", "node2")
    (tmp_path / "two_cores").write_text(launchers.open_mpi_rankfile(names, cores=2))
    (tmp_path / "slots").write_text("".join(f"{host} slots=2\n" for host in names))
    mpi = find_mpi(name)
    agent = "--prtemca plm_ssh_agent" if name == OMP_5 else "--mca plm_rsh_agent"
    by = ["--map-by", f"rankfile:file={tmp_path}/two_cores"] if name == OMP_5 else ["--rankfile", "two_cores"]
    options = [*agent.split(), str(hosts.agent), "-n", "3", "--hostfile", "slots", *by]
    command = [*options, "sh", "-c", 'echo "rank $OMPI_COMM_WORLD_RANK $(hostname) $(nproc)"']
    said = run_launcher(hosts, mpi, command, tmp_path, len(names))
    assert sorted(said) == [[str(rank), host, "2"] for rank, host in enumerate(names)]


@pytest.mark.parametrize("name", [MPICH_SYSTEM, f"mpich-{MPICH}"])
def test_mpich(hosts: lab.Hosts, name: str, tmp_path: Path) -> None:
    hydra = ["-launcher", "ssh", "-launcher-exec", str(hosts.agent), "-n", str(len(WANTED))]
    (tmp_path / "hydra").write_text(launchers.mpich_hostfile(WANTED))
    for by in (["-hosts", launchers.mpich_hosts(WANTED)], ["-f", "hydra"]):
        assert launch(hosts, find_mpich_like(name), tmp_path, [*hydra, *by], "PMI_RANK") == list(WANTED)
