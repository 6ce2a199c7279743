# SPDX-License-Identifier: Apache-2.0
"""Reads studies from users' YAML files and from presets, checks the studies, and lists their simulations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ibprof.errors import InconsistentError, UsageError
from ibprof_converter.choices import ROUTE_CHOICES, parse_routes
from ibprof_lab.lab_choices import DRAWN, MOST_SEEDS, JobPlacement, ServerPlacement
from ibprof_lab.simulation.engine.simulated_network import Hardware
from ibprof_lab.simulation.measure.message_latency import EFFORTS, Effort
from ibprof_lab.simulation.study.cell import Cell, Setting, find_assignment, make_cells, refuse_long_times
from ibprof_lab.simulation.study.presets import PRESET_FOLDER
from ibprof_lab.simulation.study.result_tables import PATTERN_COLUMNS, SETTING_COLUMNS
from ibprof_lab.simulation.study.simulated_machine import (
    MachineOptions,
    NamedHosts,
    allocate_named,
    make_setting,
    share_rest,
    stay_as_recorded,
)
from ibprof_lab.simulation.study.sizes_and_times import UNITS_OF_SIZE, UNITS_OF_TIME
from ibprof_lab.simulation.study.study_reader import (
    StudyReader,
    YamlMapping,
    choose_quick,
    expand_variations,
    load_yaml,
    varies,
)
from ibprof_lab.simulation.workload.workloads import Role, Workload

KEYS = ("summary", "fabric", "routes", "routing", "servers", "server_placement", "job_placement", "hardware", "effort",
        "seeds", "measured", "jobs", "by", "vary", "cases", "quick")  # fmt: skip

_MOST_READS = (1 << 32) - 1
"""Largest size of a read request, which the engine stores in 32 bits."""

JOB_KEYS = ("name", "role", "bytes", "interval", "window", "jitter", "share", "limit", "reads", "profile",
             "goal", "hosts")  # fmt: skip

_TAKEN = ("packet", "lane", "half")
"""Refused job names. A job's columns begin with its name, and `packet_bytes`, for example, exists already."""

_ROLES = tuple(role for role in Role if role is not Role.REPLAY)
"""Roles that jobs of a study may have. Only `ibprof-sim replay` uses the role REPLAY."""

_NEEDS = {Role.PROFILE.value: "profile", Role.GOAL.value: "goal", Role.BARRIER.value: "name"}
"""Role -> required key of a job with this role. Other roles require `bytes`."""

_ROLES_WITH: dict[str, tuple[Role, ...]] = {
    "window": (Role.PAIRS, Role.IO),
    "reads": (Role.PAIRS, Role.IO, Role.PROFILE),
    "limit": tuple(role for role in _ROLES if role not in {Role.BROADCAST, Role.ALL_REDUCE, Role.GOAL}),
    "profile": (Role.PROFILE,),
    "goal": (Role.GOAL,),
    "jitter": tuple(role for role in _ROLES if role is not Role.GOAL),
    "bytes": tuple(role for role in _ROLES if role not in {Role.PROFILE, Role.GOAL, Role.BARRIER}),
}
"""Key -> roles whose jobs may have the key. Roles whose ranks send unequal numbers of messages cannot have `limit`."""


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """The simulations of a study.

    Attributes:
        setting: setting of the first variant; for a preset, the setting that the command's options describe.
        cells: all simulations, sorted by seed. A shared baseline occurs once.
        by: columns of the table of means that distinguish slow-downs (the study's key `by`); required if the study has
            variations.
        notes: sentences for the user, shown before the simulation: fabric of a preset, hosts of recorded runs.
    """

    name: str
    setting: Setting
    cells: tuple[Cell, ...]
    by: tuple[str, ...]
    notes: tuple[str, ...]


def open_study(reader: StudyReader) -> YamlMapping:
    """Read the YAML file of a study, and check the keys that each study needs.

    Raises:
        InputError: the file is not YAML, or a key is unknown or missing.
    """
    study = reader.mapping("the study", load_yaml(reader.path), KEYS)
    for key in ("fabric", "jobs"):
        if key not in study:
            raise reader.fail("the study", "a mapping with fabric and jobs", f"no {key}")
    return study


