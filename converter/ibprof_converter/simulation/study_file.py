# SPDX-License-Identifier: Apache-2.0
"""A study of one's own, as a YAML file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import yaml

from ibprof.errors import InputError, quote_found
from ibprof_converter.simulation.cell import Cell, Setting
from ibprof_converter.simulation.measure import Effort
from ibprof_converter.simulation.network import Hardware
from ibprof_converter.simulation.patterns import cells_of
from ibprof_converter.simulation.roles import JobPlacement, Role, ServerPlacement, Workload

EXAMPLE = """\
fabric: xgft:3:8,8,4:1,8,2:1,1,4@100   # or a LST
routing: static                        # or adaptive
servers: 16
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

_LARGEST = 1 << 50
_UNITS_OF_TIME = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_UNITS_OF_SIZE = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
                  "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}  # fmt: skip

_KEYS = ("fabric", "routing", "servers", "server_placement", "job_placement", "hardware", "effort", "seeds", "measured",
         "jobs")  # fmt: skip
_JOB_KEYS = ("name", "role", "bytes", "interval", "window", "jitter", "share", "limit", "reads", "profile")

_NEEDS = {Role.PROFILE.value: "profile", Role.BARRIER.value: "name"}
"""What a job of a role must have, where it is not bytes."""

Made = TypeVar("Made", Hardware, Effort)


@dataclass(frozen=True, slots=True)
class _Reader:
    path: Path

    def fail(self, where: str, expected: str, found: object) -> InputError:
        return InputError(self.path, None, f"{where} to be {expected}", quote_found(str(found)))

    def mapping(self, where: str, value: object, keys: tuple[str, ...]) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self.fail(where, "a mapping", value)
        for key in value:
            if key not in keys:
                raise self.fail(where, f"of {', '.join(keys)}", key)
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

    def quantity(self, where: str, value: object, units: Mapping[str, float], least: float) -> float:
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)", str(value))
        if match and match[2] in units and least <= (amount := float(match[1]) * units[match[2]]) <= _LARGEST:
            return amount
        if value == 0 and least == 0:
            return 0.0
        raise self.fail(where, f"a quantity such as 4 {next(iter(units))} ({', '.join(units)})", value)

    def choice(self, where: str, value: object, values: tuple[str, ...]) -> str:
        if value not in values:
            raise self.fail(where, f"one of {', '.join(values)}", value)
        return str(value)

    def numbers(self, where: str, value: object, of: type[Made]) -> Made:
        names = tuple(each.name for each in fields(of))
        given = self.mapping(where, value, names)
        made: dict[str, Any] = {}
        for name, each in given.items():
            kind = next(one.type for one in fields(of) if one.name == name)
            what = f"{where}.{name}"
            made[name] = self.whole(what, each, 1, _LARGEST) if kind == "int" else self.number(what, each, 0, _LARGEST)
        return of(**made)


def read_study(path: Path) -> list[Cell]:
    """Read a study: the baseline of the measured job, and the run with all jobs, for each seed.

    Raises:
        InputError: it is no YAML, or says what cannot be.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(path, line, "YAML", str(error.problem)) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(path, None, "YAML", quote_found(str(error))) from error
    reader = _Reader(path)
    study = reader.mapping("the study", document, _KEYS)
    for key in ("fabric", "jobs"):
        if key not in study:
            raise reader.fail("the study", "with fabric and jobs", f"no {key}")
    workloads = _read_jobs(reader, study["jobs"])
    setting = Setting(
        fabric=str(study["fabric"]),
        hardware=reader.numbers("hardware", study.get("hardware", {}), Hardware),
        adaptive=reader.choice("routing", study.get("routing", "static"), ("static", "adaptive")) == "adaptive",
        servers=reader.whole("servers", study.get("servers", 0), 0, 1 << 16),
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
        effort=reader.numbers("effort", study.get("effort", {}), Effort),
    )
    if setting.hardware.lane_bytes < setting.hardware.packet_bytes:
        raise reader.fail("hardware.lane_bytes", "at least packet_bytes", setting.hardware.lane_bytes)
    names = tuple(each.name for each in workloads)
    measured = reader.choice("measured", study.get("measured", names[-1]), names)
    seeds = range(1, reader.whole("seeds", study.get("seeds", 1), 1, 1000) + 1)
    return cells_of(setting, workloads, measured, seeds)


def _read_jobs(reader: _Reader, jobs: object) -> list[Workload]:
    if not isinstance(jobs, list) or not jobs:
        raise reader.fail("jobs", "a list of jobs", jobs)
    made: list[Workload] = []
    for number, value in enumerate(jobs, start=1):
        where = f"job {number}"
        job = reader.mapping(where, value, _JOB_KEYS)
        needed = _NEEDS.get(str(job.get("role")), "bytes")
        for key in ("name", "role", needed):
            if key not in job:
                raise reader.fail(where, f"with name, role and {needed}", f"no {key}")
        name = str(job["name"])
        if name in {each.name for each in made}:
            raise reader.fail(f"{where}'s name", "of its own", name)
        made.append(
            Workload(
                name=name,
                role=Role(reader.choice(f"{where}'s role", job["role"], tuple(each.value for each in Role))),
                bytes=int(reader.quantity(f"{where}'s bytes", job.get("bytes", "1 B"), _UNITS_OF_SIZE, 1)),
                interval_ns=reader.quantity(f"{where}'s interval", job.get("interval", 0), _UNITS_OF_TIME, 0),
                window_ns=reader.quantity(f"{where}'s window", job.get("window", 0), _UNITS_OF_TIME, 0),
                jitter=reader.number(f"{where}'s jitter", job.get("jitter", 0.05), 0, 1),
                share=reader.number(f"{where}'s share", job.get("share", 1 / len(jobs)), 0, 1),
                limit=reader.whole(f"{where}'s limit", job.get("limit", 0), 0, 1 << 40),
                profile=str(reader.path.parent / str(job["profile"])) if "profile" in job else "",
                reads=int(reader.quantity(f"{where}'s reads", job.get("reads", 0), _UNITS_OF_SIZE, 0)),
            )
        )
    return made
