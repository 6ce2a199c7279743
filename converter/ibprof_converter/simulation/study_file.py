# SPDX-License-Identifier: Apache-2.0
"""A study of one's own, as a YAML file."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml

from ibprof.errors import InconsistentError, InputError, UsageError, quote_found
from ibprof_converter.routing.generated.spec import is_generated
from ibprof_converter.simulation.cell import Cell, Setting, load_network, refuse_long_times
from ibprof_converter.simulation.latency import Effort
from ibprof_converter.simulation.named_hosts import (
    DRAWN,
    NamedHosts,
    Refuse,
    give_hosts,
    order_for_run,
    stay_as_recorded,
)
from ibprof_converter.simulation.network import RANGES, Hardware
from ibprof_converter.simulation.patterns import cells_of
from ibprof_converter.simulation.roles import JobPlacement, Role, ServerPlacement, Workload, seat
from ibprof_converter.traffic.hostlists import expand_hosts

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
_LARGEST = 1 << 50
_MOST_READS = (1 << 32) - 1
"""Bytes of a request, which the engine counts in 32 bits."""
UNITS_OF_TIME = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
UNITS_OF_SIZE = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
                  "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}  # fmt: skip

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

Made = TypeVar("Made", Hardware, Effort)


def is_whole(amount: float) -> bool:
    """Whether a number of bytes is whole but for what units such as 1.1 kB are rounded by."""
    return abs(amount - round(amount)) <= 1e-9 * amount


class _Mapping(dict[Any, Any]):
    """A mapping that knows its lines in the file."""

    line = 1

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[Any, int] = {}


class _Loader(yaml.SafeLoader):
    """YAML whose mappings know their lines, and have each key once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: ARG002  (always deep)
        made = _Mapping()
        made.line = node.start_mark.line + 1
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str) or key in made:
                problem = f"{key!r} once more" if isinstance(key, str) else f"{key!r}, no name"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
            made[key] = self.construct_object(value_node, deep=True)
            made.lines[key] = key_node.start_mark.line + 1
        return made

    def construct_yaml_map(self, node: yaml.MappingNode) -> Generator[dict[Any, Any], None, None]:
        yield self.construct_mapping(node)


_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_yaml_map)
# Numbers as in YAML 1.2 and everywhere else: to YAML 1.1, 1e7 is none, 1:30 is 90 and 010 is 8.
_NUMBERS = {
    "tag:yaml.org,2002:int": r"[-+]?(?:0|[1-9][0-9]*)$",
    "tag:yaml.org,2002:float": r"[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)$",
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _NUMBERS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern in _NUMBERS.items():
    _Loader.add_implicit_resolver(_tag, re.compile(_pattern), list("-+.0123456789"))


@dataclass(frozen=True, slots=True)
class _Reader:
    path: Path
    lines: dict[str, int] = field(default_factory=dict)

    def fail(self, where: str, expected: str, found: object) -> InputError:
        # What is not there has no line: then that of what it should be in.
        job, *_ = re.split(r"'s |\.", where)
        line = self.lines.get(where) or self.lines.get(job) or self.lines.get("jobs" if job[:4] == "job " else "")
        # Not all of what is nested: with aliases in it, a short file says more than memory holds.
        said = (
            ("a list" if found else "an empty one")
            if isinstance(found, list)
            else "a mapping"
            if isinstance(found, dict)
            else quote_found(str(found), 200 if isinstance(found, Exception) else 60)
        )
        return InputError(self.path, line, f"{where} to be {expected}", said)

    def mapping(self, where: str, value: object, keys: tuple[str, ...], inside: str = "{}") -> Mapping[str, Any]:
        if not isinstance(value, _Mapping):
            raise self.fail(where, "a mapping", value)
        self.lines[where] = value.line
        self.lines.update({inside.format(key): line for key, line in value.lines.items()})
        for key in value:
            if key not in keys:
                self.lines[where] = value.lines[key]
                raise self.fail(where, f"made of {', '.join(keys)}", key)
        return value

    def number(self, where: str, value: object, least: float, most: float) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            raise self.fail(where, f"a number from {least:g} to {most:g}", value)
        return float(value)

    def whole(self, where: str, value: object, least: int, most: int) -> int:
        number = self.number(where, value, least, most)
        if number != int(number):
            raise self.fail(where, "a whole number", value)
        return int(number)

    def quantity(
        self, where: str, value: object, units: Mapping[str, float], least: float, most: int = _LARGEST
    ) -> float:
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)", value) if isinstance(value, str) else None
        if match and match[2] in units and least <= (amount := float(match[1]) * units[match[2]]) <= most:
            if units is UNITS_OF_SIZE and not is_whole(amount):
                raise self.fail(where, "whole bytes", value)
            return amount
        if value == 0 and least == 0:
            return 0.0
        if units is UNITS_OF_SIZE and isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
            return float(value)  # of bytes, as the keys say
        unit = next(iter(units))
        at_most = "" if most == _LARGEST else f", {most} {unit} at most"
        raise self.fail(where, f"a quantity such as 4 {unit} ({', '.join(units)}){at_most}", value)

    def text(self, where: str, value: object) -> str:
        if value is None or isinstance(value, (list, dict)) or not str(value).strip():
            raise self.fail(where, "a text", value)
        return str(value)

    def file(self, where: str, value: object) -> str:
        """Find what is beside the study, or else where the command is given; names of made-up fabrics stay."""
        name = self.text(where, value)
        if not name.isprintable():  # a zero, say, that no file's name can have
            raise self.fail(where, "printable", name)
        if is_generated(name):
            return name
        for found in (self.path.parent / name, Path(name)):
            if found.exists():
                return str(found)
        raise self.fail(where, f"a file beside {self.path.name} or where the command is given", name)

    def hosts(self, where: str, value: object) -> list[str]:
        """Read names of hosts: one expression such as node[01-04,7],login1, or a list of them."""
        given = value if isinstance(value, list) else [value]
        names = []
        for each in given:
            try:
                names += expand_hosts(self.text(where, each))
            except UsageError:
                raise self.fail(where, "hosts such as node[01-04,7],login1", each) from None
        if not names:
            raise self.fail(where, "hosts such as node[01-04,7],login1", value)
        return names

    def refusal(self, where: str) -> Refuse:
        """Give what makes the errors of a value."""
        return lambda expected, found: self.fail(where, expected, found)

    def choice(self, where: str, value: object, values: tuple[str, ...]) -> str:
        if value not in values:
            raise self.fail(where, f"one of {', '.join(values)}", value)
        return str(value)

    def numbers(self, where: str, value: object, of: type[Made]) -> Made:
        names = tuple(each.name for each in fields(of))
        given = self.mapping(where, value, names, f"{where}.{{}}")
        made: dict[str, Any] = {}
        for name, each in given.items():
            kind = next(one.type for one in fields(of) if one.name == name)
            what = f"{where}.{name}"
            least, most = RANGES.get(name, (1 if name == "messages" else 0, _LARGEST))
            made[name] = (
                self.whole(what, each, int(least), int(most)) if kind == "int" else self.number(what, each, least, most)
            )
        return of(**made)


