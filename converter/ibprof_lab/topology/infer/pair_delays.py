# SPDX-License-Identifier: Apache-2.0
"""One delay per pair of hosts, from the delays between their processes in both directions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.text.quantities import count_of
from ibprof_lab.latency.model.delays import FIRMWARE, Delays
from ibprof_lab.topology.infer.candidate import Floats, blocks

_STATISTICS = ("median", "lower_quartile", "minimum")
_ONE_WAY = 1.5
"""The shorter delay of a pair is used if the ratio longer / shorter exceeds this, and if the logarithm of the ratio
exceeds ten times the median over pairs. For all other pairs, the mean of both directions is used."""

_SAMPLED_ROWS = 256
_BLOCK = 256


@dataclass(frozen=True, slots=True)
class PairDelays:
    """A delay for each pair of hosts.

    Attributes:
        hosts: one name per host.
        seconds: [n, n], symmetric; nan where not measured, 0 on the diagonal.
        statistic: name of the statistic over the samples.
        length: message length, bytes.
        notes: sentences on joined and omitted delays.
        is_stated: True if the delays are NUMA distances that the firmware states, not measured delays.
    """

    hosts: tuple[str, ...]
    seconds: npt.NDArray[np.floating]
    statistic: str
    length: int
    notes: tuple[str, ...]
    is_stated: bool = False


def take_pair_delays(delays: Delays, length: int | None = None, statistic: str | None = None) -> PairDelays:
    """Return one delay for each pair of hosts.

    The delay of two hosts is the shortest delay between their processes; longer delays include paths inside a host. If
    all processes run on one host, the processes take the place of hosts.

    Args:
        length: message length, bytes; None for the shortest.
        statistic: `median`, `minimum` and so on. None to choose: the median, unless the two directions agree clearly
            better in another statistic.

    Raises:
        UsageError: the length was not measured, or the file lacks the statistic.
    """
    if statistic is not None and statistic not in delays.present:
        raise UsageError(f"--statistic: expected one of {', '.join(delays.present)}, found {statistic!r}")
    if not len(delays.lengths):
        return PairDelays(delays.labels, np.full((delays.processes, delays.processes), np.nan), "median", 0, ())
    if length is not None and length not in delays.lengths:
        known = ", ".join(str(each) for each in delays.lengths[:10].tolist())
        raise UsageError(f"--length: expected a measured length ({known}), found {length}")
    chosen = statistic or _most_agreeing(delays, length)
    matrix = delays.matrix(length, chosen)
    notes: list[str] = []
    hosts = tuple(dict.fromkeys(delays.hosts))
    if 1 < len(hosts) < delays.processes:
        matrix = _join_processes(delays, matrix, hosts)
        notes.append(
            f"{delays.processes} processes on {len(hosts)} hosts: the delay of two hosts is the shortest delay between "
            "their processes"
        )
    elif len(hosts) < delays.processes:
        hosts = delays.labels
        notes.append(
            "all processes are on one host: the topology shows the inside of this host, with processes as leaves"
        )
    else:
        hosts = delays.labels
    seconds, said = _join_directions(matrix)
    row = int(delays.lengths[0]) if length is None else length
    is_stated = delays.attributes.get("source") == FIRMWARE
    if is_stated:
        notes.append("the delays are distances that firmware states (10: local memory); a distance of 1 counts as 1 ns")
    return PairDelays(hosts, seconds, chosen, row, (*notes, *said), is_stated)


def _most_agreeing(delays: Delays, length: int | None) -> str:
    best, chosen = np.inf, "median"
    rows = np.linspace(0, delays.processes - 1, min(delays.processes, _SAMPLED_ROWS)).astype(int)
    for name in _STATISTICS:
        if name not in delays.present:
            continue
        matrix = delays.matrix(length, name)
        ratio = _log_ratio(matrix[rows], matrix[:, rows].T)
        differing = float(np.median(np.abs(ratio))) if len(ratio) else 0.0
        if differing < 0.8 * best:  # the median, unless directions agree better in another one
            best, chosen = differing, name
    return chosen


def _log_ratio(there: npt.NDArray[np.floating], back: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    both = (there > 0) & (back > 0)
    return np.log(there[both] / back[both])


def _join_processes(
    delays: Delays, matrix: npt.NDArray[np.floating], hosts: tuple[str, ...]
) -> npt.NDArray[np.floating]:
    number = {host: index for index, host in enumerate(hosts)}
    of_process = np.array([number[host] for host in delays.hosts])
    order = np.argsort(of_process, kind="stable")
    begin = np.searchsorted(of_process[order], np.arange(len(hosts)))
    sorted_ = np.where(matrix > 0, matrix, np.nan)[np.ix_(order, order)]
    joined: npt.NDArray[np.floating] = np.fmin.reduceat(np.fmin.reduceat(sorted_, begin, axis=0), begin, axis=1)
    np.fill_diagonal(joined, 0.0)
    return joined


def _join_directions(matrix: npt.NDArray[np.floating]) -> tuple[npt.NDArray[np.floating], list[str]]:
    """Return one delay per pair (see `_ONE_WAY`), [n, n], nan if neither direction is valid; and notes."""
    hosts = len(matrix)
    rows = np.linspace(0, hosts - 1, min(hosts, _SAMPLED_ROWS)).astype(int)
    sampled = np.abs(_log_ratio(matrix[rows], matrix[:, rows].T))
    usual = float(np.median(sampled)) if len(sampled) else 0.0
    limit = float(np.exp(max(np.log(_ONE_WAY), min(10 * usual, 10.0))))
    zeros = matrix.size - np.count_nonzero(matrix) - np.count_nonzero(matrix.diagonal() == 0)
    joined = np.empty_like(matrix)
    odd, first = 0, (0, 0)
    for above, right in combinations_with_replacement(blocks(hosts, _BLOCK), 2):
        there, back = matrix[above, right], matrix[right, above].T
        if zeros:
            there, back = np.where(there > 0, there, np.nan), np.where(back > 0, back, np.nan)
        shorter, mean = np.fmin(there, back), (there + back) / 2
        differing = np.abs(there - back) > (limit - 1) * shorter
        mean = np.where(differing | np.isnan(mean), shorter, mean)
        joined[above, right], joined[right, above] = mean, mean.T
        if differing.any():
            found = np.argwhere(np.triu(differing, 1) if above == right else differing)
            first = first if odd else (int(found[0][0]) + above.start, int(found[0][1]) + right.start)
            odd += len(found)
    np.fill_diagonal(joined, 0.0)
    notes = []
    if zeros:
        notes.append(f"not measured: {count_of(int(zeros), 'delay')} of 0, since 0 is impossible")
    if odd:
        notes.append(
            f"the shorter delay counts for {count_of(odd, 'pair')}, because the other direction takes more than "
            f"{limit:.2g} times as long. The first of these pairs has the indices {first[0]} and {first[1]}"
        )
    return joined, notes


def fill_gaps(delays: npt.NDArray[np.floating], measured: npt.NDArray[np.bool_]) -> Floats:
    """Estimate the delays of unmeasured pairs from paths over a third host.

    The length of a path is the longer of its two delays; the estimate is the length of the shortest path. Pairs without
    such a path are estimated later, from earlier estimates.

    Args:
        delays: [n, n], symmetric.
        measured: bool [n, n], True for measured delays.

    Raises:
        ValueError: the measured pairs do not connect the hosts.
    """
    filled = np.where(measured, delays, 0.0)
    missing = ~measured
    np.fill_diagonal(missing, False)
    while missing.any():
        rows = np.flatnonzero(missing.any(axis=1))
        steps = np.where(filled > 0, filled, np.inf)
        guess = filled.copy()
        for row in rows:
            columns = np.flatnonzero(missing[row])
            guess[row, columns] = np.maximum(steps[row][:, None], steps[:, columns]).min(axis=0)
        gained = missing & np.isfinite(guess) & (guess > 0)
        if not gained.any():
            raise ValueError("the measured pairs do not connect the hosts")
        filled = np.where(gained, guess, filled)
        filled = np.where(gained & gained.T, np.minimum(filled, filled.T), filled)
        missing &= ~gained
    return filled
