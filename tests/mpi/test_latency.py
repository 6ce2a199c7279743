# SPDX-License-Identifier: Apache-2.0
"""`ibprof-latency measure` measures all pairs in all modes on real MPIs. A kill or a full disk loses no results."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ibprof_lab.latency.files.delay_files import read_delays, write_delays
from ibprof_lab.latency.model.delays import Delays
from ibprof_testing import processes
from ibprof_testing.mpi.mpis import (
    FROM_PYPI,
    LAUNCH_ANYHOW,
    MPICH_FROM_PYPI,
    MPICH_SYSTEM,
    Mpi,
    environment,
    find_mpi,
    find_mpich_like,
)

COMMAND = Path(sysconfig.get_path("scripts")) / "ibprof-latency"
QUICK = ("--repetitions", "3", "--batch-time", "50us", "--again", "0")


def launch(mpi: Mpi, ranks: int, *arguments: str | Path, folder: Path) -> list[str]:
    """Return the command line of a measurement, with an mpi4py that loads the launcher's MPI."""
    line = [str(mpi.program("mpirun")), "-n", str(ranks)]
    libraries = mpi.folder.parent / "lib"
    if mpi.name == MPICH_SYSTEM:
        # Debian's name of MPICH's library differs from the name that mpi4py expects, so make a link with this name.
        libraries = folder / "abi"
        libraries.mkdir(exist_ok=True)
        found = next(Path("/usr/lib").glob("*/libmpich.so.12"))
        (libraries / "libmpi.so.12").symlink_to(found)
    if mpi.is_mpich_like:
        line += ["-genv", "LD_LIBRARY_PATH", str(libraries), "-genv", "MPI4PY_MPIABI", "mpich"]
    elif mpi.name in FROM_PYPI:
        line += ["-x", f"LD_LIBRARY_PATH={libraries}"]
    return [*line, str(COMMAND), "measure", *map(str, arguments)]


def measure(
    mpi: Mpi, ranks: int, *arguments: str | Path, folder: Path, status: int = 0
) -> subprocess.CompletedProcess[str]:
    line = launch(mpi, ranks, *arguments, folder=folder)
    done = processes.run(line, env=environment(), timeout=120, cwd=folder)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def check_whole(delays: Delays, ranks: int, lengths: list[int], least: float = 1e-9) -> None:
    assert delays.lengths.tolist() == lengths
    assert delays.median.shape == (len(lengths), ranks, ranks)
    others = ~np.eye(ranks, dtype=bool)
    assert np.array_equal(delays.measured, np.broadcast_to(others, delays.median.shape))
    assert delays.repetitions is not None
    assert (delays.repetitions[:, others] >= 3).all()
    there = {name: cube[:, others] for name, cube in delays.present.items()}
    assert len(there) == 6
    assert (there["median"] >= least).all()
    assert (there["minimum"] <= there["lower_quartile"]).all()
    assert (there["lower_quartile"] <= there["median"]).all()
    assert (there["median"] <= there["upper_quartile"]).all()
    assert (there["deviation"] >= 0).all()
    assert np.all(np.diagonal(delays.median, axis1=1, axis2=2) == 0)


@pytest.mark.parametrize(
    "name",
    ["system", MPICH_SYSTEM, *(pytest.param(name, marks=pytest.mark.full) for name in (*FROM_PYPI, *MPICH_FROM_PYPI))],
)
def test_every_mpi_measures_every_pair(name: str, tmp_path: Path) -> None:
    mpi = find_mpich_like(name) if "mpich" in name else find_mpi(name)
    measure(mpi, 3, *QUICK, "--lengths", "0,1K:4K:x2", "-o", "delays.nc", folder=tmp_path)
    delays = read_delays(tmp_path / "delays.nc")
    check_whole(delays, 3, [0, 1024, 2048, 4096])
    assert ("MPICH" if mpi.is_mpich_like else "Open MPI") in str(delays.attributes["mpi"])
    assert delays.hosts == (os.uname().nodename,) * 3
    assert delays.cores[0]
    assert delays.attributes["complete"] == 1


MODES = (
    ("--schedule", "sequential"),
    ("--schedule", "shift"),
    ("--mode", "async"),
    ("--mode", "all_to_all"),
    ("--mode", "bandwidth", "--window", "4"),
    ("--one-way",),
    ("--schedule", "sequential", "--noise-processes", "2", "--noise-messages", "3", "--noise-length", "1K"),
)
IN_TURN = """
import json, sys
from ibprof_lab.cli.latency import main
sys.exit(max(main(["measure", *words]) for words in json.loads(sys.argv[1])))
"""


