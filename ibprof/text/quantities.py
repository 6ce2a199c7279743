# SPDX-License-Identifier: Apache-2.0
"""Format quantities, and names of MPI calls, MPI libraries and call sites, as text for people."""

from __future__ import annotations

import math
import re

_STEP = 1000
_ROUNDS_UP = 999.5
"""Smallest amount that, rounded to three digits, is written in the next larger unit."""
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
_MICRO_SIGNS = str.maketrans("\N{MICRO SIGN}\N{GREEK SMALL LETTER MU}", "uu")


def format_bytes(amount: float) -> str:
    """Return bytes with three digits and a decimal unit (1 kB is 1,000 bytes), as for link speeds."""
    power = 0
    while abs(amount) >= _ROUNDS_UP and power < len(_PREFIXES) - 1:
        amount /= _STEP
        power += 1
    return f"{amount:.3g} {_PREFIXES[power]}B"


def format_seconds(seconds: float) -> str:
    """Return a time with three digits in a suitable unit."""
    factor, unit = _unit_of(seconds)
    return f"{float(f'{seconds * factor:.3g}'):.15g} {unit}"  # 4320 s, not 4.32e+03 s


def format_with_error(seconds: float, error_s: float) -> str:
    """Return a time and the error in one unit (`12.3 +- 0.4 s`); `12.3 s` if the error changes no shown digit."""
    larger = max(seconds, error_s)
    factor, unit = _unit_of(larger)
    digits = max(0, 2 - math.floor(math.log10(larger * factor))) if larger else 0
    error = f"{error_s * factor:.{digits}f}"
    return f"{seconds * factor:.{digits}f} +- {error} {unit}" if float(error) else format_seconds(seconds)


def _unit_of(seconds: float) -> tuple[float, str]:
    units = ((1e9, "ns"), (1e6, "µs"), (1e3, "ms"))
    return next(((factor, unit) for factor, unit in units if seconds * factor < _ROUNDS_UP), (1.0, "s"))


def format_change(relative: float) -> str:
    """Return a relative change in percent with its sign; zero after rounding has no sign."""
    text = f"{relative * 100:+.1f}%"
    return text[1:] if text[1:] == "0.0%" else text


def count_of(number: int, noun: str) -> str:
    """Return `1 link`, `2 links`, `3 switches`, `4 processes`, `5 entries`, `1,296 hosts`."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("ry"):
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}{'es' if noun.endswith(('ch', 's')) else 's'}"


def spell_unit(text: str) -> str:
    """Return a unit without micro signs, as users can type it (`us` for `µs`)."""
    return text.translate(_MICRO_SIGNS)


def printable(text: str) -> str:
    """Return a name of a file on one line, with escapes for characters that control a terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


_CALL = re.compile(r"[A-Z][A-Z0-9_]*")


_KNOWN = re.compile(
    r"(Open MPI|MVAPICH2?|CRAY MPICH|MPICH|Intel\(R\) MPI Library)(?: Version)?[\s:]+(?:version\s+)?v?(\d[\w.]*)",
    re.IGNORECASE,
)

CALLED_FROM = " < "
"""Separator between a site and its caller."""

_WIDTH = 80

_LEFT_OUT = "..."


def name_call(operation: str) -> str:
    """Return an operation's name as the MPI standard writes it (MPI_Gatherv); other names unchanged."""
    if _CALL.fullmatch(operation) and operation != "UNATTRIBUTED":
        return f"MPI_{operation.capitalize()}"
    return printable(operation)


def name_mpi(text: str) -> str:
    """Return name and version from an MPI library's text, such as `Open MPI 4.1.4`.

    A text without a known name is returned whole, on one line.
    """
    if found := _KNOWN.search(text):
        return f"{found[1].replace('(R) MPI Library', ' MPI')} {found[2].rstrip('.')}"
    return " ".join(text.split())


def shorten_site(name: str) -> str:
    """Return a name that fits into a table. If the name is too long, innermost callers are left out.

    The site and the outermost caller always remain.
    """
    if len(name) <= _WIDTH:
        return name
    site, *callers = name.split(CALLED_FROM)
    shown = callers[-1:]
    for caller in reversed(callers[:-1]):
        if len(CALLED_FROM.join((site, _LEFT_OUT, caller, *shown))) > _WIDTH:
            break
        shown.insert(0, caller)
    return CALLED_FROM.join((site, *([_LEFT_OUT] if len(shown) < len(callers) else []), *shown))
