# SPDX-License-Identifier: Apache-2.0
"""Studies that vary something: expanded into studies that do not, on the level of YAML values.

`vary` is a list of axes, each one change or a list of changes; `cases` is a list of changes. A study stands for each
combination of a change of each axis with each case. In a change, a list in place of a value stands for its values in
turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from ibprof_lab.simulation.study.study_reader import StudyReader, YamlMapping

VARYING_KEYS = ("routing", "servers", "server_placement", "job_placement", "hardware", "measured", "jobs")
"""Keys of a change. Its `jobs` is a mapping from a job's name to what changes of it."""

QUICK_KEYS = ("vary", "cases")
"""Keys of `quick`, which replace those of the study."""

_PLAIN_LISTS = ("hosts", "servers")
"""Keys whose lists are one value."""

_DEPTH = 2
"""Mappings within a change: its jobs, and each of them."""

_MOST_VARIANTS = 10_000


def choose_quick(reader: StudyReader, study: YamlMapping) -> YamlMapping:
    """Return a study with what its `quick` replaces."""
    quick = reader.mapping("quick", study.get("quick", YamlMapping()), QUICK_KEYS, "quick.{}")
    return _merge(study, quick)


def varies(study: Mapping[str, Any]) -> bool:
    """Return whether a study has variations."""
    return "vary" in study or "cases" in study


def expand_variations(reader: StudyReader, study: YamlMapping, job_keys: tuple[str, ...]) -> list[YamlMapping]:
    """Return the studies that a study stands for, each without variations.

    Args:
        reader: of the study.
        study: whose jobs are a list.
        job_keys: what a change of a job may have.

    Raises:
        InputError: `vary` or `cases` are invalid, or there are more than 10,000 variants.
    """
    names = tuple(job["name"] for job in study["jobs"] if isinstance(job.get("name"), str))

    def read(where: str, value: object) -> list[YamlMapping]:
        """Return the changes of an axis, or the cases."""
        listed = value if isinstance(value, list) else [value]
        changes = [_read_change(reader, where, each, names, job_keys) for each in listed]
        if not 0 < (count := sum(map(_count, changes))) <= _MOST_VARIANTS:
            raise reader.fail(where, f"1 to {_MOST_VARIANTS} changes", count)
        return [spread for change in changes for spread in _spread(change)]

    vary = study.get("vary", [])
    if not isinstance(vary, list):
        raise reader.fail("vary", "a list of axes", vary)
    axes = [read("vary", axis) for axis in vary]
    axes.append(read("cases", study.get("cases", YamlMapping())))
    if (variants := prod(map(len, axes))) > _MOST_VARIANTS:
        raise reader.fail("vary", f"of at most {_MOST_VARIANTS} variants", variants)
    return [_apply(study, changes) for changes in product(*axes)]


def _read_change(
    reader: StudyReader, where: str, value: object, names: tuple[str, ...], job_keys: tuple[str, ...]
) -> YamlMapping:
    change = reader.mapping(where, value, VARYING_KEYS, f"{where}.{{}}")
    jobs = reader.mapping(f"{where}.jobs", change.get("jobs", YamlMapping()), names, f"{where}.jobs.{{}}")
    for job in jobs.values():
        reader.mapping(f"{where}.jobs", job, job_keys, f"{where}.jobs.{{}}")
    return change


def _list_choices(change: YamlMapping, depth: int) -> Iterator[list[Any]]:
    """Yield the values that each key of a change takes in turn; of mappings in it down to a depth."""
    for key, value in change.items():
        if isinstance(value, YamlMapping) and depth:
            yield list(_spread(value, depth - 1))
        elif isinstance(value, list) and key not in _PLAIN_LISTS:
            yield value
        else:
            yield [value]


def _count(change: YamlMapping, depth: int = _DEPTH) -> int:
    """Return the number of changes that a change with lists stands for."""
    counts = (
        _count(value, depth - 1)
        if isinstance(value, YamlMapping) and depth
        else len(value)
        if isinstance(value, list) and key not in _PLAIN_LISTS
        else 1
        for key, value in change.items()
    )
    return prod(counts)


def _spread(change: YamlMapping, depth: int = _DEPTH) -> Iterator[YamlMapping]:
    """Yield a change for each combination of the values in its lists."""
    for values in product(*_list_choices(change, depth)):
        spread = YamlMapping()
        spread.line, spread.lines = change.line, change.lines
        spread.update(zip(change, values, strict=True))
        yield spread


def _apply(study: YamlMapping, changes: tuple[YamlMapping, ...]) -> YamlMapping:
    applied = study
    for change in changes:
        jobs: dict[object, Any] = change.get("jobs", {})
        applied = _merge(applied, {key: value for key, value in change.items() if key != "jobs"}, change.lines)
        listed = [_merge(job, jobs.get(job.get("name"), {})) for job in applied["jobs"]]
        applied = _merge(applied, {"jobs": listed})
    return applied


def _merge(base: YamlMapping, change: Mapping[str, Any], lines: Mapping[str, int] | None = None) -> YamlMapping:
    """Return a mapping with the values of another, and of mappings in it what both have."""
    merged = YamlMapping()
    merged.line = base.line
    lines = change.lines if isinstance(change, YamlMapping) else lines or {}
    merged.lines = {**base.lines, **{key: line for key, line in lines.items() if key in change}}
    merged.update(base)
    for key, value in change.items():
        old = base.get(key)
        merged[key] = _merge(old, value) if isinstance(old, YamlMapping) and isinstance(value, YamlMapping) else value
    return merged
