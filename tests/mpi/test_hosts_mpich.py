# SPDX-License-Identifier: Apache-2.0
"""MPICH and Intel MPI between hosts over TCP: recorded bytes agree with the network interfaces' counters."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ibprof.profile.missing_data import describe_gaps
from ibprof.profile.profile_data import UNKNOWN_PEER, Kind
from ibprof.recording.folder_runs import list_runs
from ibprof.recording.recording_reader import merge_run
from ibprof_testing.lab import hosts as lab
from ibprof_testing.mpi import mpis, patterns
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.mpi.mpis import Build, environment
from ibprof_testing.mpi.patterns import all_the_same

HOSTS = 3
BYTES = 1 << 20


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Hosts]:
    with lab.up(HOSTS, tmp_path_factory.mktemp("hosts")) as up:
        yield up


OVER_TCP = {
    "mpich-4.3.2": {"MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM": "pairwise"},
    mpis.INTEL: {"I_MPI_FABRICS": "ofi", "I_MPI_ADJUST_ALLTOALL": "3"},
}


@pytest.mark.parametrize("name", OVER_TCP)
def test_interface_counters(hosts: lab.Hosts, build: Build, name: str, tmp_path: Path) -> None:
    mpi = mpis.find_mpich_like(name)
    over_tcp = {**OVER_TCP[name], "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "eth0"}
    if name == mpis.INTEL:
        over_tcp |= {word: mpi.variables[word] for word in ("LD_LIBRARY_PATH", "FI_PROVIDER_PATH")}
    settings = [word for name, value in over_tcp.items() for word in ("-genv", name, value)]
    places = ",".join(hosts.address(host) for host in hosts.names)
    line: list[str | Path] = [
        mpi.program("mpirun"),
        "-launcher",
        "ssh",
        "-launcher-exec",
        hosts.agent,
        "-iface",
        "eth0",
    ]
    line += ["-hosts", places, "-ppn", "1", "-n", str(HOSTS), *settings]
    line += [build(mpi, "collectives.c"), "blocking", "Alltoall", str(BYTES)]
    folders = [str(Path(sys.executable).parent), str(mpi.folder), os.environ["PATH"]]
    before = {host: hosts.sent_bytes(host) for host in hosts.names}
    around = environment(mpi.variables | {"PATH": ":".join(folders)})
    done = hosts.run("node1", ["ibprof", "run", "--", *line], around, tmp_path, 60)
    assert done.returncode == 0, done.stderr
    profile = load_complete(tmp_path / "profile.ibprof", HOSTS)
    assert sorted(host.name for host in profile.hosts) == sorted(hosts.names)
    assert recorded(profile, operation="ALLTOALL") == all_the_same(patterns.all_pairs(HOSTS), BYTES)
    for rank in profile.ranks:
        host = profile.hosts[rank.host].name
        payload = sum(size for (sender, _), (size, _) in recorded(profile, kinds=Kind).items() if sender == rank.rank)
        on_the_wire = hosts.sent_bytes(host) - before[host]
        assert payload <= on_the_wire <= 1.2 * payload + 500_000


def test_hydra_on_the_hosts_of_pbs(hosts: lab.Hosts, build: Build, tmp_path: Path) -> None:
    """PBS's node file lists the hosts. An agent, not PBS's daemons, starts Hydra's proxies on the hosts."""
    mpi = mpis.find_mpich_like(mpis.MPICH_FROM_PYPI[0])
    (tmp_path / "nodes").write_text("".join(f"{hosts.address(host)}\n" for host in hosts.names))
    batch = {"PBS_ENVIRONMENT": "PBS_BATCH", "PBS_JOBID": "815.server", "PBS_NODEFILE": str(tmp_path / "nodes")}
    folders = [str(Path(sys.executable).parent), str(mpi.folder), os.environ["PATH"]]
    around = environment(mpi.variables | {"PATH": ":".join(folders)} | batch)
    line: list[str | Path] = [mpi.program("mpiexec.hydra"), "-rmk", "pbs", "-launcher", "ssh", "-iface", "eth0"]
    line += ["-launcher-exec", hosts.agent, "-genv", "FI_PROVIDER", "tcp", "-genv", "FI_TCP_IFACE", "eth0"]
    line += [build(mpi, "collectives.c"), "blocking", "Alltoall", "1000"]
    for launches in (1, 2):
        done = hosts.run("node1", ["ibprof", "run", "--", *line], around, tmp_path, 60)
        assert done.returncode == 0, done.stderr
        profile = load_complete(tmp_path / "profile.ibprof", HOSTS)
        assert sorted(host.name for host in profile.hosts) == sorted(hosts.names)
        assert len(list((tmp_path / "profile.ibprof").iterdir())) == launches * HOSTS


