# SPDX-License-Identifier: Apache-2.0
"""A recording has each rank's cores and variables that choose adapters, and the NUMA node of each adapter."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof.load import load_profile
from ibprof.profile.profile_data import AdapterChoice
from ibprof_converter.traffic.recorded_adapters import read_cores
from ibprof_testing.mpi.mpis import (
    FROM_PYPI,
    MPICH_SYSTEM,
    SYSTEM,
    THROUGH_NETWORK,
    Build,
    find_mpi,
    find_mpich_like,
    run_mpi,
)

RANKS = 2
LOCAL_RANK = {MPICH_SYSTEM: "MPI_LOCALRANKID"}

SHOW_AND_RUN = """
rank=${{{variable}}}
echo "$rank $(grep Cpus_allowed_list /proc/self/status | cut -f 2)"
UCX_NET_DEVICES=tcp,mlx5_$rank:1 FI_VERBS_DEVICE_NAME=mlx5_$rank exec "$@"
"""


def make_devices(folder: Path) -> Path:
    """Write sysfs's files of two adapters; only one adapter has a known NUMA node."""
    devices = folder / "infiniband"
    for number in range(RANKS):
        port = devices / f"mlx5_{number}" / "ports" / "1"
        port.mkdir(parents=True)
        for name, text in (("state", "4: ACTIVE"), ("lid", f"{number + 1:#x}"), ("link_layer", "InfiniBand")):
            (port / name).write_text(text + "\n")
    function = folder / "0000:17:00.0"
    function.mkdir()
    (function / "numa_node").write_text("0\n")
    (function / "local_cpulist").write_text("0-1,8\n")
    (devices / "mlx5_0" / "device").symlink_to(function)
    return devices


@pytest.mark.parametrize("name", [SYSTEM, FROM_PYPI[-1], MPICH_SYSTEM])
def test_choices_of_ranks_and_places_of_adapters(name: str, build: Build, tmp_path: Path) -> None:
    mpi = find_mpich_like(name) if name == MPICH_SYSTEM else find_mpi(name)
    script = SHOW_AND_RUN.format(variable=LOCAL_RANK.get(name, "OMPI_COMM_WORLD_LOCAL_RANK"))
    command: list[str | Path] = ["sh", "-c", script, "sh", build(mpi, "collectives.c"), "blocking", "Bcast", "1000"]
    variables = {**THROUGH_NETWORK, "IBPROF_SYSFS": str(make_devices(tmp_path)), "MV2_IBA_HCA": ""}
    said = run_mpi(mpi, RANKS, command, recording=tmp_path / "recording", env=variables)
    shown = dict(line.split() for line in said.stdout.splitlines() if line[:1].isdigit() and len(line.split()) == 2)
    profile = load_profile(tmp_path / "recording")
    for rank in profile.ranks:
        first, *others = rank.choices
        assert (first.name, read_cores(first.text)) == ("cores", read_cores(shown[str(rank.rank)]))
        device = f"mlx5_{rank.rank}"
        assert [each for each in others if each.name in ("UCX_NET_DEVICES", "FI_VERBS_DEVICE_NAME")] == [
            AdapterChoice("UCX_NET_DEVICES", f"tcp,{device}:1"),
            AdapterChoice("FI_VERBS_DEVICE_NAME", device),
        ]
    ports = {port.device: port for port in profile.hosts[0].ports}
    assert (ports["mlx5_0"].pci, ports["mlx5_0"].numa_node, ports["mlx5_0"].near_cores) == ("0000:17:00.0", 0, "0-1,8")
    assert (ports["mlx5_1"].pci, ports["mlx5_1"].numa_node, ports["mlx5_1"].near_cores) == ("", None, "")
    write_archive(profile, tmp_path / "profile.otf2")
    kept = load_profile(tmp_path / "profile.otf2")
    assert [rank.choices for rank in kept.ranks] == [rank.choices for rank in profile.ranks]
    assert {port.device: port for port in kept.hosts[0].ports} == ports
