# SPDX-License-Identifier: Apache-2.0
"""Delays measured between network namespaces over real connections lead to the topology that was built.

The built topology is independent of ibprof: `lab/cables.c` delays links, and the kernel's token bucket filter limits
rates.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ibprof_lab.latency.files.delay_files import read_delays
from ibprof_testing import processes
from ibprof_testing.lab import hosts as lab
from ibprof_testing.lab.cluster import SCRIPTS, Cluster, find_splits
from ibprof_testing.lab.plans import FAULTY, PLANS, TREE, Plan
from ibprof_testing.mpi.mpis import Build, Mpi

BYTES = 1 << 16


@contextmanager
def cluster_of(plan: Plan, mpi: Mpi, folder: Path) -> Iterator[Cluster]:
    (folder / "hosts").mkdir()
    with lab.up(plan, folder / "hosts") as hosts:
        yield Cluster(hosts, folder, mpi.program("mpirun"))
    # None of this cluster's namespaces is left. Other clusters on this machine may have namespaces.
    assert not [name for name in lab.namespaces() if name.startswith(hosts.namespace(""))]


@pytest.mark.full
def test_a_tree_with_a_wrong_cable_and_a_slow_uplink(system_mpi: Mpi, tmp_path: Path) -> None:
    """The built topology is inferred. The comparison with the plan names the two faults and their kinds.

    On a busy machine, delays differ, so inference may split the hosts of a switch.
    """
    built = TREE.plug("node3", "leaf4").slow("leaf1", "pod1", 900)
    with cluster_of(built, system_mpi, tmp_path) as cluster:
        document = cluster.infer()
        said = cluster.compare(TREE)
    assert built.splits() <= find_splits(document, "node1")
    assert "wrong cable: the delays show node3 on leaf4 with node[7-8]" in said, said
    assert "slow: leaf1 to pod1" in said, said


@pytest.mark.full
def test_a_slow_host_and_a_thin_trunk(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    """Check the inferred topology, the links' throughputs, and the loads of a recorded program on these links."""
    with cluster_of(FAULTY, system_mpi, tmp_path) as cluster:
        document = cluster.infer()
        assert find_splits(document, "node1") == FAULTY.splits()
        check_measured_again(cluster)
        said = cluster.compare(FAULTY)
        assert "slow: node6" in said or "slow: right to node6" in said, said
        check_throughput(cluster)
        check_recorded_loads(cluster, build(system_mpi, "collectives.c"))


def check_measured_again(cluster: Cluster) -> None:
    """With a known topology, only some pairs are measured again, and the inferred topology does not change."""
    before = read_delays(cluster.folder / "delays.nc")
    command = (SCRIPTS / "ibprof-topology", "remeasure", "topology.json", "delays.nc")
    cluster.launch(*command, "--budget", "50%", "--schedule", "sequential")
    after = read_delays(cluster.folder / "delays.nc")
    assert before.measured.all() == after.measured.all()
    assert (after.median <= before.median).all()
    assert after.attributes["measured_again"] == 8  # half of 15 pairs
    assert find_splits(cluster.look(), "node1") == FAULTY.splits()


def check_throughput(cluster: Cluster) -> None:
    options = ("--seconds", "0.2", "--window", "4", "--repetitions", "2", "-o", "measured.json", "-o", "measured.lst")
    cluster.launch(SCRIPTS / "ibprof-topology", "throughput", "topology.json", *options)
    edges = json.loads((cluster.folder / "measured.json").read_text())["edges"]
    trunk = next(edge for edge in edges if not {edge["a"], edge["b"]} & set(cluster.hosts.names))
    assert trunk["gbps"] == pytest.approx(0.1, rel=0.3)
    assert "gbps_at_least" not in trunk
    assert all(edge["gbps"] > 0 for edge in edges)


def check_recorded_loads(cluster: Cluster, program: Path) -> None:
    """In an all-to-all of six hosts, each host has three peers across the trunk."""
    hosts, half = len(cluster.hosts.names), len(cluster.hosts.names) // 2
    tuned = {"coll_tuned_use_dynamic_rules": 1, "coll_tuned_alltoall_algorithm": 2}
    line = [cluster.mpirun, "-n", str(hosts), *cluster.hosts.over_tcp(**tuned), "--bind-to", "none"]
    words: list[str | Path] = [*line, program, "blocking", "Alltoall", str(BYTES)]
    done = cluster.hosts.run("node1", [SCRIPTS / "ibprof", "run", "--", *words], cluster.environment, cluster.folder)
    assert done.returncode == 0, done.stderr
    cluster.call("ibprof-layout", "measured.lst", "profile.otf2", "--by", "operation", "-o", "links.csv")
    with (cluster.folder / "links.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["operation"] == "ALLTOALL"]
    assert len(rows) == hosts + 1
    for row in rows:
        is_trunk = "switch" in row["a_name"] and "switch" in row["b_name"]
        expected = (half * half if is_trunk else hosts - 1) * BYTES
        assert (int(row["a_bytes"]), int(row["b_bytes"])) == (expected, expected), row
        # gbps is the trunk's measured rate.
        assert 0 < float(row["gbps"]) < 1


@pytest.mark.full
@pytest.mark.parametrize("run", range(5))
@pytest.mark.parametrize("name", PLANS)
def test_what_is_inferred_is_what_was_built(name: str, run: int, system_mpi: Mpi, tmp_path: Path) -> None:
    with cluster_of(PLANS[name], system_mpi, tmp_path) as cluster:
        document = cluster.infer()
    assert find_splits(document, "node1") == PLANS[name].splits()


def test_a_cluster_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with lab.up(TREE, tmp_path) as hosts:
            names.extend(hosts.namespace(node) for node in (*TREE.hosts, *TREE.switches))
            assert lab.namespaces() >= set(names)
            raise ZeroDivisionError

    names: list[str] = []
    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(names) == 14
    assert lab.namespaces().isdisjoint(names)


def test_without_root_it_says_so() -> None:
    line = "import os, sys; from ibprof_testing.lab.cluster import main; os.setuid(65534); sys.exit(main(sys.argv[1:]))"
    done = processes.run(
        [sys.executable, "-c", line, "try", "tree", "-o", "/no"],
    )  # fmt: skip
    assert done.returncode == 4
    assert done.stderr == "ibprof_testing.lab.cluster: needs root, to make network namespaces: try again with sudo\n"
