# SPDX-License-Identifier: Apache-2.0
"""Properties of OTF2 definitions for the attributes of runs, hosts, ports and ranks.

A property is `ibprof::` and the name of an attribute in `profile_data`. A part of a tuple adds its number to the name.
If the part has attributes, each adds its own name after that. None has no property.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import IntEnum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

PREFIX = "ibprof::"

Thing = TypeVar("Thing")
Value = int | float | str


def to_properties(thing: object, leave_out: Sequence[str] = ()) -> Iterator[tuple[str, Value]]:
    """Yield the attributes of a dataclass as names and values of properties.

    Args:
        thing: object whose attributes are numbers, texts, tuples of texts or of such objects, enumerators, or None.
        leave_out: attributes that are stored elsewhere.
    """
    yield from _write(PREFIX, thing, leave_out)


def from_properties(
    made: Callable[..., Thing], find: Callable[[str], Value | None], leave_out: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the attributes of a dataclass from properties, as keyword arguments.

    Args:
        made: the dataclass.
        find: returns the value of a property, None if it is missing.
        leave_out: attributes that are stored elsewhere.

    Raises:
        LookupError: a property is missing, or names no enumerator.
    """
    return _read_all(PREFIX, made, find, leave_out)


def _read_all(
    prefix: str, made: Any, find: Callable[[str], Value | None], leave_out: Sequence[str] = ()
) -> dict[str, Any]:
    hints = get_type_hints(made)
    # An archive of an earlier version lacks attributes that have a default.
    added = {
        column.name
        for column in fields(made)
        if column.default is not MISSING and hints[column.name] in (bool, int, str)
    }
    return {
        name: _read(prefix + name, hints[name], find)
        for name in _names(made, leave_out)
        if name not in added or find(prefix + name) is not None
    }


def _write(prefix: str, thing: object, leave_out: Sequence[str]) -> Iterator[tuple[str, Value]]:
    for name in _names(type(thing), leave_out):
        value = getattr(thing, name)
        if isinstance(value, tuple):
            for number, part in enumerate(value):
                if is_dataclass(part):
                    yield from _write(f"{prefix}{name}.{number}.", part, ())
                else:
                    yield f"{prefix}{name}.{number}", part
        elif isinstance(value, IntEnum):
            yield prefix + name, value.name
        elif value is not None:
            yield prefix + name, value


def _names(made: Any, leave_out: Sequence[str]) -> list[str]:
    return [column.name for column in fields(made) if column.name not in leave_out]


def _read(name: str, kind: Any, find: Callable[[str], Value | None]) -> Any:
    if get_origin(kind) is tuple and is_dataclass(part := get_args(kind)[0]):
        things: list[Any] = []
        first = fields(part)[0].name
        while find(f"{name}.{len(things)}.{first}") is not None:
            things.append(part(**_read_all(f"{name}.{len(things)}.", part, find)))  # type: ignore[operator]
        return tuple(things)
    if get_origin(kind) is tuple:
        texts: list[Value] = []
        while (text := find(f"{name}.{len(texts)}")) is not None:
            texts.append(text)
        return tuple(texts)
    value = find(name)
    if get_origin(kind) in (Union, types.UnionType):
        if value is None:
            return None
        kind = get_args(kind)[0]
    if value is None:
        raise LookupError(f"property {name} is missing")
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return kind[str(value)]
    return kind(value)
