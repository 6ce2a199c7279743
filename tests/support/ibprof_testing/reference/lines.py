# SPDX-License-Identifier: Apache-2.0
"""Represent the lines of a file as arrays, so that a few array operations process millions of lines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

NO_DIGIT = 16

_LONGEST_READ = 32
"""Number of bytes that can be read from the beginning of any line, even if the line or file is shorter."""


@dataclass(frozen=True, slots=True)
class Lines:
    """A file cut into lines.

    Attributes:
        text: uint8 [byte], the file, then padding.
        start, end: int64 [line], positions of the line's beginning and line break.
    """

    text: npt.NDArray[np.uint8]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]

    @classmethod
    def split(cls, data: bytes) -> Lines:
        """Cut a file into its lines."""
        text = np.frombuffer(data + b"\n" * _LONGEST_READ, np.uint8)
        end = np.flatnonzero(text[: len(data) + 1] == ord("\n"))
        start = np.concatenate([[0], end[:-1] + 1])
        return cls(text, start, end)

    def __getitem__(self, line: int) -> bytes:
        return self.text[self.start[line] : self.end[line]].tobytes()

    def starts_with(self, word: bytes) -> npt.NDArray[np.bool_]:
        """Return which lines begin with `word`: bool [line]."""
        return self.have(word, self.start)

    def have(self, word: bytes, at: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return for each position whether `word` begins there: bool [position]. `word` contains no line break."""
        found = np.ones(len(at), np.bool_)
        for offset, byte in enumerate(word):
            found &= self.text[at + offset] == byte
        return found

    def number(
        self, at: npt.NDArray[np.int64], digits: int, base: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """Read a number with `digits` digits at each position. Return the numbers, and whether each number is valid."""
        value = np.zeros(len(at), np.int32)
        good = np.ones(len(at), np.bool_)
        for offset in range(digits):
            digit = _DIGIT_VALUE[self.text[at + offset]]
            good &= digit < base
            value = value * base + digit
        return value, good


def _make_digit_values() -> npt.NDArray[np.int32]:
    values = np.full(256, NO_DIGIT, np.int32)
    for value, digit in enumerate("0123456789abcdef"):
        values[[ord(digit), ord(digit.upper())]] = value
    return values


_DIGIT_VALUE = _make_digit_values()
"""int32 [byte], the value of a hex digit; `NO_DIGIT` for other characters."""
