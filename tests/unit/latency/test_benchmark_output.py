# SPDX-License-Identifier: Apache-2.0
"""Delays are read from the output of benchmarks: runs of two processes by OSU and NCCL, and tables with a caption."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InputError
from ibprof_lab.cli.topology import main
from ibprof_lab.lab_choices import UNITS
from ibprof_lab.latency.files.delay_files import read_delays
from ibprof_testing.paths import DATA

DELAYS = DATA / "delays"

NCCL_RUN = """\
# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807
# Collective test starting: sendrecv_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1001 on {0} device  {1} [0000:17:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   1002 on {2} device  {3} [0000:65:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    {4}    0.00    0.00       0    99.99    0.00    0.00     N/A
          16             4     float              -1    {5}    0.00    0.00       0    99.99    0.00    0.00     N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.00123
#
"""

OSU = "# OSU MPI Latency Test v7.2\n# Size  Latency (us)\n"

TABLE = """\
pingmesh of 3 hosts, 2026-11-26
Bandwidth (GB/s)
        n1     n2     n3
0 n1    -      12.1   11.9
1 n2    12.0   -      11.8
2 n3    11.9   11.7   -
Latency (ms)
        n1     n2     n3
0 n1    --     0.0015 0.0020
1 n2    0.0016 --     0.0030
2 n3    0.0021 0.0031 --
took 3 s
"""


def test_runs_of_osu_latency_become_a_matrix() -> None:
    delays = read_delays(DELAYS / "osu_latency_pairs.out", unit=UNITS["ns"])
    assert delays.labels == ("n1", "n2", "n3", "n4")
    assert delays.lengths.tolist() == [1, 2, 4, 8]
    lines = (DELAYS / "osu_latency_pairs.out").read_text().splitlines()
    begin = lines.index("# n2 n4")
    assert lines[begin + 3].split()[0] == "1"
    assert delays.matrix(1)[1, 3] == pytest.approx(float(lines[begin + 3].split()[1]) * 1e-6)
    assert np.isnan(delays.matrix(1)[3, 1])
    assert int(delays.measured.sum()) == 4 * 6


def test_runs_of_osu_multi_lat_are_named_by_their_command() -> None:
    delays = read_delays(DELAYS / "osu_multi_lat_pairs.out")
    assert delays.labels == ("n1", "n2", "n3")
    assert delays.lengths.tolist() == [1, 2]
    assert int(delays.measured.sum()) == 2 * 3


@pytest.mark.parametrize(("unit", "seconds"), [("us", 1.5e-6), ("ms", 1.5e-3), ("ns", 1.5e-9)])
def test_the_header_of_osu_has_the_unit(tmp_path: Path, unit: str, seconds: float) -> None:
    (tmp_path / "osu.txt").write_text(f"# n1 n2\n# OSU MPI Latency Test v7.4\n# Size  Avg Latency({unit})\n1  1.5\n")
    assert read_delays(tmp_path / "osu.txt").matrix(1)[0, 1] == pytest.approx(seconds)


def test_nccl_tests_of_two_ranks_become_a_matrix(tmp_path: Path) -> None:
    runs = [("h1", 0, "h2", 0, 11.5, 12.5), ("h1", 0, "h3", 0, 13.5, 14.5), ("h2", 0, "h3", 0, 15.5, 16.5)]
    (tmp_path / "nccl.txt").write_text("".join(NCCL_RUN.format(*run) for run in runs))
    delays = read_delays(tmp_path / "nccl.txt")
    assert delays.labels == ("h1", "h2", "h3")
    assert delays.lengths.tolist() == [8, 16]
    assert np.allclose(delays.median[:, 1, 2] * 1e6, [15.5, 16.5])


@pytest.mark.parametrize(
    "command",
    ["mpirun -H n1,n2", "mpirun --host n1:1,n2:1", "srun -w n1,n2", "srun --nodelist=n[1-2] -N 2", "srun -w n[1,2]"],
)
def test_hosts_are_read_from_the_command_of_a_launcher(tmp_path: Path, command: str) -> None:
    (tmp_path / "osu.txt").write_text(f"+ {command} osu_latency\n{OSU}1  0.5\n")
    assert read_delays(tmp_path / "osu.txt").labels == ("n1", "n2")


def test_gpus_of_one_host_are_leaves(tmp_path: Path) -> None:
    runs = [("h1", 0, "h1", 1, 1.5, 2), ("h1", 0, "h2", 0, 3, 4), ("h1", 1, "h2", 0, 3, 4)]
    (tmp_path / "nccl.txt").write_text("".join(NCCL_RUN.format(*run) for run in runs))
    assert read_delays(tmp_path / "nccl.txt").labels == ("h1:gpu0", "h1:gpu1", "h2:gpu0")


@pytest.mark.parametrize("separator", [" ", " | "])
def test_the_table_of_delays_is_chosen_by_its_caption(tmp_path: Path, separator: str) -> None:
    rows = [separator.join(line.split()) if line[:1].isdigit() else line for line in TABLE.splitlines()]
    (tmp_path / "mesh.txt").write_text("\n".join(rows) + "\n")
    delays = read_delays(tmp_path / "mesh.txt", unit=UNITS["ns"])  # the caption's unit, ms, is used
    assert delays.labels == ("n1", "n2", "n3")
    expected = [[0, 1.5, 2.0], [1.6, 0, 3.0], [2.1, 3.1, 0]]
    assert np.allclose(delays.median[0] * 1e6, expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{OSU}1  0.5\n", r"in\.txt:1: expected a line with the two "),
        ("# n1 n2\n# OSU MPI Bandwidth Test v7.2\n# Size  Bandwidth (MB/s)\n1  5\n", r":2: expected a test of"),
        ("# n1 n2\n# OSU MPI Broadcast Latency Test v7.2\n# Size  Latency(us)\n1  5\n", r":2: expected a test of"),
        (f"# n1 n2\n{OSU}1  x\n", r":4: expected a size and a delay, foun"),
        (f"# n1 n2\n{OSU}", r":2: expected a size and a delay, found none"),
        (
            "mpirun -H a,b,c,d osu_multi_lat\n# OSU MPI Multi Latency Test v7.2\n# Size  Latency (us)\n1  5\n",
            r":1: expected the two hosts of a run, found 4: osu_multi_lat prints the mean of all pairs",
        ),
        (f"srun -w n[1- osu_latency\n{OSU}1  0.5\n", r":1: expected the two hosts of a run, found 'n\[1-': expected"),
        (NCCL_RUN.format("a", 0, "b", 0, 1, 2).replace("Rank  1", "Rank  3"), r"txt:7: expected rank 1, found 3"),
        (
            NCCL_RUN.format("a", 0, "b", 0, 1, 2).replace("#\n#    ", "#  Rank  2 Pid 9 on c device  0 [0x1] X\n#    "),
            r"txt:8: expected runs of two ranks, found a third",
        ),
        (NCCL_RUN.format("a", 0, "b", 0, "x", 2), r"txt:12: expected a size and a time, found"),
        (TABLE.replace("0.0030", "fast"), r"txt:10: expected a delay, found 'fast'"),
        (TABLE.replace("1 n2    0", "1 n9    0"), r"txt:10: expected the row of 'n2', found '1 n9'"),
        (TABLE + "Latency (us)\nn1 n2\nn1 0 1\nn2 1 0\n", r"txt:13: expected one table of delays, found another"),
        (TABLE.replace("Latency (ms)", "Rate (MB/s)"), r"txt:2: expected a table of delays, found 'Bandw"),
    ],
)
def test_bad_output_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "in.txt").write_text(text)
    with pytest.raises(InputError, match=message):
        read_delays(tmp_path / "in.txt")


def test_infer_ends_with_status_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_text(f"{OSU}1  0.5\n")
    assert main(["infer", str(tmp_path / "in.txt")]) == 3
    assert "in.txt:1: expected" in capsys.readouterr().err
