# SPDX-License-Identifier: Apache-2.0
"""A job on several hosts: each documented command records all ranks, and missing ranks are reported."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof.profile.profile_data import Kind, Profile
from ibprof.recording.folder_runs import list_runs
from ibprof.recording.recording_reader import merge_run
from ibprof_testing.lab import hosts as lab
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.mpi.mpis import Build, Mpi, environment, library
from ibprof_testing.mpi.patterns import all_pairs, all_the_same

HOSTS, RANKS_A_HOST = 3, 2
RANKS = HOSTS * RANKS_A_HOST
BYTES = 1 << 20
ODD = "it's; $HOME"
"""Name of a folder. Agents and shells on other hosts must not interpret the name's characters."""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Hosts]:
    with lab.up(HOSTS, tmp_path_factory.mktemp("hosts")) as up:
        yield up


@pytest.fixture
def line(hosts: lab.Hosts, system_mpi: Mpi, build: Build) -> list[str]:
    """Return a command line: an all-to-all with BYTES for each pair, and two ranks on each host."""
    tuned = hosts.over_tcp(RANKS_A_HOST, coll_tuned_use_dynamic_rules=1, coll_tuned_alltoall_algorithm=2)
    launch = [str(system_mpi.program("mpirun")), "-n", str(RANKS), *tuned]
    return [*launch, str(build(system_mpi, "collectives.c")), "blocking", "Alltoall", str(BYTES)]


def check_every_rank(profile: Profile, hosts: lab.Hosts) -> None:
    assert sorted(host.name for host in profile.hosts) == sorted(hosts.names)
    assert [profile.hosts[rank.host].name for rank in profile.ranks] == [
        name for name in hosts.names for _ in range(RANKS_A_HOST)
    ]
    assert recorded(profile, operation="ALLTOALL") == all_the_same(all_pairs(RANKS), BYTES)


def check_silent(done: subprocess.CompletedProcess[str]) -> None:
    """Check that ibprof prints nothing. Open MPI itself may warn of a race with the agent that it starts."""
    said = [text for text in done.stderr.splitlines() if "plm:rsh: Warning: setpgid" not in text]
    assert (done.returncode, done.stdout, said) == (0, "", [])


def with_commands(mpi: Mpi) -> dict[str, str]:
    """Return the environment of a shell on the first host, with the commands of ibprof and of this MPI."""
    folders = [str(Path(sys.executable).parent), str(mpi.folder), os.environ["PATH"]]
    return environment({"PATH": ":".join(folders)})


def test_ibprof_run(hosts: lab.Hosts, line: list[str], system_mpi: Mpi, tmp_path: Path) -> None:
    before = {host: hosts.sent_bytes(host) for host in hosts.names}
    folder = tmp_path / ODD
    folder.mkdir()
    done = hosts.run("node1", ["ibprof", "run", "--", *line], with_commands(system_mpi), folder)
    assert done.returncode == 0, done.stderr
    check_every_rank(load_complete(folder / "profile.otf2", RANKS), hosts)
    profile = load_complete(folder / "profile.ibprof", RANKS)
    check_every_rank(profile, hosts)
    host_of = [profile.hosts[rank.host].name for rank in profile.ranks]
    for host in hosts.names:
        payload = sum(
            size
            for (sender, receiver), (size, _) in recorded(profile, kinds=Kind).items()
            if host_of[sender] == host != host_of[receiver]
        )
        on_the_wire = hosts.sent_bytes(host) - before[host]
        # Besides the payload, links carry headers, acknowledgements and the launcher's own traffic.
        assert payload <= on_the_wire <= 1.2 * payload + 500_000


