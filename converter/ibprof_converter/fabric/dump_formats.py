# SPDX-License-Identifier: Apache-2.0
"""Formats of dumps: how a file is recognised by its content, and parsed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Generic, TypeVar

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.dump_files import head_of

Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class DumpFormat(Generic[Parsed]):
    """A format of dumps: its name for messages, its parser, and its recogniser, which takes the beginning of a file."""

    name: str
    recognise: Callable[[bytes], bool]
    parse: Callable[[str | PathLike[str], bytes], Parsed]


def find_format(formats: Sequence[DumpFormat[Parsed]], data: bytes) -> DumpFormat[Parsed] | None:
    """Return the first format that recognises a file, from its contents or their beginning; None if none does."""
    head = head_of(data)
    return next((each for each in formats if each.recognise(head)), None)


def unknown_format(
    path: str | PathLike[str], data: bytes, what: str, formats: Sequence[DumpFormat[Parsed]]
) -> InputError:
    """Return the error for a file that is in none of the formats.

    Args:
        path: the file.
        data: its contents.
        what: the expected contents, in words.
        formats: those that `what` may have.
    """
    known = ", ".join(each.name for each in formats)
    return InputError(path, 1, f"{what} in one of the forms {known}", quote_found(data.split(b"\n", 1)[0]))
