# SPDX-License-Identifier: Apache-2.0
"""A study over MPI ranks gives exactly the files of a study on one machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ibprof_lab.cli.sim import main
from ibprof_lab.simulation.study.result_tables import MEANS, RESULTS
from ibprof_lab.simulation.study.sweep import STORE
from ibprof_testing import processes
from ibprof_testing.mpi import mpis

STUDY = ["study", "placement", "--quick", "--fabric", "xgft:2:4,5:1,4@100", "--servers", "4"]
COMMAND = [sys.executable, "-c", "import sys; from ibprof_lab.cli.sim import main; sys.exit(main())"]


def run_on_ranks(mpi: mpis.Mpi, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(mpi.program("mpirun")), "-n", "3", *COMMAND, *arguments]
    environment = mpis.environment() | mpi.variables
    return processes.run(command, env=environment, timeout=300)


def test_three_ranks_give_the_same_results(system_mpi: mpis.Mpi, tmp_path: Path) -> None:
    done = run_on_ranks(system_mpi, *STUDY, "-o", str(tmp_path / "ranks"))
    assert done.returncode == 0, done.stderr
    assert main([*STUDY, "--workers", "1", "-o", str(tmp_path / "one")]) == 0
    names = sorted(each.name for each in (tmp_path / "one").iterdir() if each.name != STORE)
    assert {MEANS, RESULTS, "summary.json", "links.csv", "view.html"} <= set(names)
    for name in names:
        assert (tmp_path / "ranks" / name).read_bytes() == (tmp_path / "one" / name).read_bytes(), name
    # The files `STORE` can differ: they list simulations in order of completion, with the time that each took.
    assert len((tmp_path / "ranks" / RESULTS).read_text().splitlines()) == 5
    assert len((tmp_path / "ranks" / STORE).read_text().splitlines()) == 4


@pytest.mark.parametrize(
    "command",
    [
        ["run", "study.yaml"],
        pytest.param(["study", "placement", "--fabric", "none.lst"], marks=pytest.mark.full),
        pytest.param(["charts", "none"], marks=pytest.mark.full),
        pytest.param(["threshold", "--fabric", "none.lst"], marks=pytest.mark.full),
    ],
)
def test_one_rank_says_what_is_wrong(system_mpi: mpis.Mpi, command: list[str], tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text("fabric: 1\n")
    arguments = [str(study) if each == study.name else each for each in command]
    done = run_on_ranks(system_mpi, *arguments, "-o", str(tmp_path))
    assert done.returncode == 3
    assert done.stderr.count("ibprof-sim:") == 1


def test_one_rank_estimates(system_mpi: mpis.Mpi, capsys: pytest.CaptureFixture[str]) -> None:
    """The estimated time is for the two ranks that simulate, whatever `--workers` says."""
    survey = [*STUDY, "--dry-run"]
    done = run_on_ranks(system_mpi, *survey, "--workers", "7")
    assert main([*survey, "--workers", "2"]) == 0
    assert json.loads(done.stdout) == json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("system_mpi")
def test_an_mpi4py_is_there() -> None:
    """mpi4py is installed; without it, the tests above would prove nothing."""
    from mpi4py import futures  # noqa: PLC0415

    assert hasattr(futures, "MPICommExecutor")
