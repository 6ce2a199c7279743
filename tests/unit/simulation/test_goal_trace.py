# SPDX-License-Identifier: Apache-2.0
"""Times of GOAL files equal calculations by hand, operations wait as the files state, and invalid files are refused."""

from __future__ import annotations

import csv
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ibprof.errors import InconsistentError, InputError
from ibprof_lab.cli.sim import main
from ibprof_lab.simulation.measure.message_latency import Effort, Latency
from ibprof_lab.simulation.study.cell import Cell, Setting, find_assignment, run_cell
from ibprof_lab.simulation.workload.goal_trace import load_goal
from ibprof_lab.simulation.workload.workloads import Role, Workload, list_run_notes

pytestmark = pytest.mark.usefixtures("undrawn")

MACHINE = Setting("xgft:2:4,4:1,4@100", effort=Effort(messages=20, background=0, warm_up=0))
PACKET = 4096 * 8 / 100
NEAR, FAR = 2 * PACKET + 90, 4 * PACKET + 3 * 90
"""Latency of a packet within a leaf and between leaves, in ns."""


def simulate(tmp_path: Path, text: str, hosts: tuple[int, ...], setting: Setting = MACHINE) -> Latency:
    path = tmp_path / "trace.goal"
    path.write_text(text)
    load_goal.cache_clear()
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
    """Times agree with calculations by hand. On distant hosts, only the messages take longer."""
    found = simulate(tmp_path, PING_PONG, hosts)
    assert found.operation_mean == pytest.approx(1000 + way + 2000 + way + 500, abs=10)
    assert found.mean == pytest.approx(way, abs=3)  # the mean over messages between hosts
    assert found.operations >= 10


def test_what_does_not_wait_runs_on(tmp_path: Path) -> None:
    """Rank 0 computes while its message and the answer travel. The job takes the longer of these times."""
    text = PING_PONG.replace("l4 requires l3\n", "l4 requires l2\n").replace("l4: calc 500", "l4: calc 50000")
    assert simulate(tmp_path, text, (0, 4)).operation_mean == pytest.approx(51000, abs=10)


def test_ranks_that_send_first_or_receive_first_do_not_block(tmp_path: Path) -> None:
    """Operations without a dependency may be in any order in the file. No order blocks the ranks."""
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
    assert trace.arrivals == (1, 4, 3)  # the additional messages make both ranks end at the same time


def test_a_neighbour_makes_the_job_longer(tmp_path: Path) -> None:
    """A study simulates the job alone and next to I/O on the same links, and reports the job's duration."""
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
    # The summary has both the program's duration and the latency of its messages.
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["mpi_alone_us"] == float(alone["operation_us"])
    assert summary["mpi_alone_message_us"] == float(alone["mean_us"]) < summary["mpi_alone_us"]
    assert summary["mpi_slowdown"] == pytest.approx(summary["mpi_beside_us"] / summary["mpi_alone_us"], rel=1e-2)


@pytest.mark.parametrize(
    ("old", "new", "line", "expected"),
    [
        ("num_ranks 2", "ranks 2", 1, "num_ranks N"),
        ("rank 1 {", "rank 2 {", 11, "rank R {, below 2"),
        ("l1: calc 1000", "l1: calculate", 3, "num_ranks N, rank R {, LABEL: calc NS"),
        ("l4 requires l3", "l4 requires l9", 9, "num_ranks N, rank R {, LABEL: calc NS"),
        ("to 1 tag 5", "to 2 tag 5", 4, "a rank below 2"),
        ("from 0 tag 5", "from 0 tag 9", 12, "a message from rank 0 with tag 9"),
        ("c: send 4096b to 0 tag 6", "c: calc 1", 5, "a message from rank 1 with tag 6"),
        ("l2 requires l1", "l2 requires l1\nl1 requires l3", 3, "operations that do not wait for each other"),
        ("l4: calc 500", "l4: calc 1125899906842000", 6, "at most 1125899906842624 ns of computing per rank"),
        ("send 4096b to 1", "send 1125899906842625b to 1", 4, "a message of at most 1125899906842624 bytes"),
    ],
)
def test_invalid_lines_are_reported(tmp_path: Path, old: str, new: str, line: int, expected: str) -> None:
    path = tmp_path / "trace.goal"
    path.write_text(PING_PONG.replace(old, new))
    with pytest.raises(InputError, match="expected") as caught:
        load_goal(path)
    assert f"{path.name}:{line}: expected {expected}" in str(caught.value)


