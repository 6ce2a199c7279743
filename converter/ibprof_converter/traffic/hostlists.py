# SPDX-License-Identifier: Apache-2.0
"""Read host lists of schedulers and launchers: hosts with their slots, or a host for each rank.

node[01-04,7],login1            Slurm (SLURM_JOB_NODELIST, `scontrol show hostnames`, squeue -o %N)
node01 slots=4                  Open MPI hostfile; also node01:4 (MPICH), and max_slots
node01                          PBS ($PBS_NODEFILE): a line for each slot, so names repeat
rank 0=node01 slot=0:1          Open MPI rank file
rank,host                       placement.csv: a host for each rank

Other files with a list of hosts:

Slurm's topology.conf and topology.yaml, which topograph also writes: hosts in the order of the file.
JSON of topograph's graph engine: instances, sorted by switch.
Scripts that `ibprof-place --torchrun` writes: hosts with `--nproc-per-node` ranks each.
Tables of Slurm's sinfo and squeue: the column NODELIST. Output of `scontrol show job`: the value of NodeList.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ibprof.errors import InputError, UsageError, quote_found
from ibprof.text.host_lists import expand_hosts
from ibprof_converter.fabric.dump_files import read_dump

_LARGEST = 1 << 20
"""Largest number of hosts of one list."""

_RANK_LINE = re.compile(r"rank\s+([0-9]{1,8})\s*=\s*(\S+)(?:\s+slots?\s*=\s*\S+)?", re.IGNORECASE)
_HOST_LINE = re.compile(r"(?:[^\s@]+@)?([^\s:=,\[\]]+)(?::([0-9]{1,6}))?((?:\s+[a-z_-]+\s*=\s*\S+)*)", re.IGNORECASE)
_PLACEMENT = re.compile(r"rank\s*,\s*host", re.IGNORECASE)
_PLACEMENT_LINE = re.compile(r"([0-9]{1,8})\s*,\s*\"?([^\s,:=\[\]#\"]{1,255})\"?")
_SLOTS = re.compile(r"(?<!\S)slots\s*=\s*(\S+)", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,6}")
_TORCHRUN = re.compile(r"([\w.-]+)\|\1\.\*\) node_rank=([0-9]{1,6}) ;;", re.ASCII)
_PER_NODE = re.compile(r"\s--nproc-per-node=([0-9]{1,6})\s")
_TOPOLOGY = re.compile(r"(?:-\s*)?topology\s*:.*|(?:SwitchName|BlockName)=.*", re.IGNORECASE)
_INSTANCES = re.compile(r'\s*\{\s*"instances"\s*:')
_COLUMNS = ("NODELIST", "NODELIST(REASON)")
_JOB, _NODE_LIST = "JobId=", re.compile(r"(?<!\S)NodeList=(\S+)")
_RELATIVE = re.compile(r"\+n[0-9]+", re.IGNORECASE)


def looks_like_host_list(text: str) -> bool:
    """Return true if the first line with content is from a host list, not from a CSV file."""
    line = next(_lines_with_content(text), (0, ""))[1]
    if _TORCHRUN.search(text) or _TOPOLOGY.fullmatch(line) or _INSTANCES.match(text):
        return True
    if set(line.split()) & set(_COLUMNS) or line.startswith(_JOB):
        return True
    return bool(_RANK_LINE.fullmatch(line)) or ("," not in line and bool(_HOST_LINE.fullmatch(line))) or "[" in line


@dataclass(frozen=True, slots=True)
class ListedHost:
    """The host in one line of a list. Several lines may name the same host.

    Attributes:
        line: line number in the file, from 1.
        name: the host's name as written.
        slots: number of slots in the line; None if the line states no number.
    """

    line: int
    name: str
    slots: int | None


def read_listed_hosts(path: Path) -> list[ListedHost]:
    """Return the hosts of a list of any form, in the list's order. Each line of a rank file counts as one slot.

    Raises:
        InputError: a line is not a line of a host list, or there are too many hosts.
    """
    lines = _read_lines(path)
    if lines and _RANK_LINE.fullmatch(lines[0][1]):
        return [ListedHost(line, host, 1) for line, _, host in _read_rank_lines(path, lines)]
    hosts: list[ListedHost] = []
    for number, line in lines:
        hosts += _read_hosts(path, number, line)
        if len(hosts) > _LARGEST:
            raise InputError(path, number, f"at most {_LARGEST} hosts", "more")
    return hosts


def read_host_list(path: Path, ranks: int) -> list[str]:
    """Return the host of each rank.

    Raises:
        InputError: a line is not a line of a host list, or there are fewer slots than ranks.
    """
    lines = _read_lines(path)
    if lines and _RANK_LINE.fullmatch(lines[0][1]):
        return _read_rank_file(path, lines, ranks)
    listed = read_listed_hosts(path)
    if lines and all(_is_expression(line) for _, line in lines):
        return _deal([each.name for each in listed], ranks)
    hosts: list[str] = []
    for each in listed:
        hosts += [each.name] * (1 if each.slots is None else each.slots)
        if len(hosts) > _LARGEST:
            break
    if len(hosts) < ranks:
        raise InputError(path, None, f"slots for {ranks} ranks", f"{len(hosts)}")
    return hosts[:ranks]


def find_line(path: Path, name: str) -> int | None:
    """Return the number of the first line that names a host; None without such a line."""
    return next((each.line for each in read_listed_hosts(path) if each.name == name), None)


def deal_ranks(expression: str, ranks: int) -> list[str]:
    """Return the host of each rank. Each host gets a block of consecutive ranks, in the order of a Slurm host list.

    The blocks are equal. If the ranks do not divide evenly, each of the first hosts gets one more rank.

    Raises:
        UsageError: the expression is invalid.
    """
    return _deal(expand_hosts(expression), ranks)


def _deal(hosts: list[str], ranks: int) -> list[str]:
    fewest, longer = divmod(ranks, len(hosts))
    if not fewest:
        return hosts[:ranks]
    return [host for number, host in enumerate(hosts) for _ in range(fewest + (number < longer))]


def _read_hosts(path: Path, number: int, line: str) -> list[ListedHost]:
    if _is_expression(line):
        try:
            return [ListedHost(number, name, None) for name in expand_hosts(line)]
        except UsageError as error:
            raise InputError(path, number, "hosts as node[01-04,7],login1", quote_found(line)) from error
    match = _HOST_LINE.fullmatch(line)
    stated = _SLOTS.search(match[3] or "") if match else None
    slots = stated[1] if stated else match[2] if match else None
    if match is None or not (slots is None or _NUMBER.fullmatch(slots)):
        raise InputError(path, number, "a host, perhaps with slots=N or :N", quote_found(line))
    return [ListedHost(number, match[1], None if slots is None else int(slots))]


def _read_rank_lines(path: Path, lines: list[tuple[int, str]]) -> Iterator[tuple[int, int, str]]:
    seen: set[int] = set()
    for number, line in lines:
        match = _RANK_LINE.fullmatch(line)
        if match is None:
            raise InputError(path, number, "rank N=host slot=..", quote_found(line))
        if _RELATIVE.fullmatch(match[2]):
            raise InputError(path, number, "the name of a host", f"{match[2]}, an index into the hostfile of the run")
        if int(match[1]) in seen:
            raise InputError(path, number, "each rank once", f"rank {match[1]} again")
        seen.add(int(match[1]))
        yield number, int(match[1]), match[2]


def _read_rank_file(path: Path, lines: list[tuple[int, str]], ranks: int) -> list[str]:
    hosts = {rank: host for _, rank, host in _read_rank_lines(path, lines)}
    missing = next((rank for rank in range(ranks) if rank not in hosts), None)
    if missing is not None:
        raise InputError(path, None, f"a host for each of the {ranks} ranks", f"none for rank {missing}")
    return [hosts[rank] for rank in range(ranks)]


def _is_expression(line: str) -> bool:
    return "[" in line or "," in line


def _read_lines(path: Path) -> list[tuple[int, str]]:
    data = read_dump(path)
    text = data.decode("utf-8-sig", "backslashreplace")
    if _INSTANCES.match(text):
        return _read_instances(path, data)
    lines = list(_lines_with_content(text))
    if any(_TORCHRUN.fullmatch(line) for _, line in lines):
        return list(_read_torchrun(path, lines))
    if any(_TOPOLOGY.fullmatch(line) for _, line in lines[:2]):  # `---` may precede YAML
        return _read_topology(path, data)
    if lines and _PLACEMENT.fullmatch(lines[0][1]):
        lines = list(_read_placement(path, lines[1:]))
    heads = lines[0][1].split() if lines else []
    for column, head in enumerate(heads):
        if head in _COLUMNS:
            return list(_take_column(path, lines[1:], column, column == len(heads) - 1))
    if heads and heads[0].startswith(_JOB):
        found = ((number, _NODE_LIST.search(line)) for number, line in lines)
        return [(number, match[1]) for number, match in found if match and not match[1].startswith("(")]
    return lines


def _read_placement(path: Path, lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Convert a placement.csv to lines of a rank file, sorted by rank."""
    rows: list[tuple[int, int, str]] = []
    for number, line in lines:
        match = _PLACEMENT_LINE.fullmatch(line)
        if match is None:
            raise InputError(path, number, "RANK,HOST", quote_found(line))
        rows.append((int(match[1]), number, match[2]))
    for rank, number, host in sorted(rows):
        yield number, f"rank {rank}={host}"


