# SPDX-License-Identifier: Apache-2.0
"""If a mock launcher behaves differently with ibprof, the comparison of benchmark suites gives the right verdict."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from ibprof_testing.mpi.mpis import Mpi
from ibprof_testing.paths import ROOT

sys.path.insert(0, str(ROOT / "benchmarks" / "suites"))
import imb
import mpich_tests
from outcomes import Case, Comparison, append_rows, compare, read_done
from run_suites import order_by_ranks

LAUNCHER = """#!/bin/sh
# mpirun -n RANKS sh -c BARE, RECORDED: run one of the two.
unset LD_PRELOAD
if [ "$IBPROF_OUTPUT" ]; then eval "$5"; else eval "$4"; fi
"""


def run_mock(folder: Path, bare: str, recorded: str, *, seconds: float = 20, repeats: int = 2) -> Comparison:
    launcher = folder / "mpirun"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    case = Case("mock", ("/bin/sh", bare, recorded), 2, folder, seconds=seconds, success=mpich_tests.SUCCESS)
    return compare(Mpi("system", folder), case, folder, repeats)


@pytest.mark.parametrize(
    ("bare", "recorded", "verdict"),
    [
        ("echo No Errors", "echo No Errors", "same"),
        ("exit 3", "exit 3", "same"),
        ("echo No Errors", "exit 3", "worse"),
        ("echo No Errors", "echo No Errors; echo at the wrong time >&2", "worse"),
        ("echo No Errors", "echo Found 2 errors", "worse"),
        ("exit 3", "echo No Errors", "better"),
        ("exit 3", "exit 4", "different"),
        ("echo No Errors", "[ -e once ] && echo No Errors; touch once", "unsteady"),
    ],
)
def test_verdict_says_what_ibprof_changed(bare: str, recorded: str, verdict: str, tmp_path: Path) -> None:
    assert run_mock(tmp_path, bare, recorded).verdict == verdict


def test_line_of_ibprof_is_kept_and_changes_no_outcome(tmp_path: Path) -> None:
    compared = run_mock(tmp_path, "echo No Errors", "echo No Errors; echo 'ibprof: no space' >&2")
    assert (compared.verdict, compared.with_ibprof, compared.said) == ("same", ("passed",), ("ibprof: no space",))


def test_time_out_without_ibprof_is_unknown_and_takes_one_limit(tmp_path: Path) -> None:
    begun = time.monotonic()
    compared = run_mock(tmp_path, "sleep 60", "touch ran; sleep 60", seconds=0.5, repeats=3)
    assert (compared.verdict, compared.without, compared.with_ibprof) == ("unknown", ("timed out",), ("not run",))
    assert not (tmp_path / "ran").exists()
    assert time.monotonic() - begun < 20


def test_time_out_with_ibprof_alone_is_worse(tmp_path: Path) -> None:
    compared = run_mock(tmp_path, "echo No Errors", "sleep 60", seconds=1, repeats=1)
    assert (compared.verdict, compared.with_ibprof) == ("worse", ("timed out",))


def test_time_out_ends_though_a_process_of_another_session_holds_the_output(tmp_path: Path) -> None:
    (tmp_path / "leave.py").write_text(
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        open('pid', 'w').write(str(os.getpid()))\n        time.sleep(30)\n    os._exit(0)\n"
    )
    begun = time.monotonic()
    compared = run_mock(tmp_path, f"exec {sys.executable} leave.py", "exit 0", seconds=2)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert compared.without == ("timed out",)
    assert time.monotonic() - begun < 20


def test_rows_are_written_as_cases_end_and_not_run_again(tmp_path: Path) -> None:
    table = tmp_path / "suite.csv"
    rows = append_rows(table, "system", [run_mock(tmp_path, "echo No Errors", "exit 3")])
    next(rows)
    assert read_done(table, "system") == {"mock"}
    assert read_done(table, "mpich-system") == set()
    assert table.read_text().splitlines()[1] == "system,mock,2,worse,passed,status 3,,"


def test_cases_of_few_ranks_come_first_and_keep_their_order(tmp_path: Path) -> None:
    cases = [Case(f"{ranks}", ("true",), ranks, tmp_path) for ranks in (16, 8, 4, 32, 1, 5, 2)]
    assert [case.ranks for case in order_by_ranks(cases)] == [1, 2, 4, 8, 5, 16, 32]


LISTED = {
    "IMB-MPI1": "#   Benchmarks, MPI-1 part\nBenchmarks to run:\n    Barrier\n    Biband (non-default)\n",
    "IMB-RMA": "    Put_local\n        MPI_Put for 2 cases:\n        1) The target is waiting\n        2)\n",
    "IMB-P2P": "# List of Benchmarks to run:\n#\n# PingPong\n# Stencil2D\n#\n",
}


def test_benchmarks_are_those_that_the_programs_list(tmp_path: Path) -> None:
    for name, text in LISTED.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}END\n")
        program.chmod(0o755)
    names = [case.name for case in imb.list_cases(tmp_path, 2, 20) if Path(case.command[0]).exists()]
    assert names == [
        "IMB-MPI1 Barrier",
        "IMB-MPI1 Biband",
        "IMB-RMA Put_local",
        "IMB-P2P PingPong",
        "IMB-P2P Stencil2D",
    ]
