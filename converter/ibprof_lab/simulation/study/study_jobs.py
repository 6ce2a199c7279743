# SPDX-License-Identifier: Apache-2.0
"""The jobs of a study file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ibprof_lab.simulation.study.named_hosts import DRAWN
from ibprof_lab.simulation.study.sizes_and_times import UNITS_OF_SIZE, UNITS_OF_TIME
from ibprof_lab.simulation.study.study_reader import StudyReader
from ibprof_lab.simulation.workload.workloads import Role, Workload

_MOST_READS = (1 << 32) - 1
"""Bytes of a request, which the engine counts in 32 bits."""

JOB_KEYS = ("name", "role", "bytes", "interval", "window", "jitter", "share", "limit", "reads", "profile",
             "goal", "hosts")  # fmt: skip

_TAKEN = ("packet", "lane", "half")
"""Names that no job has: `packet_bytes`, `lane_bytes` and `half_interval_us` are other columns of the tables."""

_ROLES = tuple(role for role in Role if role is not Role.REPLAY)
"""A replay has what `ibprof-sim replay` finds for it."""

_NEEDS = {Role.PROFILE.value: "profile", Role.GOAL.value: "goal", Role.BARRIER.value: "name"}
"""Required key of a job by its role, where it is not bytes."""

_ROLES_WITH: dict[str, tuple[Role, ...]] = {
    "window": (Role.PAIRS, Role.IO),
    "reads": (Role.PAIRS, Role.IO, Role.PROFILE),
    "limit": tuple(role for role in _ROLES if role not in {Role.BROADCAST, Role.ALL_REDUCE, Role.GOAL}),
    "profile": (Role.PROFILE,),
    "goal": (Role.GOAL,),
    "jitter": tuple(role for role in _ROLES if role is not Role.GOAL),
    "bytes": tuple(role for role in _ROLES if role not in {Role.PROFILE, Role.GOAL, Role.BARRIER}),
}
"""Key -> roles whose jobs may have it. Ranks of those without a limit send unequal numbers of messages."""


def read_jobs(reader: StudyReader, jobs: object) -> list[Workload]:
    """Read the jobs of a study, without their hosts.

    Raises:
        InputError: a job is invalid.
    """
    if not isinstance(jobs, list) or not jobs:
        raise reader.fail("jobs", "a list of jobs", jobs)
    made: list[Workload] = []
    for number, value in enumerate(jobs, start=1):
        where = f"job {number}"
        job = reader.mapping(where, value, JOB_KEYS, f"{where}'s {{}}")
        role = job.get("role")
        needed = _NEEDS.get(role, "bytes") if isinstance(role, str) else "bytes"
        for key in ("name", "role", needed):
            if key not in job:
                raise reader.fail(where, f"a mapping with name, role and {needed}", f"no {key}")
        name = reader.text(f"{where}'s name", job["name"])
        if not name.isprintable() or not name.strip():
            raise reader.fail(f"{where}'s name", "printable", name)
        if name in {*(each.name for each in made), *_TAKEN}:
            raise reader.fail(f"{where}'s name", "of its own", name)
        made.append(
            Workload(
                name=name,
                role=Role(reader.choice(f"{where}'s role", role, _ROLES)),
                bytes=round(reader.quantity(f"{where}'s bytes", job.get("bytes", "1 B"), UNITS_OF_SIZE, 1)),
                interval_ns=reader.quantity(f"{where}'s interval", job.get("interval", 0), UNITS_OF_TIME, 0),
                window_ns=reader.quantity(f"{where}'s window", job.get("window", 0), UNITS_OF_TIME, 0),
                jitter=reader.number(f"{where}'s jitter", job.get("jitter", 0.05), 0, 1),
                share=reader.number(f"{where}'s share", job.get("share", 1 / len(jobs)), 0, 1),
                limit=reader.whole(f"{where}'s limit", job.get("limit", 0), 0, 1 << 40),
                profile=_read_trace(reader, where, job),
                reads=round(reader.quantity(f"{where}'s reads", job.get("reads", 0), UNITS_OF_SIZE, 0, _MOST_READS)),
            )
        )
        _check_role(reader, where, job, made[-1])
    return made


def _read_trace(reader: StudyReader, where: str, job: Mapping[str, Any]) -> str:
    """Return the path of a job's profile or GOAL file, empty without one."""
    key = "goal" if "goal" in job else "profile"
    return reader.file(f"{where}'s {key}", job[key]) if key in job else ""


def _check_role(reader: StudyReader, where: str, job: Mapping[str, Any], workload: Workload) -> None:
    """Refuse what would have no effect.

    Raises:
        InputError: the job has what its role has not.
    """
    for key, roles in _ROLES_WITH.items():
        if job.get(key) and workload.role not in roles:
            allowed = f"of a job whose role is {', '.join(role.value for role in roles)}"
            raise reader.fail(f"{where}'s {key}", allowed, f"{job[key]} of {workload.role.value}")
    if job.get("hosts") == DRAWN and workload.role is not Role.PROFILE:
        raise reader.fail(f"{where}'s hosts", "names, as those of other jobs than a profile are drawn anyway", DRAWN)
    if "share" in job and job.get("hosts", DRAWN) != DRAWN:
        raise reader.fail(f"{where}'s share", "of a job without hosts of its own", job["share"])
    if job.get("jitter") and workload.follows_time_line:
        raise reader.fail(f"{where}'s jitter", "of a profile with an interval; a time line is as it was", job["jitter"])
