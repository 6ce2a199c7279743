# SPDX-License-Identifier: Apache-2.0
"""If messages of a collective are not seen, ibprof reports the collective, the requested and the recorded bytes.

In all other tests, `mpis.run_mpi` checks that the recording names no such collective.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof.profile.unaccounted import find_unaccounted
from ibprof.text.quantities import format_bytes
from ibprof_testing import processes
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import load_complete
from ibprof_testing.mpi.mpis import Build, Mpi, run_mpi

RANKS = 5
BYTES = 40_000
IN_MEMORY = {"coll_sm_priority": 100}


@pytest.mark.parametrize("call", ["Bcast", "Allreduce", "Reduce"])
def test_what_coll_sm_moved_is_named(call: str, mpi: Mpi, build: Build, tmp_path: Path) -> None:
    program = build(mpi, "collectives.c")
    run_mpi(
        mpi,
        RANKS,
        [program, "blocking", call, str(BYTES)],
        recording=tmp_path / "rec",
        mca=IN_MEMORY,
        whole=False,
    )
    run = load_complete(tmp_path / "rec", RANKS)
    (found,) = [each for each in find_unaccounted(run) if each.operation == call.upper()]
    assert found.on_host
    assert found.calls % RANKS == 0
    assert found.least_bytes >= (RANKS - 1) * BYTES
    assert found.seen_bytes < found.least_bytes


def test_every_output_names_it(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    program = build(system_mpi, "collectives.c")
    command: list[str | Path] = [system_mpi.program("mpirun"), "-n", str(RANKS), "--mca", "coll_sm_priority", "100"]
    done = _run(tmp_path, "ibprof", "run", "--", *command, program, "blocking", "Bcast", str(BYTES))
    archive = tmp_path / "profile.otf2"
    (found,) = json.loads(_run(tmp_path, "ibprof", "info", "--json", archive).stdout)["unaccounted"]
    assert set(found) == {"operation", "region", "calls", "least_bytes", "seen_bytes", "on_host"}
    assert (found["operation"], found["on_host"]) == ("BCAST", True)
    least, seen = format_bytes(found["least_bytes"]), format_bytes(found["seen_bytes"])
    said = f"MPI_Bcast: {found['calls']} calls must send at least {least} between ranks; {seen} were seen"
    assert done.stderr.splitlines()[-1] == (
        f"ibprof: fewer bytes were seen than calls must send: MPI_Bcast {seen} of {least}; "
        "the rest stayed on hosts: MPI moved it through memory (as coll/sm does)"
    )
    assert said in _run(tmp_path, "ibprof", "info", archive).stdout
    assert said in " ".join(_run(tmp_path, "ibprof-report", archive, "--full").stdout.split())
    assert json.loads(_run(tmp_path, "ibprof-report", archive, "--json").stdout)["coverage"]["unaccounted"] == [found]
    assert said in load_profile(archive)._repr_html_()


@pytest.mark.parametrize("asked", [["--mca", "coll_sm_priority", "100"], []])
def test_doctor_tries_collectives_with_the_settings_of_the_command(
    asked: list[str], system_mpi: Mpi, build: Build, tmp_path: Path
) -> None:
    program = build(system_mpi, "collectives.c")
    shown = _run(
        tmp_path, "ibprof", "doctor", "--", system_mpi.program("mpirun"), "-n", "64", *asked, program, "-x"
    ).stdout
    said = [line.split(None, 2)[2] for line in shown.splitlines() if line.split()[1] == "calls"]
    if asked:
        (bcast,) = [each for each in said if "MPI_Bcast" in each]
        assert re.fullmatch(
            r"in a trial of 2 ranks, MPI_Bcast: 4 calls must send at least 263 kB between ranks; \S+ k?B were "
            r"seen; the rest stayed on hosts: MPI moved it through memory \(as coll/sm does\)",
            bcast,
        )
    else:
        assert said == ["in a trial of 2 ranks, all bytes of collectives were seen"]


def test_doctor_tries_collectives_of_mpi4py(tmp_path: Path) -> None:
    mpi = mpis.find_mpi("5.0.11")
    shown = _run(tmp_path, "ibprof", "doctor", "--", mpi.program("mpirun"), "-n", "2", mpi.python, "app.py").stdout
    assert "calls      in a trial of 2 ranks, all bytes of collectives were seen" in shown


def _run(folder: Path, name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name(name)
    return processes.run([program, *arguments], check=True, cwd=folder, env=mpis.environment())


@pytest.mark.parametrize("name", mpis.in_every_run(*(name for name in mpis.MPICH_LIKE if name != mpis.INTEL)))
def test_mpich_is_compared_between_hosts_alone(name: str, build: Build, tmp_path: Path) -> None:
    """Messages in memory within a host, which no port counts, must not be reported as missing."""
    mpi = mpis.find_mpich_like(name)
    for call in ("Bcast", "Allreduce", "Alltoall"):
        run_mpi(mpi, RANKS, [build(mpi, "collectives.c"), "blocking", call, str(BYTES)], recording=tmp_path / call)
        run = load_complete(tmp_path / call, RANKS)
        assert len(run.demands.calls)
        assert not any(rank.sees_host for rank in run.ranks)
