# SPDX-License-Identifier: Apache-2.0
"""Find adapters that the ranks of a recorded run chose by environment variables, and adapters near the ranks' cores."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import Port, Profile, Rank
from ibprof.text.quantities import printable
from ibprof_converter.traffic.hosts import stack_ports

_ANY = frozenset({"", "all", "any", "-1"})
"""If an environment variable has one of these values, it names no adapter: the MPI library chooses."""

_MOST_NOTES = 4

CORES = "cores"
"""Name of the entry in `Rank.choices` that lists the process's cores, as in `ibprof_recording.h`."""

_CORE_LIMIT = 1 << 16

_CORES = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")

_RANGE = re.compile(r"([^\[\]]*)\[([0-9]{1,6})-([0-9]{1,6})\]([^\[\]]*)")
_MOST_OF_A_RANGE = 1 << 10

PortLids = Sequence[Sequence[tuple[Port, int]]]
"""A machine's ports with their LIDs, for each rail."""


@dataclass(frozen=True, slots=True)
class RankAdapters:
    """The chosen and the near adapters of each rank, as LIDs: int32 [rank, rail, adapter].

    Attributes:
        selected: adapters that the rank's environment names; if it names none, all adapters of the host that the run
            may use. None if no rank's environment names an adapter.
        near: selected adapters near the largest number of the rank's cores; all selected adapters if no core is near an
            adapter. None if this holds for all ranks.
        notes: sentences on environment variables that ibprof does not evaluate.
    """

    selected: npt.NDArray[np.int32] | None
    near: npt.NDArray[np.int32] | None
    notes: tuple[str, ...] = ()


def find_rank_adapters(
    run: Profile, ports_of_host: Sequence[PortLids], chosen_of_host: Sequence[PortLids], ranks: int, rails: int
) -> RankAdapters:
    """Return the adapters that the ranks of a run chose, and the adapters near the ranks.

    Args:
        ports_of_host: ports of each host of the run, in the natural order of their names.
        chosen_of_host: ports of each host for ranks whose environment names no adapter, without ports of left-out
            adapters.
    """
    rows: list[list[list[list[int]]]] = [[[[] for _ in range(rails)] for _ in range(ranks)] for _ in range(2)]
    known = [False, False]
    unmatched: Counter[tuple[str, str]] = Counter()
    for rank in run.ranks:
        by_rail = ports_of_host[rank.host]
        every = [port for some in by_rail for port, _ in some]
        selected = _select(rank, every)
        if selected is None and every:
            unmatched.update(_list_choices(rank))
        left = [port for some in chosen_of_host[rank.host] for port, _ in some] if selected is None else selected
        near = _find_near(rank, left)
        known = [known[0] or selected is not None, known[1] or near is not None]
        for number, kept in enumerate((left, left if near is None else near)):
            rows[number][rank.rank] = [[lid for port, lid in some if port in kept] for some in by_rail]
    selected_ports, near_ports = (
        stack_ports(each, rails) if is_known else None for each, is_known in zip(rows, known, strict=True)
    )
    return RankAdapters(selected_ports, near_ports, tuple(_note_unmatched(unmatched)))


def _list_choices(rank: Rank) -> Iterator[tuple[str, str]]:
    for choice in rank.choices:
        if choice.name in (*_VARIABLES, _NOT_FOLLOWED) and choice.text.strip() not in _ANY:
            yield choice.name, choice.text


def _note_unmatched(unmatched: Counter[tuple[str, str]]) -> Iterator[str]:
    """Yield notes on environment variables that ibprof does not evaluate, or that name no active adapter of a host."""
    for (name, text), ranks in unmatched.most_common(_MOST_NOTES):
        why = "names no adapter that was active on the host" if name in _VARIABLES else "is not read by ibprof"
        yield printable(f"{name}={text} of {ranks} rank(s) {why}; these ranks' adapter is modelled")
    if (more := len(unmatched) - _MOST_NOTES) > 0:
        yield f"{more} more environment variables like these"


def _select(rank: Rank, ports: Sequence[Port]) -> list[Port] | None:
    """Return the ports that the rank's environment allows; None if no port in `ports` is allowed.

    The first environment variable that allows any of the ports decides.
    """
    for choice in rank.choices:
        if read := _VARIABLES.get(choice.name):
            kept = [port for port in ports if read(choice.text, port)]
            if kept:
                return kept
    return None


def _names(text: str, separator: str = ",") -> Iterator[str]:
    return (name.strip() for name in text.split(separator) if name.strip())


def _is_named(text: str, port: Port) -> bool:
    """Return true if a list such as `mlx5_0:1,mlx5_1` allows a port. A list after `^` names excluded ports."""
    names = {each for name in _names(text.removeprefix("^")) for each in _expand(name)}
    found = not names.isdisjoint({port.device, f"{port.device}:{port.port}"})
    return found != text.startswith("^")


def _expand(name: str) -> Iterator[str]:
    """Yield the names in a text of UCX's form `mlx5_[0-2]:1`; any other text is unchanged."""
    match = _RANGE.fullmatch(name)
    if match is None:
        yield name
        return
    begin, first, last, end = match.groups()
    yield from (
        f"{begin}{number}{end}" for number in range(int(first), min(int(last), int(first) + _MOST_OF_A_RANGE) + 1)
    )


def _has_prefix(text: str, port: Port) -> bool:
    return port.device == text or (not text[-1:].isdigit() and port.device.startswith(text))


def _is_device(text: str, port: Port) -> bool:
    return port.device in _names(text, ":")


_VARIABLES: Mapping[str, Callable[[str, Port], bool]] = {
    "UCX_NET_DEVICES": _is_named,
    "OMPI_MCA_btl_openib_if_include": _is_named,
    "FI_VERBS_DEVICE_NAME": _has_prefix,
    "MV2_IBA_HCA": _is_device,
    "PSM3_NIC": _is_device,
}
"""Environment variable -> function that returns true if the variable's value allows a port."""

_NOT_FOLLOWED = "FI_VERBS_IFACE"
"""Environment variable that names a network interface, such as `ib0`. ibprof does not evaluate it."""


def _find_near(rank: Rank, ports: Sequence[Port]) -> list[Port] | None:
    """Return each port that is near as many of the rank's cores as any port; None if no core is near a port."""
    cores = next((read_cores(choice.text) for choice in rank.choices if choice.name == CORES), frozenset())
    shared = [len(cores & read_cores(port.near_cores)) for port in ports]
    if not max(shared, default=0):
        return None
    return [port for port, count in zip(ports, shared, strict=True) if count == max(shared)]


def read_cores(text: str) -> frozenset[int]:
    """Return the cores of a Linux list such as `0-15,64-79`; empty if invalid."""
    cores: set[int] = set()
    for part in _names(text):
        match = _CORES.fullmatch(part)
        if match is None:
            return frozenset()
        first, last = int(match[1]), int(match[2] or match[1])
        cores.update(range(first, min(last, _CORE_LIMIT) + 1))
    return frozenset(cores)
