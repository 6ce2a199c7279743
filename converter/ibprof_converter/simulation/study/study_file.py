# SPDX-License-Identifier: Apache-2.0
"""A study of one's own, as a YAML file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ibprof.errors import InconsistentError, UsageError
from ibprof_converter.simulation.engine.simulated_network import Hardware
from ibprof_converter.simulation.measure.message_latency import Effort
from ibprof_converter.simulation.study.cell import Cell, Setting, load_network, refuse_long_times
from ibprof_converter.simulation.study.job_patterns import cells_of
from ibprof_converter.simulation.study.named_hosts import DRAWN, NamedHosts, give_named, share_rest, stay_as_recorded
from ibprof_converter.simulation.study.study_reader import (
    UNITS_OF_SIZE,
    UNITS_OF_TIME,
    StudyReader,
    YamlMapping,
    load_yaml,
)
from ibprof_converter.simulation.workload.roles import JobPlacement, Role, ServerPlacement, Workload, seat

EXAMPLE = """\
fabric: xgft:3:8,8,4:1,8,2:1,1,4@100   # or a LST
routing: static                        # or adaptive
servers: 16                            # or node[01-16]
server_placement: isolated             # spread, random
job_placement: random-node             # random-switch
hardware: {packet_bytes: 4096, lane_bytes: 65536, switch_ns: 90}
effort: {messages: 20, background: 5}
seeds: 2
measured: mpi
jobs:
  - {name: io, role: io, bytes: 4 MiB, share: 0.5}
  - {name: mpi, role: pairs, bytes: 4 KiB, interval: 500 us, share: 0.5}
"""

WORDS = """\
roles: io, pairs, ring, all-to-all, allgather, allreduce, bcast, barrier, profile

what a job may say besides:
  hosts: [n1, "n[3-9]"]  instead of share; of a profile as many as its run had, in the order of their first ranks, or
                         "drawn"; else it stays on the hosts that it was recorded on, where the fabric has them
  interval: 500 us       from a message's arrival, or a collective's end, to the next one's start (default: none)
  window: 2 ms           of io and pairs: from start to start at least, a throttle
  jitter: 0.05           both vary by up to this part of them (default: 0.05)
  limit: 1000            messages of each client, after which it ends
  reads: 256 B           of io, pairs and profile: the other host is asked in so many bytes, and answers with the others
  profile: profile.otf2  of the role profile: a recorded run, by its time line, or with an interval

