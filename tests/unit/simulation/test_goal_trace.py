# SPDX-License-Identifier: Apache-2.0
"""GOAL files: times by hand, what waits for what, and files that are none."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from ibprof.errors import InputError
from ibprof_converter.cli.sim import main
from ibprof_converter.simulation.measure.message_latency import Effort, Latency
from ibprof_converter.simulation.study.cell import Cell, Setting
from ibprof_converter.simulation.study.cell_run import run_cell
from ibprof_converter.simulation.workload.goal_trace import load_goal
from ibprof_converter.simulation.workload.workloads import Role, Workload

MACHINE = Setting("xgft:2:4,4:1,4@100", effort=Effort(messages=20, background=0, warm_up=0))
PACKET = 4096 * 8 / 100
NEAR, FAR = 2 * PACKET + 90, 4 * PACKET + 3 * 90
"""Latency of a packet within a leaf, and between leaves, in ns."""


def simulate(tmp_path: Path, text: str, hosts: tuple[int, ...], setting: Setting = MACHINE) -> Latency:
    path = tmp_path / "trace.goal"
    path.write_text(text)
    job = Workload("mpi", Role.GOAL, 1, profile=str(path), hosts=hosts, interval_ns=1000.0)
    return run_cell(Cell(setting, (job,), ("mpi",), "mpi", 1)).latency


PING_PONG = """\
num_ranks 2
rank 0 {
l1: calc 1000
l2: send 4096b to 1 tag 5 cpu 0 nic 0
l3: recv 4096b from 1 tag 6
l4: calc 500
l2 requires l1
l3 requires l2
l4 requires l3
}
rank 1 {
a: recv 4096b from 0 tag 5
b: calc 2000
c: send 4096b to 0 tag 6
b requires a
c requires b
}
"""


@pytest.mark.parametrize(("hosts", "way"), [((0, 1), NEAR), ((0, 4), FAR)])
def test_a_job_takes_its_computation_and_its_messages(tmp_path: Path, hosts: tuple[int, int], way: float) -> None:
    """Within some ticks of 0.64 ns; another placement of the same trace takes longer by its messages."""
    found = simulate(tmp_path, PING_PONG, hosts)
    assert found.operation_mean == pytest.approx(1000 + way + 2000 + way + 500, abs=10)
    assert found.mean == pytest.approx(way, abs=3)  # of messages on links alone
    assert found.operations >= 10


def test_what_does_not_wait_runs_on(tmp_path: Path) -> None:
    """Rank 0 computes while its message leaves and the answer comes: the longer of both counts."""
    text = PING_PONG.replace("l4 requires l3\n", "l4 requires l2\n").replace("l4: calc 500", "l4: calc 50000")
    assert simulate(tmp_path, text, (0, 4)).operation_mean == pytest.approx(51000, abs=10)


def test_ranks_that_send_first_or_receive_first_do_not_block(tmp_path: Path) -> None:
    """Neither order of independent operations in the file holds both ranks up."""
    text = "num_ranks 2\n"
    for rank in (0, 1):
        text += f"rank {rank} {{\nr: recv 4096b from {1 - rank} tag 1\ns: send 4096b to {1 - rank} tag 1\n}}\n"
    assert simulate(tmp_path, text, (0, 4)).operation_mean == pytest.approx(FAR, abs=10)


def test_messages_of_a_tag_arrive_in_order(tmp_path: Path) -> None:
    path = tmp_path / "trace.goal"
    path.write_text("num_ranks 2\nrank 0 {\nsend 1b to 1\nsend 2b to 1\nsend 3b to 1 tag 7\n}\n"
                    "rank 1 {\nrecv 3b from 0 tag 7\nrecv 1b from 0\nrecv 2b from 0\n}\n")  # fmt: skip
    trace = load_goal(path)
    assert trace.rank == (0, 1, 0)
    sent = trace.steps[2]
    assert sent["awaits"].tolist() == [1, 2, 3]
    assert sent["bytes"].tolist() == [1, 2, 3]
    assert sorted(sent["slot"].tolist()) == [0, 1, 2]
    assert trace.arrivals == (1, 4, 3)  # with those by which both ranks end together


def test_a_neighbour_makes_the_job_longer(tmp_path: Path) -> None:
    """Through a study file: the job's own time, alone and next to I/O on the same links."""
    (tmp_path / "trace.goal").write_text(PING_PONG.replace("4096b", "1048576b"))
    (tmp_path / "study.yaml").write_text("""\
fabric: xgft:2:4,4:1,1@100
servers: [host16]
effort: {messages: 100, background: 5, warm_up: 5, least_warm_up: 5}
jobs:
  - {name: io, role: io, bytes: 1 MiB, hosts: "host[02-04,06-08]"}
  - {name: mpi, role: goal, goal: trace.goal, hosts: [host01, host05]}
""")
    assert main(["run", str(tmp_path / "study.yaml"), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    with (tmp_path / "out" / "means.csv").open() as file:
        alone, together = list(csv.DictReader(file))
    sending = 1048576 * 8 / 100 / 1e3
    assert float(alone["operation_us"]) == pytest.approx(3.5 + 2 * (sending + FAR / 1e3), rel=0.01)
    assert float(together["operation_us"]) > 1.2 * float(alone["operation_us"])


@pytest.mark.parametrize(
    ("old", "new", "line", "expected"),
    [
        ("num_ranks 2", "ranks 2", 1, "num_ranks N"),
        ("rank 1 {", "rank 2 {", 11, "rank R {, below 2"),
        ("l1: calc 1000", "l1: calculate", 3, "num_ranks N, rank R {, LABEL: calc NS"),
        ("l4 requires l3", "l4 requires l9", 9, "num_ranks N, rank R {, LABEL: calc NS"),
        ("to 1 tag 5", "to 2 tag 5", 4, "a rank below 2"),
        ("from 0 tag 5", "from 0 tag 9", 12, "a message of rank 0 with tag 9"),
        ("c: send 4096b to 0 tag 6", "c: calc 1", 5, "a message of rank 1 with tag 6"),
        ("l2 requires l1", "l2 requires l1\nl1 requires l3", 3, "operations that do not wait for each other"),
    ],
)
def test_invalid_lines_are_reported(tmp_path: Path, old: str, new: str, line: int, expected: str) -> None:
    path = tmp_path / "trace.goal"
    path.write_text(PING_PONG.replace(old, new))
    with pytest.raises(InputError, match="expected") as caught:
        load_goal(path)
    assert f"{path.name}:{line}: expected {expected}" in str(caught.value)


def test_hosts_are_as_many_as_ranks(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="3 hosts for 2 ranks"):
        simulate(tmp_path, PING_PONG, (0, 1, 2), replace(MACHINE, servers=0))