def read_study(path: Path) -> StudyPlan:
    """Read a study file of a user, and return its simulations.

    Raises:
        InputError: the file is not YAML, or a value is invalid.
    """
    reader = StudyReader(path)
    study = open_study(reader)
    read_jobs(reader, study["jobs"])
    seeds = range(1, reader.whole("seeds", study.get("seeds", 1), 1, MOST_SEEDS) + 1)
    base = Setting(fabric=reader.file("fabric", study["fabric"]), effort=read_effort(reader, study, Effort()))
    return plan_study(reader, path.stem, study, base, seeds)


def plan_study(reader: StudyReader, name: str, study: YamlMapping, base: Setting, seeds: Sequence[int]) -> StudyPlan:
    """Return the simulations of a study: for each seed, each measured job alone and next to all other jobs.

    Args:
        base: setting with the values of properties that the study does not contain.

    Raises:
        InputError: a value is invalid.
    """
    by = read_columns(reader, study)
    parts: list[tuple[Setting, list[Workload], str]] = []
    notes: dict[str, None] = {}
    checked: set[object] = set()
    for variant in expand_variations(reader, study, JOB_KEYS):
        setting, workloads = _read_variant(reader, variant, base, notes, checked)
        names = tuple(each.name for each in workloads)
        measured = variant.get("measured", names[-1])
        for each in measured if isinstance(measured, list) else [measured]:
            parts.append((setting, workloads, reader.choice("measured", each, names)))
    if not parts:
        raise reader.fail("measured", "the name of a job", study["measured"])
    cells = dict.fromkeys(cell for seed in seeds for part in parts for cell in make_cells(*part, [seed]))
    return StudyPlan(name, parts[0][0], tuple(cells), by, tuple(notes))


def read_columns(reader: StudyReader, study: YamlMapping) -> tuple[str, ...]:
    """Read the value of `by`, a list of columns."""
    by = study.get("by", [])
    if not isinstance(by, list) or any(not isinstance(each, str) for each in by):
        raise reader.fail("by", "a list of columns of means.csv", by)
    if varies(study) and not by:
        where = "vary" if "vary" in study else "cases"
        raise reader.fail(where, "next to a key by, the list of varied columns of means.csv", "no by")
    names = [job["name"] for job in study["jobs"]]
    known = (*SETTING_COLUMNS, *(f"{name}_{column}" for name in names for column in ("share", *PATTERN_COLUMNS)))
    return tuple(reader.choice("by", each, known) for each in by)


def read_effort(reader: StudyReader, study: YamlMapping, usual: Effort) -> Effort:
    """Read the value of `effort`: a name from `EFFORTS`, or numbers.

    Raises:
        InputError: the value is invalid.
    """
    effort = study.get("effort", YamlMapping())
    if isinstance(effort, str):
        return EFFORTS[reader.choice("effort", effort, tuple(EFFORTS))]
    return reader.numbers("effort", effort, usual)


def _read_variant(
    reader: StudyReader, study: YamlMapping, base: Setting, notes: dict[str, None], checked: set[object]
) -> tuple[Setting, list[Workload]]:
    """Read one variant of a study. `checked` contains the keys of variants whose hosts are checked; the function adds
    this variant's key."""
    workloads = read_jobs(reader, study["jobs"])
    setting = _read_setting(reader, study, base)
    _check_machine(reader, setting, workloads)
    try:
        setting, workloads, told = _place_named(reader, study, setting, workloads)
        notes.update(dict.fromkeys(told))
        shape = (
            replace(setting, hardware=Hardware(), adaptive=False),
            tuple((each.role, each.share, each.hosts, each.profile) for each in workloads),
        )
        if shape not in checked:
            _check_hosts(reader, setting, workloads)
        checked.add(shape)
    except InconsistentError as error:
        raise reader.fail("jobs", "such that they fit on the fabric", error) from None
    return setting, workloads


def _read_setting(reader: StudyReader, study: Mapping[str, Any], base: Setting) -> Setting:
    """Read the setting of a variant. If servers are named, only their number is read here (see `_place_named`)."""
    setting = _read_servers(reader, study, base)
    if "routes" in study:
        text = reader.text("routes", study["routes"])
        try:
            setting = replace(setting, routes=parse_routes(text))
        except UsageError:
            raise reader.fail("routes", ROUTE_CHOICES, text) from None
    routing = reader.choice(
        "routing", study.get("routing", "adaptive" if base.adaptive else "static"), ("static", "adaptive")
    )
    placement = study.get("job_placement", base.job_placement.value)
    setting = replace(
        setting,
        hardware=reader.numbers("hardware", study.get("hardware", YamlMapping()), base.hardware),
        adaptive=routing == "adaptive",
        job_placement=JobPlacement(reader.choice("job_placement", placement, tuple(e.value for e in JobPlacement))),
    )
    if setting.hardware.lane_bytes < setting.hardware.packet_bytes:
        raise reader.fail("hardware.lane_bytes", "at least packet_bytes", setting.hardware.lane_bytes)
    if "job_placement" in study and all(job.get("hosts", DRAWN) != DRAWN for job in study["jobs"]):
        raise reader.fail("job_placement", "absent, since all jobs have named hosts", study["job_placement"])
    return setting