def _read_topology(path: Path, data: bytes) -> list[tuple[int, str]]:
    """Return the line number and the name of each host in a Slurm topology, in the order of the file.

    A comma ends each name, so that the caller parses the name as a Slurm host list, not as a line of a hostfile.
    """
    from ibprof_converter.fabric.fabric_graph import NodeKind  # noqa: PLC0415  (few host lists are topologies)
    from ibprof_converter.fabric.slurm_listing import looks_like_slurm, parse_slurm, parse_slurm_yaml  # noqa: PLC0415

    listing = (parse_slurm if looks_like_slurm(data) else parse_slurm_yaml)(path, data)
    rows, ends = (listing.kind == NodeKind.CA).nonzero()
    numbers = listing.name[rows, ends].tolist()
    found = dict(zip(reversed(numbers), reversed(listing.line[rows].tolist()), strict=True))
    return [(found[number], f"{listing.names[number]},") for number in dict.fromkeys(numbers)]


def _read_instances(path: Path, data: bytes) -> list[tuple[int, str]]:
    """Return line number and host of each instance in JSON of topograph's graph engine, sorted by switch."""
    from ibprof_converter.fabric.topograph import read_instances  # noqa: PLC0415  (few host lists are graphs)

    # Sort switches by the position of their first instance in the file.
    place: dict[tuple[int, str], int] = {}
    found: list[tuple[list[int], int, str]] = []
    for each in read_instances(path, data):
        above, places = -1, []
        for layer in reversed(each.layers):
            above = place.setdefault((above, layer), len(place))
            places.append(above)
        found.append((places, each.line or 1, each.name))
    found.sort(key=lambda row: row[0])
    return [(line, f"{name},") for _, line, name in found]


