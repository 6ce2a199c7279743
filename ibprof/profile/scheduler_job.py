# SPDX-License-Identifier: Apache-2.0
"""Read a job's identifiers in its batch system from environment variables; expand patterns in IBPROF_OUTPUT.

`csrc/preload/recording/scheduler.c` records these variables and expands the same patterns.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from dataclasses import dataclass

_ALLOWED = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_LONGEST_NAME = 255

_BY_SYSTEM: Mapping[str, Mapping[str, str]] = {
    "slurm": {
        "job": "SLURM_JOB_ID",
        "array_job": "SLURM_ARRAY_JOB_ID",
        "array_task": "SLURM_ARRAY_TASK_ID",
        "step": "SLURM_STEP_ID",
        "restarts": "SLURM_RESTART_COUNT",
        "user": "SLURM_JOB_USER",
        "partition": "SLURM_JOB_PARTITION",
        "nodes": "SLURM_JOB_NODELIST",
        "cluster": "SLURM_CLUSTER_NAME",
        "name": "SLURM_JOB_NAME",
        "account": "SLURM_JOB_ACCOUNT",
    },
    "pbs": {
        "job": "PBS_JOBID",
        "array_task": "PBS_ARRAY_INDEX PBS_ARRAYID",
        "user": "PBS_O_LOGNAME",
        "partition": "PBS_QUEUE",
        "cluster": "PBS_SERVER",
        "name": "PBS_JOBNAME",
        "account": "PBS_ACCOUNT",
    },
    "lsf": {
        "job": "LSB_JOBID",
        "array_task": "LSB_JOBINDEX",
        "user": "LSFUSER",
        "partition": "LSB_QUEUE",
        "name": "LSB_JOBNAME",
        "account": "LSB_PROJECT_NAME",
    },
    "cobalt": {"job": "COBALT_JOBID", "partition": "COBALT_QUEUE", "nodes": "COBALT_PARTNAME"},
    # In OAR, each task of an array is a job, so the task needs no number.
    "oar": {"job": "OAR_JOB_ID", "user": "OAR_USER", "name": "OAR_JOB_NAME"},
    "flux": {"job": "FLUX_JOB_ID"},
}
"""Environment variables for each attribute of `SchedulerJob`, by system.

The job belongs to the first system whose job variable is set. Flux is last: if Flux runs inside another
system's job, the other system's job counts.

Sources: sbatch(1) of Slurm, qsub(1B) of OpenPBS and Torque, LSF's bsub reference, Cobalt's qsub, oarsub(1),
flux-environment(7).
"""


@dataclass(frozen=True, slots=True)
class SchedulerJob:
    """A job of a batch system. Unknown attributes are empty texts.

    Attributes:
        system: slurm, pbs, lsf, cobalt, oar or flux; empty outside a batch system.
        job: identifier of the job, or of a task of an array.
        array_job, array_task: identifiers of the array and of the task.
        step: the job's step in Slurm; empty if the job script started the ranks without srun.
        restarts: number of times that the job was requeued.
        user: the user who runs the job.
        partition: partition or queue.
        nodes: nodes of the job, in Slurm's short form.
        cluster: name of the cluster or of the server.
        account: account that pays for the job.
    """

    system: str = ""
    job: str = ""
    array_job: str = ""
    array_task: str = ""
    step: str = ""
    restarts: str = ""
    user: str = ""
    partition: str = ""
    nodes: str = ""
    cluster: str = ""
    name: str = ""
    account: str = ""

    @property
    def job_label(self) -> str:
        """Return the job's name in accounting (`6`; `6_3` for task 3 of an array); empty outside a batch system."""
        number = self.array_job or self.job
        if self.system == "pbs":  # 1234.server, 1234[5].server
            number = re.split(r"[.\[]", number)[0]
        return f"{number}_{self.array_task}" if self.array_task else number

    @property
    def label(self) -> str:
        """Return the step's name in accounting (`6.0`, `6_3.0`); without steps, the job's label."""
        return f"{self.job_label}.{self.step}" if self.step else self.job_label

    @property
    def text(self) -> str:
        """Return the job as a line of text; empty outside a batch system."""
        parts = {"user": self.user, "partition": self.partition, "nodes": self.nodes, "cluster": self.cluster}
        return ", ".join(
            [f"{self.system} {self.label}".strip(), *(f"{name} {value}" for name, value in parts.items() if value)]
        )


def identify_scheduler_job(variables: Mapping[str, str]) -> SchedulerJob:
    """Identify the job of a batch system from environment variables.

    Args:
        variables: environment of a process, or its copy in a recording.
    """
    for system, names in _BY_SYSTEM.items():
        if variables.get(names["job"]):
            found = {attribute: _first(variables, names[attribute]) for attribute in names}
            return SchedulerJob(system, **{"user": variables.get("USER", "")} | {k: v for k, v in found.items() if v})
    return SchedulerJob()


def _first(variables: Mapping[str, str], names: str) -> str:
    """Return the value of the first variable that is set. LSF's array index 0 counts as not set."""
    values = (variables.get(name, "") for name in names.split() if (name, variables.get(name)) != ("LSB_JOBINDEX", "0"))
    return next(filter(None, values), "")


def output_values(variables: Mapping[str, str]) -> dict[str, str]:
    """Return letter -> value for the job's patterns in IBPROF_OUTPUT; `j` and `A` only in a batch system."""
    job = identify_scheduler_job(variables)
    known = {"j": job.job, "A": job.array_job or job.job} if job.system else {}
    rest = {
        "a": job.array_task or "notask",
        "s": job.step or "nostep",
        "u": job.user or variables.get("USER") or "nouser",
        "x": job.name or "noname",
    }
    return {letter: as_file_name(value) for letter, value in {**known, **rest}.items()}


def expand_output(pattern: str, values: Mapping[str, str]) -> str:
    """Replace each `%` and the next character by the character's value. Characters without a value stay unchanged."""
    return re.sub("%(.)", lambda found: values.get(found[1], found[0]), pattern, flags=re.DOTALL)


def output_glob(pattern: str) -> str:
    """Return the glob pattern of all folders that an IBPROF_OUTPUT can name."""
    parts = re.findall("%.|[^%]+|%", pattern, flags=re.DOTALL)
    return "".join(
        "*" if len(part) == 2 and part[0] == "%" and part[1] in "jAasuxhNt" else glob.escape(part.replace("%%", "%"))
        for part in parts
    )


def as_file_name(text: str) -> str:
    """Replace all characters but letters, digits, `.`, `_` and `-` in a name, as libibprof.so does."""
    raw = text.encode("utf-8", "surrogateescape")[:_LONGEST_NAME]
    return "".join(chr(byte) if byte in _ALLOWED else "_" for byte in raw)
