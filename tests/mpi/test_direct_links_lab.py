# SPDX-License-Identifier: Apache-2.0
"""Traffic on a path of two links shows whether an equally long direct link exists. Hosts are network namespaces."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ibprof_testing.lab import routed_network
from ibprof_testing.lab.lab_fabrics import make_rail
from ibprof_testing.lab.routed_jobs import SCRIPTS, launch_by_open_mpi
from ibprof_testing.mpi.mpis import Mpi

HOSTS = tuple(f"host{number}" for number in range(1, 10))

STREAMS = ("--length", "32K", "--window", "4", "--seconds", "0.4", "--repetitions", "2")


def write_topology(path: Path) -> None:
    """Write the topology that delays show: three switches in a row with three hosts each."""
    edges = [{"a": host, "b": f"sw{number // 3}", "latency_us": 1} for number, host in enumerate(HOSTS)]
    edges += [{"a": "sw0", "b": "sw1", "latency_us": 1}, {"a": "sw1", "b": "sw2", "latency_us": 1}]
    edges = [edge | {"support": 1, "probability": 1} for edge in edges]
    switches = [{"name": f"sw{number}"} for number in range(3)]
    document = {"method": "made", "directed": False, "hosts": HOSTS, "switches": switches, "edges": edges}
    path.write_text(json.dumps(document | {"notes": [], "cannot_tell": []}))


@pytest.mark.parametrize("is_there", [True, False], ids=["direct link", "none"])
def test_a_link_as_long_as_a_path(system_mpi: Mpi, tmp_path: Path, is_there: bool) -> None:
    write_topology(tmp_path / "topology.json")
    (tmp_path / "network").mkdir()
    rail = make_rail("torus:3:3", gone=() if is_there else (("sw0", "sw2"),), engine="" if is_there else "minhop")
    with routed_network.up([rail], tmp_path / "network") as network:
        line = [str(system_mpi.program("mpirun")), *launch_by_open_mpi(network, HOSTS, [0], tmp_path, {})]
        outputs = ("--json", "-o", "found.json")
        words = [str(SCRIPTS / "ibprof-topology"), "direct-links", "topology.json", *STREAMS, *outputs]
        environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        done = network.hosts.run(HOSTS[0], [*line, *words], environment, tmp_path, 120)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["direct_links"]
    assert found["finding"] == ("direct" if is_there else "none"), found
    assert (found["path"], found["pairs"]) == (["sw0", "sw1", "sw2"], 2)
    edges = [{edge["a"], edge["b"]} for edge in json.loads((tmp_path / "found.json").read_text())["edges"]]
    assert ({"sw0", "sw2"} in edges) == is_there
    if not is_there:
        assert found["gbps_blocked"] < 0.8 * found["gbps"]
