# SPDX-License-Identifier: Apache-2.0
"""Read the C headers' definitions for Python: numbers, structs as numpy types, and the layout of a recording.

The headers are the only source of numbers and layouts. Python code repeats only the headers' names, for type checkers.
Parsing takes a millisecond, so modules can read enumerations at import; cffi would take a hundred milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ibprof.native.installed_files import cffi_text, find_kernels_headers, find_recording_header

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_DEFINE = re.compile(r"^#define (\w+) +(\S+)", re.MULTILINE)
_BLOCK = re.compile(r"^(enum|struct) (\w+) \{(.*?)\};", re.MULTILINE | re.DOTALL)
_DECLARATOR = re.compile(r"(\w+)((?:\[\w+\])*)")

_SCALARS = {f"{sign}int{8 * size}_t": f"{sign or 'i'}{size}" for sign in ("", "u") for size in (1, 2, 4, 8)}
_SCALARS |= {"float": "f4", "double": "f8"}


# Kind of a segment -> struct of the segment's records.
_RECORDS = {
    "IBP_SEGMENT_PROCESS": "process",
    "IBP_SEGMENT_PORTS": "port",
    "IBP_SEGMENT_REGIONS": "region",
    "IBP_SEGMENT_ORIGINS": "origin",
    "IBP_SEGMENT_OBJECTS": "object",
    "IBP_SEGMENT_SITES": "site",
    "IBP_SEGMENT_COUNTERS": "counter",
    "IBP_SEGMENT_COUNTERS_OF_1": "counter_of_1",
    "IBP_SEGMENT_SIZES": "sizes",
    "IBP_SEGMENT_SIZES_OF_1": "sizes_of_1",
    "IBP_SEGMENT_MARKS": "mark",
    "IBP_SEGMENT_PAIRS": "pair",
    "IBP_SEGMENT_TRANSFERS": "transfer",
    "IBP_SEGMENT_HARDWARE": "hardware",
    "IBP_SEGMENT_ADDRESSES": "address",
    "IBP_SEGMENT_SNAPSHOTS": "snapshot",
    "IBP_SEGMENT_LAUNCH": "launch",
    "IBP_SEGMENT_GRIDS": "grid",
    "IBP_SEGMENT_DEMANDS": "demand",
    "IBP_SEGMENT_TIMES": "time",
    "IBP_SEGMENT_CHOICES": "choice",
    "IBP_SEGMENT_INTERFACES": "interface",
    "IBP_SEGMENT_TRANSPORTS": "transport",
    "IBP_SEGMENT_COLLECTIVE_SAMPLES": "collective_sample",
    "IBP_SEGMENT_MESSAGE_SAMPLES": "message_sample",
    "IBP_SEGMENT_NCCL_COMMUNICATORS": "nccl_communicator",
    "IBP_SEGMENT_NCCL_TASKS": "nccl_task",
    "IBP_SEGMENT_NCCL_FLOWS": "nccl_flow",
    "IBP_SEGMENT_NCCL_SAMPLES": "nccl_sample",
}


@dataclass(frozen=True, slots=True)
class Headers:
    """The definitions of one or more headers.

    Attributes:
        constants: integer defines and the enumerators of all enums, by name.
        enums: enumerators of each enum, by the enum's name.
        types: numpy type of each struct without pointers, by the struct's name, with a C compiler's padding.
    """

    constants: Mapping[str, int]
    enums: Mapping[str, Mapping[str, int]]
    types: Mapping[str, np.dtype[np.void]]

    def enumerators(self, enum: str, prefix: str) -> dict[str, int]:
        """Return enumerator -> value of an enum; `prefix` is removed from the enumerators' names."""
        return {name.removeprefix(prefix): number for name, number in self.enums[enum].items()}

    def numbers_of(self, enum: str, prefix: str) -> HeaderNumbers:
        """Return the values of a C enum, for a Python Enum with the same names."""
        return HeaderNumbers(self.enumerators(enum, prefix))


