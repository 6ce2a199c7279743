# SPDX-License-Identifier: Apache-2.0
"""Reader of a study's YAML file: values, errors with line numbers, and variations.

A change is a mapping with new values of keys. `vary` is a list of axes; an axis is a change or a list of changes.
`cases` is a list of changes. Each variant of a study combines a change from each axis with a case. A change whose
values are lists is short for several changes: one for each combination of the lists' elements.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import yaml

from ibprof.errors import InputError, UsageError, quote_found
from ibprof.text.host_lists import expand_hosts
from ibprof_converter.routing.synthetic.spec import is_synthetic
from ibprof_converter.traffic.training_jobs import is_training
from ibprof_lab.lab_choices import RANGES
from ibprof_lab.simulation.engine.simulated_network import Hardware
from ibprof_lab.simulation.measure.message_latency import Effort
from ibprof_lab.simulation.study.simulated_machine import Refuse
from ibprof_lab.simulation.study.sizes_and_times import LARGEST, UNITS_OF_SIZE, is_whole, parse_quantity

Made = TypeVar("Made", Hardware, Effort)

# Patterns of numbers in YAML 1.2. In YAML 1.1, PyYAML's version, 1e7 is text, 1:30 is 90 and 010 is 8.
_NUMBERS = {
    "tag:yaml.org,2002:int": r"[-+]?(?:0|[1-9][0-9]*)$",
    "tag:yaml.org,2002:float": r"[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)$",
}

_LARGEST_FILE = 16 << 20

VARYING_KEYS = ("routing", "servers", "server_placement", "job_placement", "hardware", "measured", "jobs")
"""Keys of a change. The value of `jobs` is a mapping from a job's name to new values of the job's keys."""

QUICK_KEYS = ("vary", "cases")
"""Permitted keys of the mapping `quick`; their values replace the study's values."""

_PLAIN_LISTS = ("hosts", "servers")
"""Keys whose value may be a list that does not mean several changes."""

_DEPTH = 2
"""Number of levels of mappings inside a change: `jobs`, and each job."""

_MOST_VARIANTS = 10_000


class YamlMapping(dict[Any, Any]):
    """A YAML mapping, with its line number and the line numbers of its keys."""

    line = 1

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[Any, int] = {}


