# SPDX-License-Identifier: Apache-2.0
"""Command lines of MVAPICH's `mpirun_rsh`, which passes to the ranks only variables that the line itself sets.

    mpirun_rsh [OPTIONS] -np N (-hostfile FILE | HOST ...) [NAME=VALUE ...] PROGRAM [ARGUMENTS]

Without -hostfile, the N words after the options are hosts. If the first of them sets a variable, or fewer than N + 1
words are left, the hosts are those of ~/.mpirun_hosts.

Source: MVAPICH2 2.3, src/pm/mpirun/mpirun_params.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_WITH_VALUE = ("np", "hostfile", "spawnfile", "config", "dpmspawn", "sg", "sparehosts")


@dataclass(frozen=True, slots=True)
class RshLine:
    """A command line of mpirun_rsh.

    Attributes:
        head: the words before the variables: the launcher, its options, hosts.
        hosts: that the line names.
        variables: which the line sets.
        tail: the program and its arguments.
    """

    head: list[str]
    hosts: list[str]
    variables: dict[str, str]
    tail: list[str]


def read_rsh_line(command: Sequence[str]) -> RshLine:
    """Return the parts of a command line."""
    index, processes, has_hostfile = _skip_options(command)
    left = command[index:]
    named = 0 if has_hostfile or not left or "=" in left[0] or len(left) < processes + 1 else processes
    end = start = index + named
    while end < len(command) and "=" in command[end]:
        end += 1
    variables = dict(word.split("=", 1) for word in command[start:end])
    return RshLine(list(command[:start]), list(command[index:start]), variables, list(command[end:]))


def _skip_options(command: Sequence[str]) -> tuple[int, int, bool]:
    """Return the index of the first word after the options, the number of processes, and whether a file has hosts."""
    index, processes, has_hostfile = 1, 0, False
    while index < len(command) and command[index].startswith("-"):
        option, equals, value = command[index].lstrip("-").partition("=")
        index += 1
        if option in _WITH_VALUE and not equals:
            value = command[index] if index < len(command) else ""
            index += 1
        if option == "np" and value.isdecimal():
            processes = int(value)
        has_hostfile |= option == "hostfile"
    return index, processes, has_hostfile