def _read_servers(reader: StudyReader, study: Mapping[str, Any], base: Setting) -> Setting:
    setting = base
    if "servers" in study:
        servers = study["servers"]
        are_named = _are_named(servers)
        count = len(reader.hosts("servers", servers)) if are_named else reader.whole("servers", servers, 0, 1 << 16)
        if are_named and "server_placement" in study:
            raise reader.fail("server_placement", "absent, since servers are named", study["server_placement"])
        setting = replace(base, servers=count, server_hosts=())
    placement = study.get("server_placement", base.server_placement.value)
    choices = tuple(each.value for each in ServerPlacement)
    return replace(setting, server_placement=ServerPlacement(reader.choice("server_placement", placement, choices)))


def _are_named(servers: object) -> bool:
    """Return True if the value of `servers` has names of hosts, False if it is a number."""
    return isinstance(servers, list) or (isinstance(servers, str) and bool(re.search("[A-Za-z]", servers)))


def _check_machine(reader: StudyReader, setting: Setting, workloads: Sequence[Workload]) -> None:
    """Check the fabric, the number of servers, and the jobs' times.

    Raises:
        InputError: there are too many servers or too few, or times are too long.
    """
    if not setting.servers and any(each.role is Role.IO for each in workloads):
        raise reader.fail("servers", "a number above 0, for the job with the role io", setting.servers)
    try:
        network = setting.load()
    except UsageError as error:  # the name of a synthetic fabric is invalid
        raise reader.fail("fabric", f"possible ({error})", setting.fabric) from None
    if setting.servers >= network.hosts:
        raise reader.fail("servers", f"fewer than the fabric's {network.hosts} hosts", setting.servers)
    for number, each in enumerate(workloads, start=1):
        try:
            refuse_long_times(network, each)
        except InconsistentError as error:
            raise reader.fail(f"job {number}", "of shorter times", error) from None


def _place_named(
    reader: StudyReader,
    study: Mapping[str, Any],
    setting: Setting,
    workloads: Sequence[Workload],
) -> tuple[Setting, list[Workload], list[str]]:
    """Assign named hosts to servers and jobs, and recorded hosts to recorded runs; also return notes for the user.

    Raises:
        InputError: a name is unknown, or a host is named twice.
        InconsistentError: a recording does not have the data that its job needs.
    """
    jobs = study["jobs"]
    if not _are_named(study.get("servers", 0)) and not any(
        "hosts" in job or each.role is Role.PROFILE for job, each in zip(jobs, workloads, strict=True)
    ):
        return setting, list(workloads), []
    named, taken, placed = NamedHosts(setting), {}, []
    if _are_named(study.get("servers", 0)):
        hosts = named.number(reader.hosts("servers", study["servers"]), reader.refusal("servers"))
        setting = replace(setting, servers=len(hosts), server_hosts=hosts)
        taken = dict.fromkeys(hosts, "a server")
        _check_machine(reader, setting, workloads)
    for number, (job, each) in enumerate(zip(jobs, workloads, strict=True), start=1):
        where, given = f"job {number}'s hosts", job.get("hosts", DRAWN)
        placed.append(
            each
            if given == DRAWN
            else allocate_named(setting, each, reader.hosts(where, given), named, taken, reader.refusal(where))
        )
    sampled = [str(job["name"]) for job in jobs if job.get("hosts") == DRAWN]
    placed, notes = stay_as_recorded(setting, placed, named, sampled)
    return setting, share_rest(placed, [str(job["name"]) for job in jobs if "share" not in job]), notes


def _check_hosts(reader: StudyReader, setting: Setting, workloads: Sequence[Workload]) -> None:
    """Check that all jobs together fit on the fabric.

    Raises:
        InputError: the shares add up to more than 1.
        InconsistentError: too few hosts remain for a job.
    """
    if sum(each.share for each in workloads) > 1 + 1e-9:
        total = " + ".join(f"{each.share:g}" for each in workloads)
        parts = "shares" if not any(each.hosts for each in workloads) else "shares, also the shares of named hosts,"
        raise reader.fail(f"job {len(workloads)}'s share", f"such that all {parts} add up to at most 1", total)
    find_assignment(Cell(setting, tuple(workloads), (), workloads[-1].name, 1))