hardware besides: wire_ns, gbps (of all links; default: as the fabric says), tick_ns
effort besides: precision (0.05), warm_up (50), least_warm_up (50), hops (1e10); messages (200), background (50)
sizes: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB; times: ns, us, ms, s
files: beside this one, or else where the command is given
"""

MOST_SEEDS = 1000
_MOST_READS = (1 << 32) - 1
"""Bytes of a request, which the engine counts in 32 bits."""

KEYS = ("fabric", "routing", "servers", "server_placement", "job_placement", "hardware", "effort", "seeds", "measured",
         "jobs")  # fmt: skip
JOB_KEYS = ("name", "role", "bytes", "interval", "window", "jitter", "share", "limit", "reads", "profile",
             "hosts")  # fmt: skip

_TAKEN = ("packet", "lane", "half")
"""Names that no job has: `packet_bytes`, `lane_bytes` and `half_interval_us` are other columns of the tables."""

_NEEDS = {Role.PROFILE.value: "profile", Role.BARRIER.value: "name"}
"""What a job of a role must have, where it is not bytes."""

_ROLES_WITH: dict[str, tuple[Role, ...]] = {
    "window": (Role.PAIRS, Role.IO),
    "reads": (Role.PAIRS, Role.IO, Role.PROFILE),
    "limit": tuple(role for role in Role if role not in {Role.BROADCAST, Role.ALL_REDUCE}),
    "profile": (Role.PROFILE,),
    "bytes": tuple(role for role in Role if role not in {Role.PROFILE, Role.BARRIER}),
}
"""Whose jobs may have what; ranks of the two that have no limit send unequal numbers of messages."""


def read_study(path: Path, tell: Callable[[str], None] = lambda _: None) -> list[Cell]:
    """Read a study: the baseline of the measured job, and the run with all jobs, for each seed.

    Args:
        path: of the file.
        tell: is told where recorded runs are put, a sentence each.

    Raises:
        InputError: it is no YAML, or says what cannot be.
    """
    reader = StudyReader(path)
    study = reader.mapping("the study", load_yaml(path), KEYS)
    for key in ("fabric", "jobs"):
        if key not in study:
            raise reader.fail("the study", "with fabric and jobs", f"no {key}")
    workloads = _read_jobs(reader, study["jobs"])
    setting = _read_setting(reader, study)
    names = tuple(each.name for each in workloads)
    measured = reader.choice("measured", study.get("measured", names[-1]), names)
    seeds = range(1, reader.whole("seeds", study.get("seeds", 1), 1, MOST_SEEDS) + 1)
    _check_machine(reader, setting, workloads)
    try:
        setting, workloads = _place_named(reader, study, setting, workloads, tell)
        _check_seats(reader, setting, workloads)
    except InconsistentError as error:
        raise reader.fail("jobs", "such that they fit on the fabric", error) from None
    return cells_of(setting, workloads, measured, seeds)


def _read_setting(reader: StudyReader, study: Mapping[str, Any]) -> Setting:
    """Read all but the jobs; of servers that are named only how many there are."""
    fabric, servers = reader.file("fabric", study["fabric"]), study.get("servers", 0)
    are_named = _are_named(servers)
    count = len(reader.hosts("servers", servers)) if are_named else reader.whole("servers", servers, 0, 1 << 16)
    setting = Setting(
        fabric=fabric,
        hardware=reader.numbers("hardware", study.get("hardware", YamlMapping()), Hardware),
        adaptive=reader.choice("routing", study.get("routing", "static"), ("static", "adaptive")) == "adaptive",
        servers=count,
        server_placement=ServerPlacement(
            reader.choice(
                "server_placement", study.get("server_placement", "isolated"), tuple(e.value for e in ServerPlacement)
            )
        ),
        job_placement=JobPlacement(
            reader.choice(
                "job_placement", study.get("job_placement", "random-node"), tuple(e.value for e in JobPlacement)
            )
        ),
        effort=reader.numbers("effort", study.get("effort", YamlMapping()), Effort),
    )
    if setting.hardware.lane_bytes < setting.hardware.packet_bytes:
        raise reader.fail("hardware.lane_bytes", "at least packet_bytes", setting.hardware.lane_bytes)
    if "server_placement" in study and are_named:
        raise reader.fail("server_placement", "of servers that are not named", study["server_placement"])
    jobs = study["jobs"]
    if "job_placement" in study and all(job.get("hosts", DRAWN) != DRAWN for job in jobs):
        raise reader.fail("job_placement", "of jobs without hosts of their own", study["job_placement"])
    return setting


def _are_named(servers: object) -> bool:
    """Whether a study names its servers' hosts, and does not only say how many there are."""
    return isinstance(servers, list) or (isinstance(servers, str) and bool(re.search("[A-Za-z]", servers)))


def _check_machine(reader: StudyReader, setting: Setting, workloads: Sequence[Workload]) -> None:
    """Say at once, and where, what is wrong with the fabric, its servers and the jobs' times.

    Raises:
        InputError: there are too many servers or none, or times are too long.
    """
    if not setting.servers and any(each.role is Role.IO for each in workloads):
        raise reader.fail("servers", "a number above 0, for the job with the role io", setting.servers)
    try:
        _, network, _ = load_network(setting.fabric, setting.hardware)
    except UsageError as error:  # of the name of a fabric that is made up
        raise reader.fail("fabric", f"one that can be ({error})", setting.fabric) from None
    if setting.servers >= network.hosts:
        raise reader.fail("servers", f"fewer than the fabric's {network.hosts} hosts", setting.servers)
    for number, each in enumerate(workloads, start=1):
        try:
            refuse_long_times(network, each)
        except InconsistentError as error:
            raise reader.fail(f"job {number}", "of times that are counted", error) from None


