# SPDX-License-Identifier: Apache-2.0
"""No process that a test's command started outlives the command's timeout, even in another process group."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ibprof_testing import processes

# As with launchers, each process leads a process group. The last process to end also leads a session.
LAUNCHER = """
import os, sys, time
from pathlib import Path
for leave in (os.setpgrp, os.setsid):
    if not os.fork():
        leave()
        break
Path(sys.argv[1], str(os.getpid())).touch()
time.sleep(300)
"""


def started(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.iterdir()]


def test_all_processes_end_at_the_timeout(tmp_path: Path) -> None:
    for seconds in (1, 4, 16, 64):  # try longer time limits until all processes start
        with pytest.raises(subprocess.TimeoutExpired):
            processes.run([sys.executable, "-c", LAUNCHER, tmp_path], timeout=seconds)
        assert not any(map(processes.is_running, started(tmp_path)))
        if len(started(tmp_path)) >= 3:
            return
    pytest.fail("the processes did not start")


def test_all_processes_end_with_the_block(tmp_path: Path) -> None:
    with processes.start([sys.executable, "-c", LAUNCHER, tmp_path]) as process:
        while len(started(tmp_path)) < 3:
            assert process.poll() is None
        assert all(map(processes.is_running, started(tmp_path)))
    assert not any(map(processes.is_running, started(tmp_path)))


def test_a_group_outlives_no_leader_that_was_killed(tmp_path: Path) -> None:
    with processes.start([sys.executable, "-c", LAUNCHER.replace("os.setsid", "os.setpgrp"), tmp_path]) as process:
        while len(started(tmp_path)) < 3:
            assert process.poll() is None
        process.kill()
        process.wait()
        assert any(map(processes.is_running, started(tmp_path)))
    assert not any(map(processes.is_running, started(tmp_path)))


def test_others_go_on(tmp_path: Path) -> None:
    with processes.start(["sleep", "300"]) as other:
        with pytest.raises(subprocess.TimeoutExpired):
            processes.run(["sleep", "300"], timeout=0.1)
        assert other.poll() is None


def test_output_and_status_are_those_of_the_command(tmp_path: Path) -> None:
    done = processes.run(["sh", "-c", "pwd; echo $NAME >&2; exit 3"], cwd=tmp_path, env={"NAME": "value"})
    assert (done.returncode, done.stdout, done.stderr) == (3, f"{tmp_path}\n", "value\n")
    with pytest.raises(subprocess.CalledProcessError):
        processes.run(["false"], check=True)