def test_hosts_are_as_many_as_ranks(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="expected 2 hosts, one per rank, found 3"):
        simulate(tmp_path, PING_PONG, (0, 1, 2), replace(MACHINE, servers=0))


MIB = 1 << 20
SENDING = MIB * 8 / 100
"""Time of 1 MiB at 100 Gbit/s, ns."""


@pytest.mark.parametrize(("size", "order"), [(MIB, "c irequires s"), (32768, "c requires s")])
def test_a_rank_waits_for_a_message_only_where_an_operation_requires_it(tmp_path: Path, size: int, order: str) -> None:
    """Each rank computes for 50 us during the exchange of messages. No computation waits for a message."""
    body = "s: send {0}b to {1}\nr: recv {0}b from {1}\nc: calc 50000\nw: calc 0\n{2}\nw requires r\nw requires c\n"
    text = "num_ranks 2\n" + "".join(f"rank {rank} {{\n{body.format(size, 1 - rank, order)}}}\n" for rank in (0, 1))
    expected = max(50_000, size * 8 / 100 + FAR)
    assert simulate(tmp_path, text, (0, 4)).operation_mean == pytest.approx(expected, rel=0.01)


def test_what_may_begin_when_a_receive_begins_does_not_wait_for_its_message(tmp_path: Path) -> None:
    """The message takes 84 us. The rank computes for 50 us during the message, and for 20 us afterwards."""
    text = """\
num_ranks 2
rank 0 {
s: send 1048576b to 1
}
rank 1 {
r: recv 1048576b from 0
c: calc 50000
w: calc 20000
c irequires r
w requires c
w requires r
}
"""
    assert simulate(tmp_path, text, (0, 4)).operation_mean == pytest.approx(SENDING + FAR + 20_000, rel=0.01)
    blocking = text.replace("c irequires r", "c requires r")
    assert simulate(tmp_path, blocking, (0, 4)).operation_mean == pytest.approx(SENDING + FAR + 70_000, rel=0.01)


def make_binomial(size: int) -> str:
    """Return a broadcast to 8 ranks by blocking sends. A rank sends to its largest subtree first."""
    sends = {0: (4, 2, 1), 4: (6, 5), 2: (3,), 6: (7,)}
    text = "num_ranks 8\n"
    for rank in range(8):
        lines, last = [], ""
        if rank:
            lines, last = [f"r: recv {size}b from {rank & (rank - 1)}"], "r"
        for peer in sends.get(rank, ()):
            lines += [f"s{peer}: send {size}b to {peer}", *([f"s{peer} requires {last}"] if last else [])]
            last = f"s{peer}"
        text += f"rank {rank} {{\n" + "\n".join(lines) + "\n}\n"
    return text


def test_large_blocking_sends_follow_each_other(tmp_path: Path) -> None:
    """A later operation that requires a send of 65,536 bytes or more waits until the message has arrived."""
    near = SENDING + PACKET + 90
    text = make_binomial(MIB)
    hosts, leaf = tuple(range(8)), replace(MACHINE, fabric="xgft:2:8,2:1,8@100")
    assert simulate(tmp_path, text, hosts, leaf).operation_mean == pytest.approx(3 * near, rel=0.01)
    small = simulate(tmp_path, make_binomial(4096), hosts, leaf).operation_mean
    assert small == pytest.approx(3 * NEAR, rel=0.02)


def test_any_source_and_tag_take_what_is_sent_first(tmp_path: Path) -> None:
    """Send times, not the file's order, decide matches. 2 bytes leave after 1 us, then 1 byte, then 3 bytes."""
    path = tmp_path / "trace.goal"
    path.write_text("""\
num_ranks 4
rank 0 {
a: recv 2b from -1 tag -1
b: recv 1b from 2 tag -1
c: recv 3b from -1 tag 9
b requires a
c requires b
}
rank 1 {
c: calc 3000
s: send 3b to 0 tag 9
s requires c
}
rank 2 {
c: calc 2000
s: send 1b to 0 tag 7
s requires c
}
rank 3 {
c: calc 1000
s: send 2b to 0 tag 8
s requires c
}
""")
    trace = load_goal(path)
    sent = dict(zip(trace.rank[4:], trace.steps[4:], strict=True))
    assert {rank: (step["bytes"][0], step["slot"][0]) for rank, step in sent.items()} == {
        3: (2, 0), 2: (1, 1), 1: (3, 2)
    }  # fmt: skip