def test_a_spawned_job_is_a_run_of_its_own(build: Build, tmp_path: Path) -> None:
    """All ranks may have the same parent process, Hydra's proxy. Messages to a spawned rank have an unknown peer."""
    mpi = mpis.find_mpich_like("mpich-4.3.2")
    through_network = dict(mpis.THROUGH_NETWORK)
    mpis.run_mpi(mpi, 2, [build(mpi, "children.c"), "spawn"], recording=tmp_path, env=through_network)
    parents, children = (merge_run(tmp_path, run) for run in list_runs(tmp_path))
    assert (parents.world_size, children.world_size) == (2, 1)
    assert recorded(parents, operation="SENDRECV") == all_the_same(patterns.ring(2), 1000)
    assert recorded(parents, operation="BCAST")[0, UNKNOWN_PEER] == (4, 1)
    assert any("are between ranks and processes outside MPI_COMM_WORLD" in gap for gap in describe_gaps(parents))


@pytest.mark.parametrize("how", ["allreduce", "pending"])
def test_messages_within_a_host_between_those_of_the_network(
    hosts: lab.Hosts, build: Build, how: str, tmp_path: Path
) -> None:
    """ibprof cannot see messages within a host. Messages on the network must not be counted under the operation of
    messages within a host."""
    mpi = mpis.find_mpich_like("mpich-5.0.2")
    places = ",".join(hosts.address(host) for host in hosts.names[:2])
    line: list[str | Path] = [mpi.program("mpirun"), "-launcher", "ssh", "-launcher-exec", hosts.agent]
    line += ["-iface", "eth0", "-hosts", places, "-ppn", "2", "-n", "4", "-genv", "MPIR_CVAR_CH4_NETMOD", "ofi"]
    line += ["-genv", "FI_PROVIDER", "tcp", "-genv", "FI_TCP_IFACE", "eth0"]
    line += [build(mpi, "host_and_network.c"), how]
    folders = [str(Path(sys.executable).parent), str(mpi.folder), os.environ["PATH"]]
    around = environment(mpi.variables | {"PATH": ":".join(folders)})
    done = hosts.run("node1", ["ibprof", "run", "--", *line], around, tmp_path, 60)
    assert (done.returncode, "not recorded" in done.stderr) == (0, False), done.stderr
    profile = load_complete(tmp_path / "profile.ibprof", 4)
    sent = recorded(profile, operation="ALLREDUCE" if how == "allreduce" else "IALLREDUCE")
    # Each host's leader passes on at least its host's reduced data: 20 times 4,000 bytes.
    assert sum(size for (sender, _), (size, _) in sent.items() if sender < 2) >= 80_000


def test_groups_that_are_joined_within_a_host(build: Build, tmp_path: Path) -> None:
    """MPICH 5 creates intercommunicators by network messages, even within a host."""
    mpi = mpis.find_mpich_like("mpich-5.0.2")
    done = mpis.run_mpi(mpi, 4, [build(mpi, "host_and_network.c"), "groups"], recording=tmp_path)
    assert "ibprof" not in done.stderr
    assert recorded(load_complete(tmp_path, 4), operation="INTERCOMM_CREATE")
