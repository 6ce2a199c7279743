# SPDX-License-Identifier: Apache-2.0
"""Find a job's hosts in the launcher's command line, or in a batch system's list.

The hosts do not come from MPI, because a host without recorded ranks reports nothing. `expand_hosts` and `join_hosts`
read and write Slurm's short form of host names, such as `rack[1-2]n[01-03,7],login1`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product, zip_longest
from math import prod
from pathlib import Path

from ibprof.errors import UsageError, quote_found

COMMAND_LINE = "command line"
"""Key of the launcher's command line in the texts of a recording."""

ARGUMENT_END = "\x1f"

# Launchers' options (without dashes) whose argument is a list of hosts, and options whose argument is a file of hosts.
_LIST_OPTIONS = ("H", "host", "hosts", "w", "nodelist")
_FILE_OPTIONS = ("hostfile", "machinefile", "default-hostfile", "f")

# Other options -> number of arguments. The arguments are skipped, because an argument can look like the program.
_OTHER_OPTIONS = {
    **dict.fromkeys(("mca", "gmca", "omca", "pmixmca", "prtemca", "genv", "env"), 2),
    **dict.fromkeys(("n", "np", "c", "N", "ppn", "perhost", "npernode", "npersocket", "x", "genvlist", "envlist"), 1),
    **dict.fromkeys(
        ("map-by", "rank-by", "bind-to", "wd", "wdir", "output", "output-filename", "launcher", "iface"), 1
    ),
    **dict.fromkeys(("export", "J", "job-name", "p", "partition", "A", "account", "t", "time", "mpi", "D", "chdir"), 1),
}


_SUREST = "IBPROF_HOSTS"

_PROGRAM = ""

_LARGEST = 1 << 20
"""Largest number of hosts in one expression."""

_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")

_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})", re.DOTALL)


def _read_nodelist(text: str) -> list[str]:
    """Return the hosts of a list in Slurm's short form; no hosts if the list is invalid."""
    try:
        return _unique(expand_hosts(text))
    except UsageError:
        return []


def read_hostfile(text: str) -> list[str]:
    """Return the hosts of a file: the first word of each line, without `user@` and `:slots`."""
    words = (line.partition("#")[0].split() for line in text.splitlines())
    return _unique(_name(line[0]) for line in words if line)


def _read_counted(text: str) -> list[str]:
    """Return the hosts in a text of LSF, such as `hostA 4 hostB 2`."""
    return _unique(text.split()[::2])


def _read_names(text: str) -> list[str]:
    return _unique(text.replace(",", " ").split())


# The most reliable variables come first: a launcher may use fewer hosts than the batch system allocated.
_READERS: Mapping[str, Callable[[str], list[str]]] = {
    _SUREST: _read_names,
    "SLURM_STEP_NODELIST": _read_nodelist,
    "LSB_DJOB_HOSTFILE": read_hostfile,
    "LSB_MCPU_HOSTS": _read_counted,
    "LSB_HOSTS": _read_names,
    "PBS_NODEFILE": read_hostfile,
    "PE_HOSTFILE": read_hostfile,
    "OAR_NODEFILE": read_hostfile,
    "SLURM_JOB_NODELIST": _read_nodelist,
}


def find_job_hosts(texts: Mapping[str, str], program: str) -> list[str]:
    """Return the hosts of a job; empty if they are unknown.

    Args:
        texts: variable name -> host list or content of a file. `COMMAND_LINE` -> the launcher's command line, with
            `ARGUMENT_END` after each argument.
        program: the program that the launcher starts.
    """
    for name, reader in _READERS.items():
        if hosts := reader(texts.get(name, "")):
            return hosts
        if name == _SUREST:
            arguments = texts.get(COMMAND_LINE, "").split(ARGUMENT_END)
            if hosts := read_command(arguments, lambda word: Path(word).name == Path(program).name):
                return hosts
    return []


def read_command(arguments: Sequence[str], is_program: Callable[[str], bool], folder: Path | None = None) -> list[str]:
    """Return the hosts in a launcher's command line.

    Args:
        arguments: the launcher's name and arguments.
        is_program: function that returns whether a word is the program. The following words are the program's
            arguments.
        folder: folder of host files; None to read no host files.
    """
    hosts: list[str] = []
    for name, value, _ in _walk(arguments, is_program):
        if name in _LIST_OPTIONS:
            hosts += [_name(item) for item in _read_nodelist(value)]
        elif name in _FILE_OPTIONS and folder is not None:
            hosts += _read_file(folder / value)
    return _unique(hosts)


def find_programs(arguments: Sequence[str], is_program: Callable[[str], bool]) -> list[str]:
    """Return the programs in a launcher's command line: one for each part of the job."""
    return [arguments[index] for index in find_program_indices(arguments, is_program)]


def find_program_indices(arguments: Sequence[str], is_program: Callable[[str], bool]) -> list[int]:
    """Return the indices of the programs in a launcher's command line: one for each part of the job."""
    return [index for name, _, index in _walk(arguments, is_program) if name == _PROGRAM]


