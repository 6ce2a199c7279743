# SPDX-License-Identifier: Apache-2.0
"""The identifier of a batch job is read from the environment variables that each batch system sets."""

from __future__ import annotations

import re

import pytest

from ibprof.native.installed_files import find_library
from ibprof.profile.scheduler_job import _BY_SYSTEM, as_file_name, expand_output, identify_scheduler_job, output_values

SLURM = {
    "SLURM_JOB_ID": "9",
    "SLURM_JOB_USER": "ann",
    "SLURM_STEP_ID": "0",
    "SLURM_JOB_PARTITION": "fat",
    "USER": "root",
}
ARRAY = {"SLURM_ARRAY_JOB_ID": "6", "SLURM_ARRAY_TASK_ID": "3"}


@pytest.mark.parametrize(
    ("variables", "label", "user"),
    [
        ({}, "", ""),
        ({"USER": "bob"}, "", ""),
        (SLURM, "9.0", "ann"),
        (SLURM | ARRAY, "6_3.0", "ann"),
        ({"PBS_JOBID": "1234.server", "PBS_O_LOGNAME": "ann", "PBS_QUEUE": "q"}, "1234", "ann"),
        ({"PBS_JOBID": "1234[5].server", "PBS_ARRAY_INDEX": "5", "USER": "bob"}, "1234_5", "bob"),
        ({"PBS_JOBID": "1234-5.server", "PBS_ARRAYID": "5"}, "1234-5_5", ""),
        ({"LSB_JOBID": "77", "LSB_JOBINDEX": "0", "LSFUSER": "ann"}, "77", "ann"),
        ({"LSB_JOBID": "77", "LSB_JOBINDEX": "2", "LSFUSER": "ann"}, "77_2", "ann"),
        ({"COBALT_JOBID": "8", "COBALT_PARTNAME": "n[1-2]"}, "8", ""),
        ({"OAR_JOB_ID": "12", "OAR_USER": "ann"}, "12", "ann"),
        ({"FLUX_JOB_ID": "f2oLkTLb", "SLURM_JOB_ID": "9"}, "9", ""),
        ({"FLUX_JOB_ID": "f2oLkTLb"}, "f2oLkTLb", ""),
    ],
)
def test_job_of_each_system(variables: dict[str, str], label: str, user: str) -> None:
    job = identify_scheduler_job(variables)
    assert (job.label, job.user) == (label, user)
    assert bool(job.system) == bool(label)


def test_the_library_records_the_variables_that_the_reader_knows() -> None:
    """A variable reaches a profile only if both the library and the reader know it."""
    recorded = set(
        re.findall(rb"\0((?:SLURM|PBS|LSB|LSF|COBALT|OAR|FLUX)_?[A-Z_]+)(?=\0)", find_library().read_bytes())
    )
    known = {name for names in _BY_SYSTEM.values() for value in names.values() for name in value.split()}
    assert known <= {name.decode() for name in recorded}


def test_patterns() -> None:
    values = output_values(SLURM | ARRAY)
    assert expand_output("r-%j_%A_%a.%s-%u", values) == "r-9_6_3.0-ann"
    assert expand_output("%h %t %% %q %%j %", values) == "%h %t %% %q %%j %"
    assert expand_output("%%j %%%j %", {**values, "%": "%"}) == "%j %9 %"


def test_patterns_outside_a_batch_system_leave_the_job_to_the_library() -> None:
    assert expand_output("%j %A %a %s %u %x", output_values({})) == "%j %A notask nostep nouser noname"


@pytest.mark.parametrize(("name", "file"), [("1234[5].server", "1234_5_.server"), ("ƒ2", "__2"), ("../a b", ".._a_b")])
def test_names_in_files(name: str, file: str) -> None:
    assert as_file_name(name) == file
