# SPDX-License-Identifier: Apache-2.0
"""What a profile knows of its run, hosts, ports and ranks, as properties of OTF2 definitions and back.

A property is `ibprof::` and the name of an attribute in `ibprof.profile`. A text of a tuple has a number behind its
name; what is None has no property.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from enum import IntEnum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

PREFIX = "ibprof::"

Thing = TypeVar("Thing")
Value = int | float | str


def to_properties(thing: object, leave_out: Sequence[str] = ()) -> Iterator[tuple[str, Value]]:
    """Give the attributes of a dataclass as names and values of properties.

    Args:
        thing: whose attributes are numbers, texts, tuples of texts, enumerators, or None.
        leave_out: attributes that are written in another way.
    """
    for name in _names(type(thing), leave_out):
        value = getattr(thing, name)
        if isinstance(value, tuple):
            yield from ((f"{PREFIX}{name}.{number}", text) for number, text in enumerate(value))
        elif isinstance(value, IntEnum):
            yield PREFIX + name, value.name
        elif value is not None:
            yield PREFIX + name, value


def from_properties(
    made: Callable[..., Thing], find: Callable[[str], Value | None], leave_out: Sequence[str] = ()
) -> dict[str, Any]:
    """Give the attributes of a dataclass from properties, as keyword arguments.

    Args:
        made: the dataclass.
        find: gives the value of a property, None for one that is not there.
        leave_out: attributes that are written in another way.

    Raises:
        LookupError: a property is missing, or names no enumerator.
    """
    hints = get_type_hints(made)
    return {name: _read(PREFIX + name, hints[name], find) for name in _names(made, leave_out)}


def _names(made: Any, leave_out: Sequence[str]) -> list[str]:
    return [column.name for column in fields(made) if column.name not in leave_out]


def _read(name: str, kind: Any, find: Callable[[str], Value | None]) -> Any:
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