def _walk(arguments: Sequence[str], is_program: Callable[[str], bool]) -> Iterator[tuple[str, str, int]]:
    """Yield (option, value, index) of options that name hosts, and (`_PROGRAM`, program, index) of programs."""
    # Take the options' values from the same iterator, so that no value is read as an option or program.
    words = enumerate(arguments[1:], 1)
    for index, word in words:
        option, equals, value = word.partition("=")
        name = option.lstrip("-") if option.startswith("-") else ""
        if name in _LIST_OPTIONS or name in _FILE_OPTIONS:
            yield name, value if equals else next(words, (0, ""))[1], index
        elif name in _OTHER_OPTIONS:
            for _ in range(0 if equals else _OTHER_OPTIONS[name]):
                next(words, None)
        elif is_program(word):
            yield _PROGRAM, word, index
            # Skip the program's arguments, up to `:` and the next part of the job.
            next((word for _, word in words if word == ":"), None)


def same_host(one: str, other: str) -> bool:
    """Return whether two names denote one host; one of the names may lack the domain."""
    if one.lower() == other.lower():
        return True
    first, second = one.lower().split("."), other.lower().split(".")
    # An IP address has no domain: compare it as a whole.
    return first[0] == second[0] and not first[0].isdecimal() and (len(first) == 1 or len(second) == 1)


class HostSpellings:
    """Maps all spellings of a host (`GPU1`, `gpu1`, `gpu1.example.org`) to the spelling that came first."""

    def __init__(self) -> None:
        self._known: dict[str, list[str]] = {}
        self._first: dict[str, str] = {}

    def find(self, name: str) -> str:
        """Return the first spelling of a host."""
        if name not in self._first:
            alike = self._known.setdefault(name.lower().split(".")[0], [])
            self._first[name] = next((each for each in alike if same_host(each, name)), name)
            if self._first[name] == name:
                alike.append(name)
        return self._first[name]

    def describe(self) -> Iterator[str]:
        """Yield a sentence on hosts with several spellings, if any."""
        if some := [f"{name} is {first}" for name, first in sorted(self._first.items()) if name != first]:
            more = f" and {len(some) - 4} more" if len(some) > 4 else ""
            yield f"hosts with several spellings: {', '.join(some[:4])}{more}"


def _read_file(path: Path) -> list[str]:
    try:
        return read_hostfile(path.read_text(errors="replace"))
    except OSError:
        return []


def _name(item: str) -> str:
    """Return the name in `user@name:slots`."""
    return item.rpartition("@")[2].partition(":")[0]


def _unique(names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name and not name.startswith(("+", "-"))]


def expand_hosts(expression: str) -> list[str]:
    """Expand a Slurm host list expression, `rack[1-2]n[01-03,7],login1`.

    Raises:
        UsageError: the expression is invalid, or stands for too many hosts.
    """
    hosts: list[str] = []
    for item in _split(expression):
        parts = re.split(r"\[([^\[\]]*)\]", item)
        numbers = [_expand_ranges(expression, part) for part in parts[1::2]]
        if prod(map(len, numbers)) + len(hosts) > _LARGEST:
            raise UsageError(f"{quote_found(expression)}: more than {_LARGEST} hosts")
        names = [
            "".join(chain.from_iterable(zip_longest(parts[::2], chosen, fillvalue="")))
            for chosen in _choose_numbers(numbers)
        ]
        if any(set(name) & set("[]") or not name for name in names):
            raise UsageError(f"{quote_found(expression)}: expected hosts as node[01-04,7],login1")
        hosts += names
    if not hosts:
        raise UsageError(f"{quote_found(expression)}: expected hosts as node[01-04,7],login1")
    return hosts


def _choose_numbers(numbers: Sequence[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Yield each choice of one number per bracket, in Slurm's order (src/common/hostlist.c, _push_range_list).

    The last bracket varies fastest, followed by the first, the second, and so on. The next-to-last varies slowest.
    """
    *others, last = numbers or [[""]]
    for chosen in product(*reversed(others), last):
        yield [*chosen[-2::-1], chosen[-1]]


def _split(expression: str) -> Iterator[str]:
    """Yield the non-empty items between commas outside brackets."""
    depth, item = 0, ""
    for letter in f"{expression},":
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            if item.strip():
                yield item.strip()
            item = ""
        else:
            item += letter
    if item:  # within a bracket
        yield item


def _expand_ranges(expression: str, text: str) -> list[str]:
    numbers: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if match is None or last < first or last - first > _LARGEST:
            raise UsageError(f"{quote_found(expression)}: expected numbers as [01-04,7], found {quote_found(part)}")
        numbers += [f"{number:0{len(match[1])}}" for number in range(first, last + 1)]
    return numbers


def join_hosts(names: Iterable[str]) -> str:
    """Return the expression (`node[01-04],node09`) that `expand_hosts` expands to these names in this order."""
    runs: list[tuple[str, str, str]] = []
    for name in names:
        found = _NUMBERED.fullmatch(name)
        prefix, number = (found[1], found[2]) if found else (name, "")
        if runs and number:
            before, first, last = runs[-1]
            if before == prefix and last and len(last) == len(number) and int(number) == int(last) + 1:
                runs[-1] = before, first, number
                continue
        runs.append((prefix, number, number))
    return ",".join(
        f"{prefix}{first}" if first == last else f"{prefix}[{first}-{last}]" for prefix, first, last in runs
    )