def read_jobs(reader: StudyReader, jobs: object) -> list[Workload]:
    """Read the jobs of a study, except for their hosts.

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
            raise reader.fail(f"{where}'s name", "different from the names of other jobs and of columns", name)
        trace = "goal" if "goal" in job else "profile"
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
                profile=reader.file(f"{where}'s {trace}", job[trace]) if trace in job else "",
                reads=round(reader.quantity(f"{where}'s reads", job.get("reads", 0), UNITS_OF_SIZE, 0, _MOST_READS)),
            )
        )
        _check_role(reader, where, job, made[-1])
    return made


def _check_role(reader: StudyReader, where: str, job: Mapping[str, Any], workload: Workload) -> None:
    """Refuse keys of a job that have no effect for its role."""
    for key, roles in _ROLES_WITH.items():
        if job.get(key) and workload.role not in roles:
            allowed = f"of a job whose role is {', '.join(role.value for role in roles)}"
            raise reader.fail(f"{where}'s {key}", allowed, f"{job[key]} of {workload.role.value}")
    if job.get("hosts") == DRAWN and workload.role is not Role.PROFILE:
        raise reader.fail(f"{where}'s hosts", f"names, since only hosts of a profile may be {DRAWN}", DRAWN)
    if "share" in job and job.get("hosts", DRAWN) != DRAWN:
        raise reader.fail(f"{where}'s share", "absent, since the job has named hosts", job["share"])
    if job.get("jitter") and workload.follows_time_line:
        raise reader.fail(f"{where}'s jitter", "absent, since recorded times do not vary", job["jitter"])


@cache
def _open_preset(name: str) -> tuple[StudyReader, YamlMapping]:
    reader = StudyReader(PRESET_FOLDER / f"{name}.yaml")
    return reader, open_study(reader)


def plan_preset(name: str, machine: MachineOptions, seeds: Sequence[int], quick: bool) -> StudyPlan:
    """Return the simulations of an included study.

    Args:
        name: name from `PRESETS`.
        machine: options. Its fabric, servers and effort replace those of the preset; then the preset's variations are
            applied.
        quick: True to replace values of the preset by those in its key `quick`.

    Raises:
        UsageError: an option is invalid, or conflicts with a variation of the preset.
        InputError: the fabric cannot be read.
        InconsistentError: the jobs do not fit on the fabric.
    """
    reader, study = _open_preset(name)
    study = choose_quick(reader, study) if quick else study
    if machine.fabric is None:
        servers = machine.servers or reader.whole("servers", study.get("servers", 0), 0, 1 << 16)
        machine = replace(machine, fabric=reader.file("fabric", study["fabric"]), servers=servers)
    base = make_setting(replace(machine, effort=machine.effort or read_effort(reader, study, Setting("").effort)))
    varied = YamlMapping()
    varied.line, varied.lines = study.line, study.lines
    varied.update((key, value) for key, value in study.items() if key not in {"fabric", "servers", "effort"})
    variants = expand_variations(reader, varied, JOB_KEYS)
    if base.server_hosts and any("server_placement" in each for each in variants):
        raise UsageError(f"--servers: expected a number, since the study {name} varies the placement of servers")
    _refuse_small_lanes(reader, name, base.hardware, variants)
    plan = plan_study(reader, name, varied, base, seeds)
    return replace(plan, setting=base, notes=(f"fabric {base.fabric}", *plan.notes))


def _refuse_small_lanes(reader: StudyReader, name: str, hardware: Hardware, variants: Sequence[YamlMapping]) -> None:
    """Refuse options that make a packet larger than a lane's buffer in a variant of the study."""
    used = [reader.numbers("hardware", each.get("hardware", YamlMapping()), hardware) for each in variants]
    least, most = min(each.lane_bytes for each in used), max(each.packet_bytes for each in used)
    packet, lane, other = hardware.packet_bytes, hardware.lane_bytes, f"the study {name} has"
    if packet > least:
        raise UsageError(f"--packet: expected at most {least}, found {packet}: {other} lanes of {least} bytes")
    if lane < most:
        raise UsageError(f"--lane: expected at least {most}, found {lane}: {other} packets of {most} bytes")