def test_receives_of_any_source_need_as_many_messages(tmp_path: Path) -> None:
    path = tmp_path / "trace.goal"
    path.write_text("num_ranks 2\nrank 0 {\nrecv 1b from -1\nrecv 1b from -1\n}\nrank 1 {\nsend 1b to 0\n}\n")
    with pytest.raises(InputError, match=r"trace.goal:4: expected 2 messages to rank 0, one per receive, found"):
        load_goal(path)


def test_comments_of_the_schedule_generator_are_passed_over(tmp_path: Path) -> None:
    text = PING_PONG.replace("l1: calc 1000\n", "/* Recv begin */\nl1: calc 1000 /* of\nseveral lines */\n")
    assert simulate(tmp_path, "/* all */" + text, (0, 1)).operation_mean == pytest.approx(3500 + 2 * NEAR, abs=10)


def test_a_label_has_one_operation(tmp_path: Path) -> None:
    path = tmp_path / "trace.goal"
    path.write_text(PING_PONG.replace("l4: calc 500", "l1: calc 500").replace("l4 requires l3\n", ""))
    with pytest.raises(InputError, match=r"trace.goal:6: expected a label of one operation, found 'l1'"):
        load_goal(path)


def test_the_binary_form_is_named(tmp_path: Path) -> None:
    """LogGOPSim's txt2bin writes the binary form, which ibprof does not read."""
    path = tmp_path / "trace.bin"
    path.write_bytes((8).to_bytes(4, "little") + bytes(range(200)))
    with pytest.raises(InputError, match="expected a GOAL file as text, found the binary form"):
        load_goal(path)


def test_processors_and_adapters_that_are_not_simulated_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "trace.goal"
    path.write_text(PING_PONG.replace("b: calc 2000", "b: calc 2000 cpu 1"))
    job = Workload("mpi", Role.GOAL, 1, profile=str(path))
    (note,) = list_run_notes([job])
    assert note.endswith(
        "trace.goal: fields cpu and nic are ignored, since a simulated rank has one core and one adapter"
    )
    path.write_text(PING_PONG)
    load_goal.cache_clear()
    assert list_run_notes([job]) == []


def test_reading_takes_a_time_in_proportion_to_the_lines(tmp_path: Path) -> None:
    """The limit is 0.1 ms per line. A search through all labels for each line took a minute."""
    path, lines = tmp_path / "trace.goal", 40_000
    chain = "".join(f"r{n}: recv 8b from -1\n" + (f"r{n} requires r{n - 1}\n" if n else "") for n in range(lines))
    path.write_text("num_ranks 2\nrank 0 {\n" + "send 8b to 1\n" * lines + "}\nrank 1 {\n" + chain + "}\n")
    begin = time.process_time()
    assert load_goal(path).arrivals[1] == lines + 1
    assert time.process_time() - begin < 3 * lines * 1e-4


def test_a_trace_without_operations_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.goal"
    path.write_text("num_ranks 2\nrank 0 {\n}\nrank 1 {\n}\n")
    with pytest.raises(InputError, match=r"trace.goal: expected operations of a rank, found none"):
        load_goal(path)


def test_a_trace_of_more_ranks_than_hosts_is_named(tmp_path: Path) -> None:
    """The error names the trace, not the other job."""
    path = tmp_path / "trace.goal"
    path.write_text("num_ranks 17\nrank 0 {\ncalc 5\n}\n")
    load_goal.cache_clear()
    io = Workload("io", Role.IO, 4096, share=0.5)
    job = Workload("mpi", Role.GOAL, 1, profile=str(path))
    with pytest.raises(InconsistentError, match="job mpi needs 17 hosts, but 15 of 15 hosts are free"):
        find_assignment(Cell(replace(MACHINE, servers=1), (io, job), ("io", "mpi"), "mpi", 1))
