# SPDX-License-Identifier: Apache-2.0
"""Queries of the analytic model. The queries return JSON documents and draw pictures if requested."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError, UsageError, quote_found
from ibprof.load import load_profile, look_into
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.subnet import read_rail_fabric
from ibprof_lab.lab_choices import UNITS
from ibprof_lab.latency.files.delay_files import read_delays
from ibprof_lab.scaling.exchange_fit import choose_ends, sum_exchange
from ibprof_lab.scaling.scaling_document import Document, describe_kernel, describe_shares, describe_study
from ibprof_lab.scaling.scaling_model import KERNELS, Cluster, find_optimum, share_work
from ibprof_lab.scaling.scaling_study import study_runs

_MOST_PREDICTED = 1 << 20


def find_cluster(
    l_peak: float, bandwidth: float | None, fabric: Path | None, delays: Path | None, unit: str = "us"
) -> Cluster:
    """Return the hardware parameters.

    Args:
        l_peak: peak of a process, in Flop/s.
        bandwidth: bandwidth of the network, in Byte/s.
        fabric: fabric file, to use the bandwidth of its slowest host link.
        delays: file of delays, to use the bandwidth of the slowest process.
        unit: unit of the delays if the file does not state it, from `UNITS`.

    Raises:
        UsageError: none or several of `bandwidth`, `fabric` and `delays` are given.
        InconsistentError: no bandwidth can be computed from the fabric or the delays.
    """
    if len([each for each in (bandwidth, fabric, delays) if each is not None]) != 1:
        raise UsageError("give one of --bandwidth, --fabric and --delays")
    if fabric is not None:
        bandwidth = slowest_host_link(fabric)
    elif delays is not None:
        bandwidth = slowest_process(delays, UNITS[unit])
    assert bandwidth is not None
    return Cluster(l_peak, bandwidth)


def query_kernel(
    command: str, n: float, cluster: Cluster, word: float, processes: list[int] | None, figure: Path | None
) -> Document:
    """Return a kernel's optimum, formulas and curve.

    Args:
        command: name of the kernel, from `KERNELS`.
        n: problem size.
        word: bytes of a number.
        processes: numbers of processes to predict for; None for powers of two.
        figure: picture file of the curve; None for no picture.
    """
    kernel = KERNELS[command](n, cluster, word)
    largest = find_optimum(kernel.exact, cluster).p_max
    processes = processes or _powers_of_two(2 * largest if math.isfinite(largest) else 4096)
    if figure:
        from ibprof_lab.scaling.scaling_picture import draw_kernel  # noqa: PLC0415  (slow to import)

        draw_kernel(figure, kernel, cluster)
    return describe_kernel(kernel, cluster, processes)


def query_recordings(
    runs: list[tuple[float, Path]],
    operations: list[str],
    data: str,
    cluster: Cluster,
    n: float | None,
    between: str | None,
    processes: list[int] | None,
    figure: Path | None,
) -> Document:
    """Return the exchanged bytes of recorded runs, and the expected speed-up of each region.

    Args:
        runs: problem size and profile or recording of each run.
        operations: formulas of n for #op of the program; `REGION:FORMULA` is for one region.
        data: formula of n for #b.
        n: problem size to predict for; None for the largest measured size.
        between: `HOSTS` or `RANKS`. If None: `HOSTS` for several hosts, `RANKS` for one host.
        processes, figure: as for `query_kernel`.

    Raises:
        UsageError: a formula is invalid, or a run is given twice.
        InconsistentError: the runs do not show how the exchanged bytes depend on the number of processes.
        InputError: a profile cannot be read.
    """
    check_distinct([path for _, path in runs])
    of_program, of_regions = read_operations(operations)
    of_data = parse_formula("--data", data)
    profiles = [(size, load_profile(path)) for size, path in runs]
    between = between or choose_ends([profile for _, profile in profiles])
    exchanges = [sum_exchange(profile, size, between) for size, profile in profiles]
    size = n or max(size for size, _ in profiles)
    processes = processes or _powers_of_two(4 * max(run.processes for run in exchanges))
    try:
        study = study_runs(exchanges, cluster, of_program, of_data, size, of_regions, processes)
    except ValueError as error:
        raise InconsistentError(f"{', '.join(run.name for run in exchanges)}: {error}") from error
    if figure:
        from ibprof_lab.scaling.scaling_picture import draw_study  # noqa: PLC0415  (slow to import)

        draw_study(figure, study)
    return describe_study(study, between)


def check_distinct(paths: Sequence[Path]) -> None:
    """Check that no run is given twice: copies would hide the noise between repeated runs.

    Raises:
        UsageError: two paths are the same run.
    """
    seen: dict[Path, Path] = {}
    for path in paths:
        first = seen.setdefault(look_into(path).resolve(), path)
        if first is not path:
            raise UsageError(f"{path}: expected a further run, found the same run as {first}")


def query_shares(
    operations: float,
    data: float,
    exchanged: float,
    bandwidth: float,
    peaks: list[float],
    operation_shares: list[float] | None,
    data_shares: list[float] | None,
) -> Document:
    """Return the model for processing units of different speed; `share_work` documents the arguments.

    Raises:
        UsageError: a list of shares does not have the length of `peaks`, has a negative share, or does not add up to 1.
    """
    try:
        shares = share_work(operations, data, exchanged, bandwidth, peaks, operation_shares, data_shares)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return describe_shares(shares)


def _powers_of_two(end: float) -> list[int]:
    last = min(max(end, 2), _MOST_PREDICTED)
    return [1 << power for power in range(int(math.log2(last)) + 1)]


def slowest_host_link(listing: Path) -> float:
    """Return the data rate, in Byte/s, of the slowest link between a host and a switch, over all rails.

    Raises:
        InputError: the file is not a fabric.
        InconsistentError: the fabric has no host link of known speed.
    """
    fabrics = [read_rail_fabric(files, rail) for rail, files in enumerate(find_rails([listing]))]
    speeds = np.concatenate(
        [fabric.link_gbps[(fabric.node_kind[fabric.link_node] == NodeKind.CA).any(axis=1)] for fabric in fabrics]
    )
    if not len(speeds) or np.isnan(speeds).all():
        raise InconsistentError(f"{listing}: no link of a host has a known speed; give --bandwidth")
    return float(np.nanmin(speeds)) * 1e9 / 8


SHORTEST_BULK = 1 << 16
"""Smallest message, in bytes, that can show a bandwidth; the time of shorter messages is mostly latency."""


def slowest_process(path: Path, unit: float | None = None) -> float:
    """Return the bandwidth of the slowest process in Byte/s, from the delays of long messages.

    The bandwidth of a process is the median over its pairs with processes of other hosts; if there is one host, over
    all its pairs. The bandwidth of a pair, without latency, is (s2 - s1) / (delay(s2) - delay(s1)); s1 and s2 are the
    shortest and the longest message length. With delays of `--mode bandwidth`, the bandwidth of a pair is s2 /
    delay(s2).

    Args:
        unit: seconds per unit if the file states no unit.

    Raises:
        InputError: the file holds no delays.
        InconsistentError: the file has no messages of at least `SHORTEST_BULK` bytes, or no measured pair.

    Source: Bufe 2014, equation (1.5), and (1.4) for large s.
    """
    delays = read_delays(path, statistics=(), unit=unit)
    if not len(delays.lengths) or delays.lengths[-1] < SHORTEST_BULK:
        found = f"at most {delays.lengths[-1]:,}" if len(delays.lengths) else "no lengths"
        raise InconsistentError(
            f"{path}: expected messages of {SHORTEST_BULK:,} bytes or more for a bandwidth, found {found}; "
            "measure with --lengths 0,1M"
        )
    hosts = np.array(delays.hosts)
    apart = hosts[:, None] != hosts
    if not apart.any():
        apart = ~np.eye(len(hosts), dtype=bool)
    rate = np.where(apart, _rates(delays.median, delays.lengths, str(delays.attributes.get("mode", ""))), np.nan)
    known = ~np.isnan(rate).all(axis=1)
    if not known.any():
        raise InconsistentError(
            f"{path}: expected a pair that was measured with {delays.lengths[-1]:,} bytes, found none"
        )
    return float(np.nanmedian(rate[known], axis=1).min())


def _rates(median: npt.NDArray[np.float32], lengths: npt.NDArray[np.int64], mode: str) -> npt.NDArray[np.float64]:
    """Return each pair's bandwidth, Byte/s, float64 [n, n]; NaN where unknown."""
    long, size = median[-1].astype(np.float64), float(lengths[-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = size / long
        if len(lengths) > 1 and mode != "bandwidth":
            beyond = long - median[0]
            # If noise makes the long message faster than the short one, the bandwidth is s2 / delay(s2).
            rate = np.where(beyond > 0, (size - float(lengths[0])) / beyond, rate)
    return np.where(np.isfinite(rate), rate, np.nan)


def parse_formula(option: str, text: str) -> Callable[[float], float]:
    """Return a function of n from an expression with + - * / **, sqrt, log, log2 and other numpy functions.

    Args:
        option: name of the option, for messages.
        text: the expression; its variable is n.

    Raises:
        UsageError: the expression is invalid, or not positive at n = 2.
    """
    import numexpr  # noqa: PLC0415  (slow to import)

    def evaluate(n: float) -> float:
        try:
            return float(numexpr.evaluate(text.replace("^", "**"), {"n": np.float64(n)}, {}))
        except Exception as error:  # numexpr raises exceptions of many types
            raise UsageError(f"{option}: expected a formula of n such as 2*n**3, found {quote_found(text)}") from error

    value = evaluate(2.0)
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{option}: expected a positive number for n = 2, found {value:g} from {quote_found(text)}")
    return evaluate


def read_operations(given: Sequence[str]) -> tuple[Callable[[float], float], dict[str, Callable[[float], float]]]:
    """Return the formula of the program (by default, the sum of the regions' formulas), and the formula of each region.

    Args:
        given: formulas; a formula of a region has the form `REGION:FORMULA`.

    Raises:
        UsageError: a formula is invalid, or several formulas are for the whole program.
    """
    regions = {
        name: parse_formula("--operations", formula)
        for name, colon, formula in (each.rpartition(":") for each in given)
        if colon
    }
    whole = [parse_formula("--operations", each) for each in given if ":" not in each]
    if len(whole) > 1:
        raise UsageError("--operations: expected one formula for the whole program, and others as REGION:FORMULA")
    return whole[0] if whole else lambda n: sum(of_size(n) for of_size in regions.values()), regions
