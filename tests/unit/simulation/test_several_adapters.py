# SPDX-License-Identifier: Apache-2.0
"""If hosts have several adapters in one subnet, each adapter is simulated as a host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.profile_data import AdapterChoice
from ibprof_converter.api import load_links, read_fabric
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_lab.simulation.study.cell import set_up
from ibprof_lab.simulation.study.study_file import StudyPlan, read_study
from ibprof_testing.samples.many_adapters import make_subnet, write_dumps
from ibprof_testing.samples.profiles import Count, make_host, make_port, make_profile, make_rank

FABRIC = make_subnet().fabric
NAME_OF = {lid: FABRIC.node_name[node] for node, lid in zip(FABRIC.port_node, FABRIC.port_lid.tolist(), strict=True)}
LID_OF = {name: lid for lid, name in NAME_OF.items()}
GUID_OF = dict(zip(FABRIC.port_lid.tolist(), FABRIC.port_guid.tolist(), strict=True))
NATURAL = [f"mlx5_{number}" for number in (2, 3, 4, 6, 7, 8, 9, 10)]
MESSAGES = 10


def write_run(folder: Path, hosts: Sequence[str] = ("gpu1", "gpu2"), chosen: str = "") -> None:
    """Write a run of 20 ranks on two hosts. Rank r sends to rank r + 10 and to the next rank on the same host."""
    counts = [Count(rank, (rank + 10) % 20, 10_000 + 10 * rank, messages=MESSAGES) for rank in range(20)]
    counts += [Count(rank, rank // 10 * 10 + (rank + 1) % 10, 7_000, messages=MESSAGES) for rank in range(20)]
    choices = (AdapterChoice("UCX_NET_DEVICES", f"{chosen}:1"),) if chosen else ()
    ranks = [make_rank(rank, host=rank // 10, choices=choices) for rank in range(20)]
    devices = {
        host: [
            make_port(lid, GUID_OF[lid], device=name.split()[1])
            for name, lid in LID_OF.items()
            if name.startswith(f"{host} ")
        ]
        for host in hosts
    }
    run = make_profile(counts, ranks, [make_host(host, *devices[host]) for host in hosts])
    write_archive(run, folder / "profile.otf2")


def plan(folder: Path, **changes: Any) -> StudyPlan:
    write_dumps(folder)
    job = {
        "name": "mpi",
        "role": "profile",
        "profile": "profile.otf2",
        "interval": "20 us",
        "limit": 2 * MESSAGES,
        **changes,
    }
    effort = {"messages": 2 * MESSAGES, "warm_up": 1, "least_warm_up": 1, "background": 1, "precision": 0}
    study = {"fabric": str(folder / "ibdiagnet.lst"), "servers": 0, "effort": effort, "jobs": [job]}
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    return read_study(folder / "study.yaml")


def sent_by_adapter(study: StudyPlan) -> dict[str, int]:
    simulation = set_up(study.cells[0]).simulation
    simulation.run()
    network = simulation.network
    sent = simulation.look_at_ends().bytes[network.host_end, 0]
    return {name: int(count) for name, count in zip(network.host_names, sent, strict=True) if count}


def by_turn(hosts: Sequence[str]) -> dict[str, int]:
    """Return sending adapter -> bytes between the hosts, if rank n of a host sends from adapter n modulo 8."""
    sums: dict[str, int] = {}
    for rank in range(20):
        name = f"{hosts[rank // 10]} {NATURAL[rank % 10 % 8]}"
        sums[name] = sums.get(name, 0) + 10_000 + 10 * rank
    return sums


def test_ranks_of_a_recorded_run_take_the_adapters_in_turn(tmp_path: Path) -> None:
    write_run(tmp_path)
    study = plan(tmp_path)
    assert any("modelled:rank" in note for note in study.notes)
    assert sent_by_adapter(study) == by_turn(["gpu1", "gpu2"])


def test_ranks_on_named_hosts_take_the_adapters_in_turn(tmp_path: Path) -> None:
    write_run(tmp_path)
    assert sent_by_adapter(plan(tmp_path, hosts=["gpu4", "gpu3"])) == by_turn(["gpu4", "gpu3"])


def test_what_ranks_chose_is_simulated(tmp_path: Path) -> None:
    write_run(tmp_path, chosen="mlx5_7")
    study = plan(tmp_path)
    assert any("that each rank chose in the recorded run" in note for note in study.notes)
    total = [sum(10_000 + 10 * rank for rank in range(first, first + 10)) for first in (0, 10)]
    assert sent_by_adapter(study) == {"gpu1 mlx5_7": total[0], "gpu2 mlx5_7": total[1]}


def test_a_named_host_is_all_of_its_adapters(tmp_path: Path) -> None:
    write_dumps(tmp_path)
    jobs = [
        {"name": "io", "role": "io", "bytes": "4 KiB", "interval": "20 us", "hosts": "gpu2"},
        {"name": "mpi", "role": "pairs", "bytes": "4 KiB", "interval": "20 us", "hosts": "gpu3,gpu4"},
    ]
    study = {"fabric": str(tmp_path / "ibdiagnet.lst"), "servers": ["gpu1", "storage1"], "jobs": jobs}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    cell = read_study(tmp_path / "study.yaml").cells[0]
    names = set_up(cell).simulation.network.host_names

    def adapters(*hosts: str) -> list[str]:
        return [f"{host} {device}" for host in hosts for device in NATURAL]

    assert [names[host] for host in cell.setting.server_hosts] == [*adapters("gpu1"), "storage1 mlx5_0"]
    assert cell.setting.servers == 9
    assert [[names[host] for host in job.hosts] for job in cell.workloads] == [
        adapters("gpu2"),
        adapters("gpu3", "gpu4"),
    ]


@pytest.mark.parametrize("hosts", [("gpu1", "gpu2")])
def test_a_sampled_run_says_that_it_has_one_adapter_a_host(tmp_path: Path, hosts: Sequence[str]) -> None:
    """The simulation samples hosts, since the fabric lacks a host of the run."""
    ranks = [make_rank(0, 0), make_rank(1, 1)]
    run = make_profile([Count(0, 1, 100), Count(1, 0, 100)], ranks, [make_host("elsewhere"), make_host(hosts[1])])
    write_archive(run, tmp_path / "profile.otf2")
    assert any("one adapter" in note for note in plan(tmp_path, share=0.9).notes)
    assert len(find_hosts([FABRIC]).ends) > len(find_hosts([FABRIC]).name)


def test_a_training_step_loads_links_as_the_formulas_say(tmp_path: Path) -> None:
    """Rank r of a host uses adapter r, in the simulation and in the link loads."""
    fabric = "scalable-unit:1:hosts=8:rails=2@100"
    traffic = "pattern:nccl-ring+pipeline:tp=2,pp=2,dp=4,gpus=2,hidden=64,layers=2,seq=64,vocab=100"
    job = {"name": "mpi", "role": "profile", "profile": traffic, "interval": "1 us", "limit": 4, "hosts": "gpu[1-8]"}
    effort = {"messages": 4, "warm_up": 1, "least_warm_up": 1, "background": 1, "precision": 0}
    study = {"fabric": fabric, "servers": 0, "effort": effort, "jobs": [job]}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    simulation = set_up(read_study(tmp_path / "study.yaml").cells[0]).simulation
    simulation.run()
    carried = simulation.look_at_ends().bytes[:, 0]
    expected = load_links(read_fabric(fabric), traffic).by_rail[0].sum(axis=2).ravel()
    assert carried.tolist() == expected.tolist()
    assert (expected > 0).sum() == 32, "16 adapters, both directions"
