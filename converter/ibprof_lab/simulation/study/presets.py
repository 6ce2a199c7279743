# SPDX-License-Identifier: Apache-2.0
"""The studies that are shipped, in `presets/NAME.yaml`: study files, with a form that is quick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files

from ibprof.errors import UsageError
from ibprof_lab.simulation.engine.simulated_network import Hardware
from ibprof_lab.simulation.study.cell import Setting
from ibprof_lab.simulation.study.simulated_machine import MachineOptions, make_setting
from ibprof_lab.simulation.study.study_file import JOB_KEYS, StudyPlan, open_study, plan_study, read_effort
from ibprof_lab.simulation.study.study_reader import StudyReader, YamlMapping, choose_quick, expand_variations

_FOLDER = files(__package__) / "presets"

PRESETS = tuple(sorted(each.name.removesuffix(".yaml") for each in _FOLDER.iterdir() if each.name.endswith(".yaml")))
"""Names that `ibprof-sim study` takes."""


@cache
def _open_preset(name: str) -> tuple[StudyReader, YamlMapping]:
    with as_file(_FOLDER / f"{name}.yaml") as path:
        reader = StudyReader(path)
        return reader, open_study(reader)


def describe_presets() -> Mapping[str, str]:
    """Return the summary of each preset by its name."""
    return {name: str(_open_preset(name)[1]["summary"]) for name in PRESETS}


def plan_preset(name: str, machine: MachineOptions, seeds: Sequence[int], quick: bool) -> StudyPlan:
    """Return the simulations of a preset.

    Args:
        name: one of `PRESETS`.
        machine: replaces what the preset says of fabric, servers and effort; the base of what the preset varies.
        seeds: of the simulations.
        quick: plan the preset's quick form.

    Raises:
        UsageError: an option is invalid, or contradicts what the preset varies.
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
        raise UsageError(f"--servers: expected a number, as the study {name} varies where they are")
    _refuse_small_lanes(reader, name, base.hardware, variants)
    plan = plan_study(reader, name, varied, base, seeds)
    return replace(plan, setting=base, notes=(f"fabric {base.fabric}", *plan.notes))


def _refuse_small_lanes(reader: StudyReader, name: str, hardware: Hardware, variants: Sequence[YamlMapping]) -> None:
    """Check that packets and lanes of the options fit those that the study varies."""
    used = [reader.numbers("hardware", each.get("hardware", YamlMapping()), hardware) for each in variants]
    least, most = min(each.lane_bytes for each in used), max(each.packet_bytes for each in used)
    packet, lane, other = hardware.packet_bytes, hardware.lane_bytes, f"the study {name} also has"
    if packet > least:
        raise UsageError(f"--packet: expected at most {least}, found {packet}: {other} lanes of {least} bytes")
    if lane < most:
        raise UsageError(f"--lane: expected at least {most}, found {lane}: {other} packets of {most} bytes")
