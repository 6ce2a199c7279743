# SPDX-License-Identifier: Apache-2.0
"""libibprof.so and the launcher expand a recording's folder name equally, and profiles contain the job's identifier."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ibprof.profile.scheduler_job import as_file_name, expand_output, output_values
from ibprof.recording.recording_reader import read_recording
from ibprof_testing import processes
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.mpis import Build, environment, library

PATTERN = "j%j A%A a%a s%s h%h N%N t%t u%u x%x %% %q %%j%"
ENVIRONMENTS = {
    "none": {},
    "Slurm": {
        "SLURM_JOB_ID": "9",
        "SLURM_STEP_ID": "2",
        "SLURM_JOB_USER": "ann",
        "SLURM_PROCID": "0",
        "SLURM_JOB_NAME": "my job",
    },
    "an array": {"SLURM_JOB_ID": "9", "SLURM_ARRAY_JOB_ID": "6", "SLURM_ARRAY_TASK_ID": "3", "USER": "../b c"},
    "PBS": {"PBS_JOBID": "1234[5].server", "PBS_ARRAY_INDEX": "5", "PBS_O_LOGNAME": "ann"},
    "LSF": {"LSB_JOBID": "77", "LSB_JOBINDEX": "0", "LSFUSER": "ann", "LSB_JOBNAME": "a/b[1-4] 100%"},
    "LSF's array": {"LSB_JOBID": "77", "LSB_JOBINDEX": "4"},
    "Cobalt": {"COBALT_JOBID": "8"},
    "OAR": {"OAR_JOB_ID": "12"},
    "Flux": {"FLUX_JOB_ID": "ƒ2oLkTLb"},
}

LABELS = {
    "none": ("", ""),
    "Slurm": ("slurm", "9.2"),
    "an array": ("slurm", "6_3"),
    "PBS": ("pbs", "1234_5"),
    "LSF": ("lsf", "77"),
    "LSF's array": ("lsf", "77_4"),
    "Cobalt": ("cobalt", "8"),
    "OAR": ("oar", "12"),
    "Flux": ("flux", "ƒ2oLkTLb"),
}


@pytest.mark.parametrize("system", ENVIRONMENTS)
def test_library_and_launcher_agree(system: str, build: Build, tmp_path: Path) -> None:
    variables = {"USER": "bob"} | ENVIRONMENTS[system]
    plain = {name: value for name, value in environment().items() if not name.startswith(("SLURM", "USER"))}
    settings = {"LD_PRELOAD": str(library()), "IBPROF_OUTPUT": PATTERN}
    program = build(mpis.find_mpich_like(mpis.MPICH_SYSTEM), "copied.c")
    done = processes.run([program, "end"], env={**plain, **variables, **settings}, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    (folder,) = tmp_path.iterdir()
    profile = read_recording(folder)
    values = dict.fromkeys("jA", as_file_name(profile.job or "nojob")) | output_values(variables)
    host = as_file_name(socket.gethostname())
    values |= {"h": host, "N": host.partition(".")[0], "t": "0", "%": "%"}
    assert folder.name == expand_output(PATTERN, values)
    assert (profile.scheduler.system, profile.scheduler.label) == LABELS[system]