def read_study(path: Path, tell: Callable[[str], None] = lambda _: None) -> list[Cell]:
    """Read a study: the baseline of the measured job, and the run with all jobs, for each seed.

    Args:
        path: of the file.
        tell: is told where recorded runs are put, a sentence each.

    Raises:
        InputError: it is no YAML, or says what cannot be.
    """
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(path, line, "YAML", str(error.problem).removeprefix("found ")) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # not UTF-8, a date or number that cannot be
        raise InputError(path, None, "YAML", quote_found(str(error))) from error
    reader = _Reader(path)
    study = reader.mapping("the study", document, KEYS)
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


def _read_setting(reader: _Reader, study: Mapping[str, Any]) -> Setting:
    """Read all but the jobs; of servers that are named only how many there are."""
    fabric, servers = reader.file("fabric", study["fabric"]), study.get("servers", 0)
    are_named = _are_named(servers)
    count = len(reader.hosts("servers", servers)) if are_named else reader.whole("servers", servers, 0, 1 << 16)
    setting = Setting(
        fabric=fabric,
        hardware=reader.numbers("hardware", study.get("hardware", _Mapping()), Hardware),
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
        effort=reader.numbers("effort", study.get("effort", _Mapping()), Effort),
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


def _check_machine(reader: _Reader, setting: Setting, workloads: Sequence[Workload]) -> None:
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
    reader: _Reader,
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
        refuse = reader.refusal("servers")
        hosts = named.number(reader.hosts("servers", study["servers"]), refuse)
        setting = replace(setting, server_hosts=hosts)
        taken = dict.fromkeys(hosts, "a server")
    for number, (job, each) in enumerate(zip(jobs, workloads, strict=True), start=1):
        given = job.get("hosts", DRAWN)
        if given == DRAWN:
            placed.append(each)
            continue
        where = f"job {number}'s hosts"
        refuse = reader.refusal(where)
        hosts = named.number(reader.hosts(where, given), refuse)
        for host in hosts:
            if host in taken:
                raise refuse("hosts of nothing else", f"{named.name(host)}, which is of {taken[host]}")
        if each.role is Role.PROFILE:
            hosts = order_for_run(each, hosts, refuse)
        taken |= dict.fromkeys(hosts, f"job {number}")
        placed.append(give_hosts(setting, each, hosts))
    drawn = [each.name for job, each in zip(jobs, workloads, strict=True) if job.get("hosts") == DRAWN]
    placed, notes = stay_as_recorded(setting, placed, named, drawn)
    for note in notes:
        tell(note)
    # What a job has where nothing is said: its part of all, or of what those have left whose hosts are known.
    free = [not each.hosts and "share" not in job for job, each in zip(jobs, placed, strict=True)]
    left = 1 - sum(each.share for each in placed if each.hosts)
    return setting, [
        replace(each, share=max(min(each.share, left / sum(free)), 0.0)) if is_free else each
        for each, is_free in zip(placed, free, strict=True)
    ]


def _check_seats(reader: _Reader, setting: Setting, workloads: Sequence[Workload]) -> None:
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


def _read_jobs(reader: _Reader, jobs: object) -> list[Workload]:
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


def _check_role(reader: _Reader, where: str, job: Mapping[str, Any], workload: Workload) -> None:
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