@pytest.mark.parametrize(
    ("ranks", "modes"),
    [
        (4, MODES),
        pytest.param(8, [()], marks=pytest.mark.full),
        pytest.param(5, [("--schedule", "halving")], marks=pytest.mark.full),
    ],
)
def test_every_mode_measures_every_pair(
    system_mpi: Mpi, ranks: int, modes: Sequence[tuple[str, ...]], tmp_path: Path
) -> None:
    """All modes run in one job, since imports on each rank take longer than a mode."""
    words = [[*QUICK, "--lengths", "8,70K", *mode, "-o", f"{number}.nc"] for number, mode in enumerate(modes)]
    line = launch(system_mpi, ranks, folder=tmp_path)
    line = [*line[: line.index(str(COMMAND))], sys.executable, "-c", IN_TURN, json.dumps(words)]
    done = processes.run(line, env=environment(), timeout=120, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.count(f"processes: {ranks}, hosts: 1") == len(modes)
    for number, mode in enumerate(modes):
        # A one-way delay is the difference of two times, so noise can make the delay 0.
        least = 0 if "--one-way" in mode else 1e-9
        check_whole(read_delays(tmp_path / f"{number}.nc"), ranks, [8, 70 * 1024], least)


def test_one_process_alone(system_mpi: Mpi, tmp_path: Path) -> None:
    """A process imports few modules, because each rank of a large job waits for imports."""
    line = launch(system_mpi, 1, *QUICK, "-o", "delays.nc", folder=tmp_path)
    done = processes.run(line, env=environment({"PYTHONPROFILEIMPORTTIME": "1"}), timeout=120, cwd=tmp_path)
    assert (done.returncode, "numpy" in done.stderr, "scipy" in done.stderr) == (0, True, False)
    assert read_delays(tmp_path / "delays.nc").median.tolist() == [[[0]]]


def test_large_messages_take_longer(system_mpi: Mpi, tmp_path: Path) -> None:
    """Other processes do not disturb the compared value, which is a minimum of many deliveries."""
    often = ("--repetitions", "50", "--batch-time", "50us", "--again", "0")
    measure(system_mpi, 2, *often, "--lengths", "4K,4M", "-o", "delays.nc", folder=tmp_path)
    short, long = read_delays(tmp_path / "delays.nc").minimum[:, 0, 1]  # type: ignore[index]
    assert long > short


def test_a_mistake_is_reported_once(system_mpi: Mpi, tmp_path: Path) -> None:
    done = measure(system_mpi, 3, "--lengths", "much", "-o", "delays.nc", folder=tmp_path, status=2)
    assert done.stderr.count("--lengths: expected bytes") == 1
    done = measure(system_mpi, 3, "--mode", "psychic", "-o", "delays.nc", folder=tmp_path, status=2)
    assert done.stderr.count("psychic") == 1


def test_nowhere_to_write_is_reported_before_measuring(system_mpi: Mpi, tmp_path: Path) -> None:
    done = measure(system_mpi, 2, "-o", tmp_path / "not" / "there.nc", folder=tmp_path, status=3)
    assert "there.nc" in done.stderr


def test_a_full_disk_is_reported_and_spares_what_was_there(system_mpi: Mpi, tmp_path: Path) -> None:
    """`ulimit -f` limits the file size, so the file of 64 x 64 processes does not fit."""
    measure(system_mpi, 2, *QUICK, "-o", "delays.nc", folder=tmp_path)
    before = (tmp_path / "delays.nc").read_bytes()
    line = launch(system_mpi, 2, *QUICK, "-o", "delays.nc", folder=tmp_path)
    limited = ["bash", "-c", 'ulimit -f 2; trap "" XFSZ; exec "$@"', "-", *line[line.index(str(COMMAND)) :]]
    done = processes.run(
        [*line[: line.index(str(COMMAND))], *limited],
        env=environment(), timeout=120, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "delays.nc" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "delays.nc").read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["delays.nc"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["terminated", "killed"])
def test_what_was_measured_is_kept_and_gone_on_with(number: signal.Signals, system_mpi: Mpi, tmp_path: Path) -> None:
    path = tmp_path / "delays.nc"
    long = ("--lengths", "0:400:1", "--repetitions", "5", "--batch-time", "5ms", "--again", "0", "--save-every", "50ms")
    line = launch(system_mpi, 3, *long, "-o", path, folder=tmp_path)
    with processes.start(line, env=environment()) as job:  # ranks outlive a killed launcher
        deadline = time.monotonic() + 100
        while not path.exists() or read_delays(path).measured[0].sum() < 6:
            assert time.monotonic() < deadline
            assert job.poll() is None
            time.sleep(0.05)
        job.send_signal(number)
        job.wait(timeout=60)
    kept = read_delays(path)
    found = kept.measured
    assert 0 < np.count_nonzero(found) < 401 * 6
    assert kept.attributes["complete"] == 0
    # The full measurement would take too long. Keep the results of a few message lengths, and finish only these
    # lengths.
    few = [0, 1, 398, 399]
    write_delays(path, kept.select(lengths=few))
    done = measure(system_mpi, 3, *QUICK, "--lengths", "0,1,398,399", "--resume", "-o", path, folder=tmp_path)
    delays = read_delays(path)
    check_whole(delays, 3, [0, 1, 398, 399])
    assert np.array_equal(delays.median[0], kept.median[0])
    assert delays.attributes["complete"] == 1
    assert "24 delays" in done.stderr


def test_resume_refuses_another_measurement(system_mpi: Mpi, tmp_path: Path) -> None:
    measure(system_mpi, 2, *QUICK, "-o", "delays.nc", folder=tmp_path)
    done = measure(system_mpi, 2, *QUICK, "--mode", "async", "--resume", "-o", "delays.nc", folder=tmp_path, status=5)
    assert "delays.nc: expected mode async, found one_to_one" in done.stderr
    done = measure(system_mpi, 3, *QUICK, "--resume", "-o", "delays.nc", folder=tmp_path, status=5)
    assert re.search(r"expected processes per host as in this run, '.+: 3', found '.+: 2'", done.stderr)


def test_a_stop_after_a_time_keeps_what_there_is(system_mpi: Mpi, tmp_path: Path) -> None:
    arguments = ("--lengths", "0:9999:1", "--max-time", "300ms", "-o", "delays.nc")
    done = measure(system_mpi, 2, *QUICK, *arguments, folder=tmp_path)
    assert "--resume continues" in done.stderr
    assert 0 < read_delays(tmp_path / "delays.nc").measured.sum() < 20_000


def test_given_pairs_are_measured_again_and_no_others(system_mpi: Mpi, tmp_path: Path) -> None:
    measure(system_mpi, 4, *QUICK, "-o", "delays.nc", folder=tmp_path)
    before = read_delays(tmp_path / "delays.nc")
    spoilt = before.median.copy()
    spoilt[0, 0, 1] = spoilt[0, 1, 0] = 1.0
    host = os.uname().nodename
    from dataclasses import replace  # noqa: PLC0415

    write_delays(tmp_path / "delays.nc", replace(before, median=spoilt))
    (tmp_path / "pairs.csv").write_text(f"sender,receiver\n{host}#0,{host}#1\n")
    measure(system_mpi, 4, *QUICK, "--pairs", "pairs.csv", "-o", "delays.nc", folder=tmp_path)
    after = read_delays(tmp_path / "delays.nc")
    assert after.median[0, 0, 1] < 1.0
    assert after.median[0, 1, 0] < 1.0
    changed = after.median[0] != spoilt[0]
    assert np.argwhere(changed).tolist() == [[0, 1], [1, 0]]
    assert after.repetitions is not None
    assert after.repetitions[0, 0, 1] == 9
    (tmp_path / "pairs.csv").write_text("sender,receiver\nnobody,0\n")
    done = measure(system_mpi, 4, *QUICK, "--pairs", "pairs.csv", "-o", "delays.nc", folder=tmp_path, status=3)
    assert "pairs.csv:2: expected" in done.stderr


def test_the_wrong_mpi_is_named(system_mpi: Mpi, tmp_path: Path) -> None:
    """With another MPI's library, each process is a separate job, and these jobs must not write the same file."""
    of_other = find_mpich_like(MPICH_FROM_PYPI[0])
    line = [str(of_other.program("mpirun")), "-n", "2", "-genv", "MPI4PY_MPIABI", "openmpi"]
    done = processes.run(
        [*line, str(COMMAND), "measure", "-o", "delays.nc"],
        env={**environment(), **LAUNCH_ANYHOW}, timeout=60, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
    assert "2 processes were launched" in done.stderr
    assert not (tmp_path / "delays.nc").exists()


@pytest.mark.full
def test_few_pairs_of_a_real_job(tmp_path: Path) -> None:
    """16 of 20 processes measure all their pairs. The other 4 processes measure fewer pairs, in one direction only."""
    done = measure(find_mpi("system"), 20, "--few-pairs", *QUICK, "-o", "few.nc", folder=tmp_path)
    delays = read_delays(tmp_path / "few.nc")
    found = int((delays.measured[0] | delays.measured[0].T).sum()) // 2
    assert found >= 16 * 15 // 2
    if "all pairs are measured" in done.stderr:
        assert found == 20 * 19 // 2
        assert np.array_equal(delays.measured[0], delays.measured[0].T)
    else:
        assert f"{found:,} of {20 * 19 // 2:,} pairs of 20 hosts measured" in done.stderr
        assert found == delays.measured[0].sum()
