# SPDX-License-Identifier: Apache-2.0
"""On routed Linux namespaces, predicted loads equal the interfaces' counters, and advice makes the job faster."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof.native.installed_files import find_nccl_profiler
from ibprof_testing.lab import hosts as lab
from ibprof_testing.lab import routed_network
from ibprof_testing.lab.applied_advice import Setting, apply
from ibprof_testing.lab.lab_fabrics import MBIT, SMALL, crowd, make_rail
from ibprof_testing.lab.routed_jobs import LabRun, add_headers, load_links, report, run_job
from ibprof_testing.mpi.mpis import Build, Mpi
from ibprof_testing.nccl_harness import build_harness

HOSTS = ("host1", "host2", "host3", "host4")
NARROW = "xgft:2:2,2:1,1"
"""A network with one spine, where the two hosts of a leaf share an uplink."""


@pytest.mark.parametrize(
    "words", [("halo", "150000", "2"), pytest.param(("alltoall", "60000", "3"), marks=pytest.mark.full)]
)
def test_loads_are_what_interfaces_count(system_mpi: Mpi, build: Build, tmp_path: Path, words: tuple[str, ...]) -> None:
    program = build(system_mpi, "lab_patterns.c", "-O1", "-g")
    (tmp_path / "hosts").mkdir()
    with routed_network.up([make_rail(SMALL)], tmp_path / "hosts") as network:
        run = run_job(network, HOSTS, [program, *words], tmp_path / "run", mpirun=str(system_mpi.program("mpirun")))
        dumps = network.write_dumps(tmp_path)
        names = network.hosts.namespace("")
    assert run.lost == 0
    expected = load_links(dumps, add_headers(network, run))
    assert set(expected) == set(run.counted)
    assert len(expected) == 2 * network.rails[0].fabric.links
    for end, amount in expected.items():
        assert run.counted[end] == pytest.approx(amount, rel=0.03, abs=2000), end
    document = report(dumps, run)
    assert run.seconds >= document["diagnosis"]["max_time_s"]
    assert document["verdict"]["kind"] == "host-links", document["verdict"]
    assert not [name for name in lab.namespaces() if name.startswith(names)]


@pytest.mark.parametrize("plant", ["placement", pytest.param("routing", marks=pytest.mark.full)])
def test_advice_makes_the_job_faster(system_mpi: Mpi, build: Build, tmp_path: Path, plant: str) -> None:
    """The change that the report prints is applied literally, and saves at least half of the predicted time."""
    program = build(system_mpi, "lab_patterns.c", "-O1", "-g")
    words = ("neighbours", "400000", "2") if plant == "placement" else ("alltoall", "400000", "2")
    # Hosts' links are fast: otherwise the hosts' waiting would hide the gain on links between switches.
    good = make_rail(NARROW if plant == "placement" else SMALL, host_mbit=3 * MBIT)
    order = ("host1", "host3", "host2", "host4") if plant == "placement" else HOSTS
    setting = Setting((good if plant == "placement" else crowd(good, "L2-1"),), order)
    runs = []
    for number in range(2):
        folder = tmp_path / f"{number}"
        (folder / "hosts").mkdir(parents=True)
        with routed_network.up(setting.rails, folder / "hosts") as network:
            dumps = network.write_dumps(folder)
            mpirun = str(system_mpi.program("mpirun"))
            repeated = [
                run_job(network, setting.ranks_on, [program, *words], folder / f"{i}", mpirun=mpirun) for i in range(2)
            ]
            runs.append(min(repeated, key=lambda run: run.seconds))  # other processes can only add time
        if number == 0:
            document = report(dumps, runs[0])
            assert document["verdict"]["kind"] == "switch-links", document["verdict"]
            cause = document["diagnosis"]["causes"][0]
            assert cause["cause"] == plant, cause
            setting = apply(cause, setting, [good], [*dumps, runs[0].profile])
    claimed = cause["max_time_s"] - cause["max_time_after_s"]
    assert claimed > 0.05
    assert runs[0].seconds - runs[1].seconds >= claimed / 2, runs


@pytest.mark.parametrize(
    ("plant", "kind"),
    [("late", "waiting"), pytest.param("turns", "waiting", marks=pytest.mark.full), ("alone", "not-mpi")],
)
def test_a_job_whose_time_the_network_does_not_take(
    system_mpi: Mpi, build: Build, tmp_path: Path, plant: str, kind: str
) -> None:
    program = build(system_mpi, "verdicts.c", "-O1", "-g")
    (tmp_path / "hosts").mkdir()
    with routed_network.up([make_rail(SMALL)], tmp_path / "hosts") as network:
        mpirun = str(system_mpi.program("mpirun"))
        run = run_job(network, HOSTS, [program, plant, "1"], tmp_path / "run", mpirun=mpirun)
        verdict = report(network.write_dumps(tmp_path), run)["verdict"]
    assert verdict["kind"] == kind, verdict
    assert "The network is not the problem." in run.text


def test_steps_of_nccl_are_the_bytes_of_tcp_and_of_links(tmp_path: Path) -> None:
    """A mock of NCCL runs on four hosts. Before each collective, rank 2 computes for 0.2 s."""
    harness = build_harness(tmp_path)
    (tmp_path / "hosts").mkdir()
    (tmp_path / "run").mkdir()
    with routed_network.up([make_rail(SMALL)], tmp_path / "hosts") as network:
        words: list[str | Path] = [
            harness,
            find_nccl_profiler(),
            "7",
            "channels=2",
            "chunk=50000",
            "compute_us=200000",
            "compute_rank=2",
        ]
        own = {
            "WORLD_SIZE": str(len(HOSTS)),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "23000",
            "TORCHELASTIC_RUN_ID": "lab",
            "HARNESS_HOSTS": ",".join(rail_address(network, host) for host in HOSTS),
            "IBPROF_OUTPUT": str(tmp_path / "run"),
        }

        def launch(rank: int) -> str:
            done = network.hosts.run(HOSTS[rank], words, {**os.environ, **own, "RANK": str(rank)}, tmp_path)
            assert done.returncode == 0, done.stderr
            return done.stdout

        before = network.count_bytes()
        with ThreadPoolExecutor(len(HOSTS)) as pool:
            said = [json.loads(text) for text in pool.map(launch, range(len(HOSTS)))]
        after = network.count_bytes()
        dumps = network.write_dumps(tmp_path)
        counted = {end: after[end] - before[end] for end in after}
        run = LabRun(0.0, tmp_path / "run", counted, network.find_lost(), "")
        expected = load_links(dumps, add_headers(network, run))
    sent = [sum(each["sent"].values()) for each in said]
    profile = load_profile(tmp_path / "run")
    assert [profile.hosts[rank.host].name for rank in profile.ranks] == list(HOSTS)
    counters = profile.counters
    of_steps = [int(counters.bytes[(counters.rank == rank) & (counters.direction == 0)].sum()) for rank in range(4)]
    assert of_steps == sent
    # TCP counts only acknowledged bytes. A process may end before the last acknowledgement.
    by_tcp = [sum(each.sent_bytes for each in rank.transports if each.device == "rail0") for rank in profile.ranks]
    assert by_tcp == pytest.approx(sent, rel=0.05)
    for end, amount in expected.items():
        # A ring sends data in one direction. In the other direction, one acknowledgement answers two or more packets.
        assert counted[end] == pytest.approx(amount, rel=0.03, abs=8000), end
    assert sum(counted[0, f"{host} HCA-1", 1] > max(sent) for host in HOSTS) == len(HOSTS)
    verdict = report(dumps, run)["verdict"]
    assert verdict["late"][0]["rank"] == 2
    assert verdict["wait_s"] > 0.95 * 3 * 0.2 * 3 / 4, "mean of three waiting ranks and the late one"


def rail_address(network: routed_network.RoutedNetwork, host: str) -> str:
    """Return the address of a host's adapter on the first rail."""
    shown = lab.run_ip("-n", network.hosts.namespace(host), "-4", "-j", "addr", "show", "rail0")
    return str(json.loads(shown)[0]["addr_info"][0]["local"])