@dataclass(frozen=True, slots=True)
class HeaderNumbers:
    """The `_generate_next_value_` of a Python Enum: each `auto()` becomes the value of the C enumerator with its name.

    The class statement raises `KeyError` for a name that the header lacks.
    """

    numbers: Mapping[str, int]

    def __call__(self, name: str, start: int, count: int, last_values: list[Any]) -> int:  # noqa: ARG002  (Enum passes them)
        """Return the value of the C enumerator `name`."""
        return self.numbers[name]


@lru_cache(maxsize=1)
def recording_header() -> Headers:
    """Read the header that describes recordings.

    Raises:
        MissingToolError: the header is not installed.
    """
    return parse_headers(cffi_text(find_recording_header()))


@lru_cache(maxsize=1)
def kernels_headers() -> Headers:
    """Read the headers that describe libibprof_kernels.so.

    Raises:
        MissingToolError: a header is not installed.
    """
    return parse_headers("\n".join(cffi_text(header) for header in find_kernels_headers()))


def parse_headers(text: str) -> Headers:
    """Parse plain structs, enums with explicit numbers, and integer defines.

    Raises:
        ValueError: an enumerator or a member of a struct has a form that this parser does not know.
    """
    text = _COMMENT.sub("", text)
    constants = {name: int(number, 0) for name, number in _DEFINE.findall(text)}
    enums = {name: _parse_enum(body) for kind, name, body in _BLOCK.findall(text) if kind == "enum"}
    for enumerators in enums.values():
        constants |= enumerators
    # Leave out structs with pointers: such structs are arguments of calls, and need no numpy type.
    structs = ((name, body) for kind, name, body in _BLOCK.findall(text) if kind == "struct" and "*" not in body)
    return Headers(constants, enums, {name: _parse_struct(body, constants) for name, body in structs})


def _parse_enum(body: str) -> dict[str, int]:
    pairs = (part.split("=") for part in body.split(",") if part.strip())
    return {name.strip(): int(number, 0) for name, number in pairs}


def _parse_struct(body: str, constants: Mapping[str, int]) -> np.dtype[np.void]:
    fields: list[tuple[str, Any]] = []
    for declaration in filter(None, map(str.strip, body.split(";"))):
        scalar, _, declarators = declaration.partition(" ")
        for declarator in declarators.split(","):
            match = _DECLARATOR.fullmatch(declarator.strip())
            if not match or (scalar != "char" and scalar not in _SCALARS):
                raise ValueError(f"expected a number or an array of numbers, found {declaration!r}")
            fields.append((match[1], _field_type(scalar, _parse_shape(match[2], constants))))
    return np.dtype(fields, align=True)


def _parse_shape(brackets: str, constants: Mapping[str, int]) -> tuple[int, ...]:
    lengths = re.findall(r"\w+", brackets)
    return tuple(constants[length] if length in constants else int(length, 0) for length in lengths)


def _field_type(scalar: str, shape: tuple[int, ...]) -> Any:
    if scalar == "char":
        return (f"S{shape[-1]}", shape[:-1]) if shape[1:] else f"S{shape[0]}"
    return (_SCALARS[scalar], shape) if shape else _SCALARS[scalar]


@dataclass(frozen=True, slots=True)
class RecordingLayout:
    """The definitions of the recording header.

    Attributes:
        constants: integer defines and enumerators, by name.
        types: numpy type of each struct, by the struct's name without `ibp_`.
        record_names: number of a segment's kind -> name of the segment's struct.
    """

    constants: Mapping[str, int]
    types: Mapping[str, np.dtype[np.void]]
    record_names: Mapping[int, str]


@lru_cache(maxsize=1)
def recording_layout() -> RecordingLayout:
    """Read the installed header.

    Raises:
        MissingToolError: the header is not installed.
    """
    header = recording_header()
    types = {name.removeprefix("ibp_"): record for name, record in header.types.items()}
    record_names = {header.constants[kind]: name for kind, name in _RECORDS.items()}
    return RecordingLayout(header.constants, types, record_names)