def _place_named(
    reader: StudyReader,
    study: Mapping[str, Any],
    setting: Setting,
    workloads: Sequence[Workload],
    tell: Callable[[str], None],
) -> tuple[Setting, list[Workload]]:
    """Give servers and jobs the hosts that are named, and recorded runs those that they were on.

    Raises:
        InputError: a name is no host's, or a host is named twice.
        InconsistentError: a recorded run cannot be read as its job wants it.
    """
    jobs = study["jobs"]
    if not _are_named(study.get("servers", 0)) and not any(
        "hosts" in job or each.role is Role.PROFILE for job, each in zip(jobs, workloads, strict=True)
    ):
        return setting, list(workloads)
    named, taken, placed = NamedHosts(setting), {}, []
    if _are_named(study.get("servers", 0)):
        hosts = named.number(reader.hosts("servers", study["servers"]), reader.refusal("servers"))
        setting, taken = replace(setting, server_hosts=hosts), dict.fromkeys(hosts, "a server")
    for number, (job, each) in enumerate(zip(jobs, workloads, strict=True), start=1):
        where, given = f"job {number}'s hosts", job.get("hosts", DRAWN)
        placed.append(
            each
            if given == DRAWN
            else give_named(setting, each, reader.hosts(where, given), named, taken, reader.refusal(where))
        )
    drawn = [str(job["name"]) for job in jobs if job.get("hosts") == DRAWN]
    placed, notes = stay_as_recorded(setting, placed, named, drawn)
    for note in notes:
        tell(note)
    return setting, share_rest(placed, [str(job["name"]) for job in jobs if "share" not in job])


def _check_seats(reader: StudyReader, setting: Setting, workloads: Sequence[Workload]) -> None:
    """Say at once, and where, what does not fit on the fabric.

    Raises:
        InputError: shares add up to more than all hosts.
        InconsistentError: there are too few hosts for a job.
    """
    if sum(each.share for each in workloads) > 1 + 1e-9:
        total = " + ".join(f"{each.share:g}" for each in workloads)
        parts = "shares" if not any(each.hosts for each in workloads) else "shares, and parts that hosts are named for,"
        raise reader.fail(f"job {len(workloads)}'s share", f"such that all {parts} add up to 1 at most", total)
    _, network, _ = load_network(setting.fabric, setting.hardware)
    random = np.random.default_rng(1)
    seat(network, workloads, setting.servers, setting.server_placement, setting.job_placement, random,
         setting.server_hosts)  # fmt: skip


def _read_jobs(reader: StudyReader, jobs: object) -> list[Workload]:
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
                raise reader.fail(where, f"with name, role and {needed}", f"no {key}")
        name = reader.text(f"{where}'s name", job["name"])
        if not name.isprintable() or not name.strip():
            raise reader.fail(f"{where}'s name", "printable", name)
        if name in {*(each.name for each in made), *_TAKEN}:
            raise reader.fail(f"{where}'s name", "of its own", name)
        made.append(
            Workload(
                name=name,
                role=Role(reader.choice(f"{where}'s role", role, tuple(each.value for each in Role))),
                bytes=round(reader.quantity(f"{where}'s bytes", job.get("bytes", "1 B"), UNITS_OF_SIZE, 1)),
                interval_ns=reader.quantity(f"{where}'s interval", job.get("interval", 0), UNITS_OF_TIME, 0),
                window_ns=reader.quantity(f"{where}'s window", job.get("window", 0), UNITS_OF_TIME, 0),
                jitter=reader.number(f"{where}'s jitter", job.get("jitter", 0.05), 0, 1),
                share=reader.number(f"{where}'s share", job.get("share", 1 / len(jobs)), 0, 1),
                limit=reader.whole(f"{where}'s limit", job.get("limit", 0), 0, 1 << 40),
                profile=reader.file(f"{where}'s profile", job["profile"]) if "profile" in job else "",
                reads=round(reader.quantity(f"{where}'s reads", job.get("reads", 0), UNITS_OF_SIZE, 0, _MOST_READS)),
            )
        )
        _check_role(reader, where, job, made[-1])
    return made


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
