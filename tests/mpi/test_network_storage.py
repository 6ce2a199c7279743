# SPDX-License-Identifier: Apache-2.0
"""A recording for a network file system is mapped in the node's storage and copied. Old copies are reported as old.

A FUSE mount acts as the network file system. Namespaces with separate temporary folders act as nodes.
"""

from __future__ import annotations

import mmap
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof.profile.missing_data import describe_gaps
from ibprof_testing import processes
from ibprof_testing.lab import hosts as lab
from ibprof_testing.machine import find_program
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.mpi.mpis import THROUGH_NETWORK, Build, Mpi, environment, library
from ibprof_testing.mpi.no_harm import FAMILIES, check_no_harm, every_mpi_but_quick, find_any, ibprof_lines

RANKS = 2
PAIRS = ((0, 1), (1, 0))
BEFORE = 1000
"""Bytes that a rank sent before the last copy of its counters."""
ALL = 1500


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder on a FUSE file system, which a program serves."""
    with mount(tmp_path, tmp_path / "behind") as mounted:
        yield mounted


@contextmanager
def mount(folder: Path, behind: Path) -> Iterator[Path]:
    bindfs = find_program("bindfs", package="bindfs")
    mounted = folder / "network"
    for path in (mounted, behind):
        path.mkdir(exist_ok=True)
    subprocess.run([bindfs, behind, mounted], check=True)
    try:
        yield mounted
    finally:
        subprocess.run(["umount", "--lazy", mounted], check=True)  # readers may still map a recording


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Return the folder that TMPDIR names on the node."""
    folder = tmp_path / "node"
    folder.mkdir()
    return folder


def run_copied(
    mpi: Mpi, build: Build, how: str, output: Path, node: Path, flush: str = "1"
) -> subprocess.CompletedProcess[str]:
    variables = {"IBPROF_FLUSH": flush, "TMPDIR": str(node)} | THROUGH_NETWORK
    return check_no_harm(mpi, RANKS, [build(mpi, "copied.c"), how], output, variables=variables)


def stored(node: Path) -> Sequence[Path]:
    return list(node.glob("ibprof-*/*.ibprof"))


def sent(folder: Path) -> dict[tuple[int, int], int]:
    matrix = recorded(load_profile(folder), operation="SENDRECV")
    return {pair: size for pair, (size, _) in matrix.items()}


def gaps(folder: Path) -> str:
    return "\n".join(describe_gaps(load_profile(folder)))


def test_a_whole_run(mpi: Mpi, build: Build, network: Path, node: Path) -> None:
    """The whole recording is in the requested folder, and no file is left on the node."""
    done = run_copied(mpi, build, "end", network / "rec", node)
    assert (done.returncode, done.stderr) == (0, "")
    assert stored(node) == []
    load_complete(network / "rec", RANKS)
    assert sent(network / "rec") == dict.fromkeys(PAIRS, ALL)
    assert "storage" not in gaps(network / "rec")


@pytest.mark.parametrize(("flush", "copied"), [("1", BEFORE), ("0", 0), ("100", 0)])
def test_a_killed_run(flush: str, copied: int, system_mpi: Mpi, build: Build, network: Path, node: Path) -> None:
    output = network / "rec"
    run_copied(system_mpi, build, "kill", output, node, flush)
    assert len(stored(node)) == 1
    assert sent(output) == dict.fromkeys(PAIRS, ALL)
    assert "are exact: they were read on its node" in gaps(output)
    shutil.rmtree(node)
    assert sent(output) == (dict.fromkeys(PAIRS, copied) if copied else {})
    assert [rank.rank for rank in load_profile(output).ranks] == list(range(RANKS))
    assert "the last copy from the storage of its node" in gaps(output)
    assert "newer than others" not in gaps(output)


def bring(output: Path) -> str:
    command: list[str | Path] = [sys.executable, "-m", "ibprof", "collect", output, "--from-node"]
    return processes.run(command, check=True, env=environment()).stderr