class _Loader(yaml.SafeLoader):
    """YAML loader that constructs `YamlMapping`s and refuses repeated keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: ARG002  (always deep)
        made = YamlMapping()
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
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _NUMBERS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern in _NUMBERS.items():
    _Loader.add_implicit_resolver(_tag, re.compile(_pattern), list("-+.0123456789"))


def load_yaml(path: Path) -> Any:
    """Read a YAML file; its mappings are `YamlMapping`s.

    Raises:
        InputError: the file is not YAML.
    """
    with path.open("rb") as file:
        text = file.read(_LARGEST_FILE + 1)
    if len(text) > _LARGEST_FILE:
        raise InputError(path, None, f"a study of at most {_LARGEST_FILE >> 20} MiB", "more")
    try:
        return yaml.load(text.decode("utf-8"), _Loader)  # a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(path, line, "YAML", str(error.problem).removeprefix("found ")) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # not UTF-8, or an invalid date or number
        raise InputError(path, None, "YAML", quote_found(str(error))) from error


@dataclass(frozen=True, slots=True)
class StudyReader:
    """Reader of values. The reader's methods raise an InputError with the line number of an invalid value.

    Attributes:
        lines: name of a value -> its line number; filled while values are read.
    """

    path: Path
    lines: dict[str, int] = field(default_factory=dict)

    def fail(self, where: str, expected: str, found: object) -> InputError:
        """Return the error for an invalid value."""
        # For a missing value, use the line of the mapping that should contain it.
        job, *_ = re.split(r"'s |\.", where)
        line = self.lines.get(where) or self.lines.get(job) or self.lines.get("jobs" if job[:4] == "job " else "")
        # Lists and mappings are not printed: with YAML aliases, their text can be larger than memory.
        said = (
            ("a list" if found else "an empty one")
            if isinstance(found, list)
            else "a mapping"
            if isinstance(found, dict)
            else quote_found(str(found), 200 if isinstance(found, Exception) else 60)
        )
        return InputError(self.path, line, f"{where} to be {expected}", said)

    def mapping(self, where: str, value: object, keys: tuple[str, ...], inside: str = "{}") -> YamlMapping:
        """Read a mapping whose keys are all in `keys`."""
        if not isinstance(value, YamlMapping):
            raise self.fail(where, "a mapping", value)
        self.lines[where] = value.line
        self.lines.update({inside.format(key): line for key, line in value.lines.items()})
        for key in value:
            if key not in keys:
                self.lines[where] = value.lines[key]
                raise self.fail(where, f"made of {', '.join(keys)}", key)
        return value

    def number(self, where: str, value: object, least: float, most: float) -> float:
        """Read a number."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            raise self.fail(where, f"a number from {least:g} to {most:g}", value)
        return float(value)

    def whole(self, where: str, value: object, least: int, most: int) -> int:
        """Read a whole number."""
        number = self.number(where, value, least, most)
        if number != int(number):
            raise self.fail(where, "a whole number", value)
        return int(number)

    def quantity(
        self, where: str, value: object, units: Mapping[str, float], least: float, most: int = LARGEST
    ) -> float:
        """Read a quantity with a unit; return bytes or ns."""
        amount = parse_quantity(value, units) if isinstance(value, str) else None
        if amount is not None and least <= amount <= most:
            if units is UNITS_OF_SIZE and not is_whole(amount):
                raise self.fail(where, "whole bytes", value)
            return amount
        if value == 0 and least == 0:
            return 0.0
        if units is UNITS_OF_SIZE and isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
            return float(value)  # without a unit: bytes
        unit = next(iter(units))
        at_most = "" if most == LARGEST else f", {most} {unit} at most"
        raise self.fail(where, f"a quantity such as 4 {unit} ({', '.join(units)}){at_most}", value)

    def text(self, where: str, value: object) -> str:
        """Read a non-empty text."""
        if value is None or isinstance(value, (list, dict)) or not str(value).strip():
            raise self.fail(where, "a text", value)
        return str(value)

    def file(self, where: str, value: object) -> str:
        """Search for a file in the folder of the study, then in the current folder; return the file's path. Names of
        synthetic fabrics and training jobs are returned unchanged.
        """
        name = self.text(where, value)
        if not name.isprintable():  # file names cannot have, for example, null characters
            raise self.fail(where, "printable", name)
        if is_synthetic(name) or is_training(name):
            return name
        for found in (self.path.parent / name, Path(name)):
            if found.exists():
                return str(found)
        raise self.fail(where, f"a file next to {self.path.name} or in the current folder", name)

    def hosts(self, where: str, value: object) -> list[str]:
        """Read host names: one expression such as node[01-04,7],login1, or a list of such expressions."""
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
        """Return a function that makes the error for an invalid value at `where` (see `Refuse`)."""
        return lambda expected, found: self.fail(where, expected, found)

    def choice(self, where: str, value: object, values: tuple[str, ...]) -> str:
        """Read one of several words."""
        if value not in values:
            raise self.fail(where, f"one of {', '.join(values)}", value)
        return str(value)

    def numbers(self, where: str, value: object, base: Made) -> Made:
        """Read a mapping of numbers; return `base` with these numbers as values of its fields."""
        named = {each.name: str(each.type) for each in fields(base)}
        given = self.mapping(where, value, tuple(named), f"{where}.{{}}")
        made: dict[str, Any] = {}
        for name, each in given.items():
            what = f"{where}.{name}"
            least, most = RANGES.get(name, (1 if name == "messages" else 0, LARGEST))
            made[name] = (
                self.whole(what, each, int(least), int(most))
                if named[name] == "int"
                else self.number(what, each, least, most)
            )
        return replace(base, **made)


def choose_quick(reader: StudyReader, study: YamlMapping) -> YamlMapping:
    """Return a study in which the values of its key `quick` replace the study's values."""
    quick = reader.mapping("quick", study.get("quick", YamlMapping()), QUICK_KEYS, "quick.{}")
    return _merge(study, quick)


def varies(study: Mapping[str, Any]) -> bool:
    """Return True if a study has variations."""
    return "vary" in study or "cases" in study


def expand_variations(reader: StudyReader, study: YamlMapping, job_keys: tuple[str, ...]) -> list[YamlMapping]:
    """Return the variants of a study.

    Args:
        study: the study, with a list of jobs.
        job_keys: permitted keys of a job in a change.

    Raises:
        InputError: `vary` or `cases` are invalid, or there are more than 10,000 variants.
    """
    names = tuple(job["name"] for job in study["jobs"] if isinstance(job.get("name"), str))

    def read(where: str, value: object) -> list[YamlMapping]:
        """Return the changes of an axis or of `cases`; a change with lists becomes several changes without lists."""
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
        raise reader.fail("vary", f"at most {_MOST_VARIANTS} variants", variants)
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
    """Yield the list of values for each key of a change, including keys in `depth` levels of nested mappings."""
    for key, value in change.items():
        if isinstance(value, YamlMapping) and depth:
            yield list(_spread(value, depth - 1))
        elif isinstance(value, list) and key not in _PLAIN_LISTS:
            yield value
        else:
            yield [value]


def _count(change: YamlMapping, depth: int = _DEPTH) -> int:
    """Return the number of combinations of the values in a change's lists."""
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
    """Yield a change for each combination of the values in a change's lists."""
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
    """Return `base` with the values in `change`; if both values of a key are mappings, merge them recursively."""
    merged = YamlMapping()
    merged.line = base.line
    lines = change.lines if isinstance(change, YamlMapping) else lines or {}
    merged.lines = {**base.lines, **{key: line for key, line in lines.items() if key in change}}
    merged.update(base)
    for key, value in change.items():
        old = base.get(key)
        merged[key] = _merge(old, value) if isinstance(old, YamlMapping) and isinstance(value, YamlMapping) else value
    return merged