def test_what_open_mpi_5_spawns_on_other_hosts(hosts: lab.Hosts, build: Build, tmp_path: Path) -> None:
    """The agent starts the other hosts' daemon with an empty environment. The daemon sets the ranks' variables."""
    mpi = mpis.find_mpi(mpis.FROM_PYPI[-1])
    words: dict[str, str | Path] = {"plm_ssh_agent": hosts.agent, "prte_if_include": lab.SUBNET}
    line: list[str | Path] = [mpi.program("mpirun"), "-n", "1", "--host", ",".join(map(hosts.address, hosts.names))]
    line += [word for name, value in words.items() for word in ("--prtemca", name, value)]
    line += ["--map-by", "node:INHERIT", "--mca", "btl_tcp_if_include", lab.SUBNET, "--mca", "btl", "tcp,self"]
    line += [build(mpi, "children.c"), "spawn", str(HOSTS)]
    folder = tmp_path / ODD
    folder.mkdir()
    command, said = ["ibprof", "run", "--", *line], "spawned 42\n" * HOSTS
    done = hosts.run_open_mpi_5("node1", command, with_commands(mpi), folder, lambda printed: printed == said)
    assert (done.returncode, done.stdout) == (0, said), done.stderr
    # mpirun may have failed and been repeated. Then only the two newest runs are complete.
    runs = list_runs(folder / "profile.ibprof")
    parent, children = (merge_run(folder / "profile.ibprof", run) for run in runs[-2:])
    assert [len(run.ranks) for run in (parent, children)] == [1, HOSTS]
    assert sorted(host.name for host in children.hosts) == sorted(hosts.names)


def test_environment_and_bare_preload(hosts: lab.Hosts, line: list[str], system_mpi: Mpi, tmp_path: Path) -> None:
    script = f'eval "$(ibprof env)"; LD_PRELOAD=libibprof.so {shlex.join(line)}'
    done = hosts.run("node1", ["sh", "-c", script], with_commands(system_mpi), tmp_path)
    check_silent(done)
    check_every_rank(load_complete(tmp_path / "profile.ibprof", RANKS), hosts)


def test_inner_form(hosts: lab.Hosts, line: list[str], system_mpi: Mpi, tmp_path: Path) -> None:
    """`mpirun ibprof run -- ./app`. Other hosts have an empty environment, so the command has ibprof's full path."""
    at = line.index(next(word for word in line if word.endswith("collectives_c")))
    ibprof = shutil.which("ibprof", path=with_commands(system_mpi)["PATH"])
    assert ibprof
    command = [*line[:at], ibprof, "run", "--", *line[at:]]
    done = hosts.run("node1", command, with_commands(system_mpi), tmp_path)
    check_silent(done)
    check_every_rank(load_complete(tmp_path / "profile.ibprof", RANKS), hosts)


def test_hosts_that_are_missing_are_named(hosts: lab.Hosts, line: list[str], system_mpi: Mpi, tmp_path: Path) -> None:
    """One node's recordings and the host file are lost.

    The recordings of other nodes still name the job's hosts.
    """
    shell = with_commands(system_mpi)
    (tmp_path / "nodes").write_text("".join(f"{host} slots={RANKS_A_HOST}\n" for host in hosts.names))
    at = line.index("--host")
    by_file = [*line[:at], "--hostfile", "nodes", *line[at + 2 :]]
    by_name = [*line[:at], "--host", ",".join(f"{host}:{RANKS_A_HOST}" for host in hosts.names), *line[at + 2 :]]
    preloaded = ["env", f"LD_PRELOAD={library()}", *by_name]
    for name, command in (("run", ["ibprof", "run", "--", *by_file]), ("preloaded", preloaded)):
        environment = shell | {"IBPROF_OUTPUT": str(tmp_path / f"{name}.ibprof")}
        done = hosts.run("node1", command, environment, tmp_path)
        assert done.returncode == 0, done.stderr
        for file in (tmp_path / f"{name}.ibprof").glob("node2-*"):
            file.unlink()
        (tmp_path / "nodes").unlink(missing_ok=True)
        collected = hosts.run("node1", ["ibprof", "collect", f"{name}.ibprof"], shell, tmp_path).stderr
        missing = "node2 left no recording" if name == "run" else "node2, node3 left no recording"
        assert missing in collected
        shown = hosts.run("node3", ["ibprof", "info", f"{name}.otf2"], shell, tmp_path).stdout
        assert missing in shown


def test_bare_preload_says_how_many_ranks_are_missing(
    hosts: lab.Hosts, line: list[str], system_mpi: Mpi, tmp_path: Path
) -> None:
    shell = with_commands(system_mpi)
    done = hosts.run("node1", ["env", f"LD_PRELOAD={library()}", *line], shell, tmp_path)
    check_silent(done)
    profile = load_profile(tmp_path / "profile.ibprof")
    assert profile.world_size == RANKS
    assert [rank.rank for rank in profile.ranks] == [0, 1]
    said = hosts.run("node1", ["ibprof", "info", "profile.ibprof"], shell, tmp_path).stdout
    assert "2 of 6" in said, said