def _read_torchrun(path: Path, lines: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the hosts of a torchrun script, as lines of a hostfile."""
    slots = next((match[1] for _, line in lines if (match := _PER_NODE.search(line))), None)
    if slots is None:
        raise InputError(path, None, "torchrun with --nproc-per-node=N", "none")
    count = 0
    for number, line in lines:
        if match := _TORCHRUN.fullmatch(line):
            if int(match[2]) != count:
                raise InputError(path, number, f"node_rank={count}", f"node_rank={match[2]}")
            count += 1
            yield number, f"{match[1]} slots={slots}"


def _take_column(path: Path, lines: list[tuple[int, str]], column: int, is_last: bool) -> Iterator[tuple[int, str]]:
    """Yield the words of a column. squeue prints a reason in parentheses for waiting jobs: leave this reason out."""
    for number, line in lines:
        words = line.split()
        if len(words) <= column:
            raise InputError(path, number, f"a word under {_COLUMNS[0]}", quote_found(line))
        word = words[-1 if is_last else column]  # a job's name can contain spaces
        if not word.endswith(")"):
            yield number, word


def _lines_with_content(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line, except empty lines and comments."""
    for number, line in enumerate(text.splitlines(), 1):
        content = line.split("#", 1)[0].strip()
        if content:
            yield number, content
