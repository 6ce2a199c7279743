# SPDX-License-Identifier: Apache-2.0
"""Speed-up curves of each region from recorded runs, and the order in which regions stop scaling."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ibprof_lab.scaling.exchange_fit import WHOLE, ExchangeFit, RecordedExchange, fit_exchange
from ibprof_lab.scaling.scaling_model import (
    Cluster,
    Optimum,
    Work,
    find_optimum,
    inverse_communication_intensity,
    performance,
    run_time,
    speed_up,
)

OfSize = Callable[[float], float]
"""Function from the problem size n to a quantity."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The model's prediction for p processes.

    Attributes:
        processes: p.
        speed_up, low, high: S for the fitted #x, and for both ends of the 95% prediction interval of #x.
        performance: l, in Flop/s.
        exchanged: the fitted #x, in Byte.
        ratio, ratio_low, ratio_high: r = #b / #x (slide 10), for the same three values of #x; infinite without
            exchange.
        beyond: p / the largest measured number of processes; above 1 the prediction is an extrapolation.
    """

    processes: int
    speed_up: float
    low: float
    high: float
    performance: float
    exchanged: float
    ratio: float
    ratio_low: float
    ratio_high: float
    beyond: float


@dataclass(frozen=True, slots=True)
class RunBandwidth:
    """The bandwidth achieved by one run.

    Attributes:
        size, processes: n and p.
        exchanged: #x, in Byte.
        ratio: r = #b / #x; infinite without exchange.
        seconds: wall time t.
        computing: #op / (p l_peak), a lower bound on the computing time, in seconds.
        bandwidth: #x / (t - computing), in Byte/s; nan if no time is left for communication.
    """

    size: float
    processes: int
    exchanged: int
    ratio: float
    seconds: float
    computing: float
    bandwidth: float


@dataclass(frozen=True, slots=True)
class RegionStudy:
    """Results for one region, or for the sum of all regions.

    Attributes:
        name: name of the region; `WHOLE` for the sum.
        operations: #op of the region at the predicted size, in Flop.
        fit: fit of the region's #x; None if the region exchanges no bytes.
        optimum: limits of scaling by the model, with `fit` as #x.
        predictions: a prediction for each number of processes.
        got: bandwidth achieved by each run.
        by_operation: bytes of each operation in the largest run, the most bytes first.
    """

    name: str
    operations: float
    fit: ExchangeFit | None
    optimum: Optimum
    predictions: tuple[Prediction, ...]
    got: tuple[RunBandwidth, ...]
    by_operation: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ScalingStudy:
    """Results of the scaling model for a set of runs.

    Attributes:
        size: problem size n of the predictions.
        whole: results for the sum of all regions.
        regions: regions in the order in which they stop scaling, then regions without operations.
        notes: sentences about assumptions, and about data that was not recorded.
    """

    size: float
    cluster: Cluster
    whole: RegionStudy
    regions: tuple[RegionStudy, ...]
    notes: tuple[str, ...]


def study_runs(
    runs: Sequence[RecordedExchange],
    cluster: Cluster,
    operations: OfSize,
    data: OfSize,
    size: float,
    region_operations: Mapping[str, OfSize],
    processes: Sequence[int],
) -> ScalingStudy:
    """Fit #x(n, p) and evaluate the model.

    Args:
        runs: recorded runs with at least two different numbers of processes.
        operations, data: #op in Flop and #b in Byte of the whole program, as functions of n.
        size: problem size n of the predictions.
        region_operations: #op of single regions. The other regions share the remaining operations in proportion to
            their times in the smallest run.
        processes: numbers of processes p of the predictions.

    Raises:
        ValueError: the runs do not show how #x depends on p.
    """
    runs = sorted(runs, key=lambda run: (run.size, run.processes))
    smallest = min(runs, key=lambda run: run.processes)
    names = list(dict.fromkeys(name for run in runs for name in run.regions))
    notes = sorted({f"{run.name}: {note}" for run in runs for note in run.notes})
    shares = _share_operations(smallest, names, operations(size), {k: f(size) for k, f in region_operations.items()})
    if sum(shares[name] > 0 for name in names if name not in region_operations) > (0 if region_operations else 1):
        notes.append(
            f"regions without a formula are assumed to share the operations by their wall times in {smallest.name}"
        )
    if not 0 < size <= max(run.size for run in runs):
        notes.append(f"n = {size:g} is {size / max(run.size for run in runs):.3g} times the largest size measured")

    def one(name: str, share: OfSize) -> RegionStudy:
        return _study_region(name, runs, cluster, share, data, size, processes)

    def part(name: str) -> OfSize:
        whole = operations(size)
        return lambda n: shares[name] * operations(n) / whole

    regions = [one(name, region_operations.get(name, part(name))) for name in names]
    # Regions without operations come last, since they have nothing to scale.
    regions.sort(key=lambda region: (not region.operations, region.optimum.p_max, region.name))
    return ScalingStudy(size, cluster, one(WHOLE, operations), tuple(regions), tuple(notes))


def _share_operations(
    run: RecordedExchange, names: Sequence[str], total: float, given: Mapping[str, float]
) -> dict[str, float]:
    rest = max(total - sum(given.get(name, 0.0) for name in names), 0.0)
    open_names = [name for name in names if name not in given]
    seconds = {name: run.seconds.get(name, 0.0) for name in open_names}
    time = sum(seconds.values()) or 1.0
    return {name: given[name] if name in given else rest * seconds[name] / time for name in names}


def _study_region(
    name: str,
    runs: Sequence[RecordedExchange],
    cluster: Cluster,
    operations: OfSize,
    data: OfSize,
    size: float,
    processes: Sequence[int],
) -> RegionStudy:
    exchanged = [run.bytes_in(name) for run in runs]
    fit = fit_exchange([run.size for run in runs], [run.processes for run in runs], exchanged)
    spread = fit.spread() if fit else 1.0
    most = max(run.processes for run in runs)

    def work(factor: float) -> Work:
        return Work(operations(size), data(size), lambda p: factor * fit.exchange(size, p) if fit else 0.0)

    middle = work(1.0)
    has_work = operations(size) > 0
    predictions = []
    for p in processes if has_work else ():
        fast, slow = (speed_up(work(factor), cluster, p) for factor in (1 / spread, spread))
        ratio = inverse_communication_intensity(middle, p)
        known = math.isfinite(spread)
        predictions.append(
            Prediction(
                processes=p,
                speed_up=speed_up(middle, cluster, p),
                low=slow if known else math.nan,
                high=fast if known else math.nan,
                performance=performance(middle, cluster, p),
                exchanged=middle.exchange(p),
                ratio=ratio,
                ratio_low=ratio / spread if known else math.nan,
                ratio_high=ratio * spread if known else math.nan,
                beyond=p / most,
            )
        )
    largest = max(runs, key=lambda run: (run.processes, run.size))
    by_operation: dict[str, int] = {}
    for (region, operation), amount in largest.exchanged.items():
        if name in {region, WHOLE}:
            by_operation[operation] = by_operation.get(operation, 0) + amount
    return RegionStudy(
        name=name,
        operations=operations(size),
        fit=fit,
        optimum=find_optimum(middle, cluster) if has_work else Optimum(math.nan, math.nan, math.nan),
        predictions=tuple(predictions),
        got=tuple(_bandwidth_got(name, run, cluster, operations, data) for run in runs),
        by_operation=tuple(sorted(by_operation.items(), key=lambda each: (-each[1], each[0]))),
    )


def _bandwidth_got(
    name: str, run: RecordedExchange, cluster: Cluster, operations: OfSize, data: OfSize
) -> RunBandwidth:
    computing = run_time(Work(operations(run.size), 1.0, lambda _: 0.0), cluster, run.processes)
    seconds = run.seconds.get(name, math.nan)
    exchanged = run.bytes_in(name)
    left = seconds - computing
    return RunBandwidth(
        run.size,
        run.processes,
        exchanged,
        data(run.size) / exchanged if exchanged else math.inf,
        seconds,
        computing,
        exchanged / left if left > 0 and exchanged else math.nan,
    )