def test_what_a_node_has_is_brought(system_mpi: Mpi, build: Build, network: Path, node: Path) -> None:
    output = network / "rec"
    run_copied(system_mpi, build, "kill", output, node)
    assert ": 1 copied from " in bring(output)
    assert stored(node) == []
    assert sent(output) == dict.fromkeys(PAIRS, ALL)
    assert "storage" not in gaps(output)
    assert ": 0 copied from " in bring(output)


def test_what_is_still_written_is_left_alone(system_mpi: Mpi, build: Build, network: Path, node: Path) -> None:
    output = network / "rec"
    run_copied(system_mpi, build, "kill", output, node)
    (place,) = stored(node)
    with place.open("r+b") as file, mmap.mmap(file.fileno(), 0):
        assert "a process still writes it" in bring(output)
    assert stored(node) == [place]


def test_another_file_in_the_place_of_the_nodes_own(system_mpi: Mpi, build: Build, network: Path, node: Path) -> None:
    output = network / "rec"
    run_copied(system_mpi, build, "kill", output, node)
    (place,) = stored(node)
    copy = next(output.iterdir()).read_bytes()
    for other in (b"", b"somebody else's", copy.replace(b"PMIX", b"XIMP").replace(b"tcp", b"udp")):
        place.write_bytes(other)
        assert sent(output) == dict.fromkeys(PAIRS, BEFORE)


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
def test_a_network_file_system_that_is_full(name: str, build: Build, tmp_path: Path, node: Path) -> None:
    """The file system has no space for records. The recording stays on the node and is read there."""
    mpi = find_any(name)
    behind = tmp_path / "small"
    behind.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20k", "tmpfs", behind], check=True)
    try:
        with mount(tmp_path, behind) as network:
            done = run_copied(mpi, build, "end", network / "rec", node)
            assert "stays on its nodes" in "".join(ibprof_lines(done.stderr))
            assert sent(network / "rec") == dict.fromkeys(PAIRS, ALL)
    finally:
        subprocess.run(["umount", "--lazy", behind], check=True)


def test_unruly_programs(system_mpi: Mpi, build: Build, network: Path, node: Path) -> None:
    command: list[str | Path] = [
        build(system_mpi, "unruly.c", "-pthread"),
        "descriptors",
        "forks",
        "threads",
        "regions",
        "limits",
    ]
    variables = {"TMPDIR": str(node), "IBPROF_FLUSH": "1"}
    done = check_no_harm(system_mpi, RANKS, command, network / "rec", variables=variables)
    assert done.returncode == 0


@pytest.mark.parametrize("brought", [False, True])
def test_one_node_is_lost(brought: bool, system_mpi: Mpi, build: Build, network: Path, tmp_path: Path) -> None:
    """The ranks on two hosts were killed.

    One host's recording is exact. Of the lost host, only the last copy of counters is left.

    If the lost host's recording was fetched before the host was lost, all counters are exact.
    """
    output = network / "rec"
    folder = tmp_path / "hosts"
    folder.mkdir()
    with lab.up(RANKS, folder) as hosts:
        line = [str(system_mpi.program("mpirun")), "-n", str(RANKS), *hosts.over_tcp(btl="tcp,self")]
        variables = {"LD_PRELOAD": library(), "IBPROF_OUTPUT": output, "IBPROF_FLUSH": 1}
        line += ["env", *(f"{name}={value}" for name, value in variables.items())]
        hosts.run("node1", [*line, build(system_mpi, "copied.c"), "kill"], environment(), tmp_path)
        assert sent(output) == dict.fromkeys(PAIRS, ALL)
        if brought:
            (folder / "node1").rename(folder / "hidden")  # node 2 must not see the storage of node 1
            assert ": 1 copied from " in bring(output)
            (folder / "hidden").rename(folder / "node1")
        shutil.rmtree(folder / "node2")
        if brought:
            assert sent(output) == dict.fromkeys(PAIRS, ALL)
            return
        assert sent(output) == {(0, 1): ALL, (1, 0): BEFORE}
    said = gaps(output)
    assert "rank 0: its counters are exact" in said
    assert "rank 1: its counters date from " in said
