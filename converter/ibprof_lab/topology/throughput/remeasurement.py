# SPDX-License-Identifier: Apache-2.0
"""A second, longer measurement of the delays of a few pairs of hosts, chosen by a known topology."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof.text.quantities import count_of, printable
from ibprof_converter.fabric.node_names import show_some
from ibprof_lab.latency.files.delay_files import read_delays
from ibprof_lab.latency.measure.delay_measurement import MeasurementSession
from ibprof_lab.latency.measure.measurement_plan import BackgroundNoise, MeasurementPlan, Round
from ibprof_lab.latency.measure.mpi_job import on_first
from ibprof_lab.latency.measure.timed_loops import Sampling
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.topology.infer.candidate import NORMAL, OUTLYING
from ibprof_lab.topology.model.inferred_topology import NO_EDGE, InferredRoutes, InferredTopology
from ibprof_lab.topology.model.topology_files import read_topology
from ibprof_lab.topology.throughput.pair_jobs import Pair, PairJob, make_job, put_into_rounds

_NOISE = ("num_noise_proc", "num_noise_mes", "noise_mes_length")


def remeasure(
    module: Any,
    topology: Path,
    delays: Path,
    each: int,
    budget: tuple[float, float | None],
    repetitions: int,
    schedule: str,
) -> int:
    """Measure again the pairs whose delay the topology does not explain, then pairs that determine every link's
    latency. `module` is `mpi4py.MPI`. The other arguments are those of `ibprof-topology remeasure`, equal on all
    processes.

    Returns:
        The number of the signal that ended the measurement; 0 if there is none.

    Raises:
        InconsistentError: the file of delays does not contain all hosts of the topology.
        IbprofError: a file cannot be read or written.
    """
    comm = module.COMM_WORLD
    graph: InferredTopology = comm.bcast(on_first(comm, lambda: read_topology(topology)))
    plan = comm.bcast(on_first(comm, lambda: _plan(delays, repetitions)))
    session = MeasurementSession(module, plan, delays)

    def choose(measured: Delays) -> Sequence[Round]:
        """Choose pairs of hosts; return rounds of pairs of processes."""
        process_of = _find_processes(graph, topology, measured, delays)
        routes = InferredRoutes(graph)
        seconds = measured.matrix()[np.ix_(process_of, process_of)].astype(np.float64)
        unexplained = find_unexplained_pairs(graph, seconds)
        wanted = list(dict.fromkeys([*unexplained, *choose_representatives(routes, each)]))
        hosts = len(graph.hosts)
        chosen = wanted[: _count_pairs(budget, hosts, plan)]
        session.say(
            f"found {count_of(len(unexplained), 'outlying pair')}, and {len(wanted) - len(unexplained)} more that "
            f"represent links; measuring {len(chosen)} of all {hosts * (hosts - 1) // 2} pairs, outlying pairs first"
        )
        rounds: list[list[Pair]] = (
            [[pair] for pair in chosen] if schedule == "sequential" else schedule_pairs(routes, chosen)
        )
        return [process_of[np.array(pairs, np.int64)].astype(np.int32) for pairs in rounds]

    return session.measure(resume=True, choose=choose)


def _plan(path: Path, repetitions: int) -> MeasurementPlan:
    """Return the plan by which the delays in the file were measured, with `repetitions` batches per pair."""
    delays = read_delays(path, ())
    known = delays.attributes
    return MeasurementPlan(
        lengths=delays.lengths,
        mode=str(known.get("mode", "one_to_one")),
        schedule=str(known.get("schedule", "rounds")),
        one_way=bool(known.get("one_way", 0)),
        window=int(known.get("window", 64)),
        noise=BackgroundNoise(*(int(known.get(name, 0)) for name in _NOISE)),
        sampling=Sampling(repetitions, float(known.get("batch_s", 1e-3))),
    )


def _find_processes(topology: InferredTopology, path: Path, delays: Delays, delays_path: Path) -> np.ndarray:
    """Return the lowest process on each host, int64 [host]."""
    first: dict[str, int] = {}
    for process, names in enumerate(zip(delays.hosts, delays.labels, strict=True)):
        for name in names:
            first.setdefault(name, process)
    missing = [host for host in topology.hosts if host not in first]
    if missing:
        raise InconsistentError(
            f"{delays_path}: expected delays of the hosts of {path}, found none of {printable(show_some(missing))}"
        )
    return np.array([first[host] for host in topology.hosts], np.int64)


def _count_pairs(budget: tuple[float, float | None], hosts: int, plan: MeasurementPlan) -> int:
    share, seconds = budget
    if seconds is None:
        return math.ceil(share * hosts * (hosts - 1) / 2)
    return int(seconds / plan.seconds_of_pair_again / max(len(plan.lengths), 1))


_FLOOR = 0.02
"""Smallest assumed standard deviation of a delay's logarithm. A delay is unexplained if it deviates by more than
`OUTLYING` (3.5) standard deviations, which are at least 7%."""


def choose_representatives(routes: InferredRoutes, each: int = 1) -> list[Pair]:
    """Return pairs that determine every link's latency: `each` sets of pairs, with different hosts if possible."""
    pairs: dict[Pair, None] = {}
    for turn in range(each):
        for one, other in _of_links(routes, turn):
            if one != other:
                pairs[min(one, other), max(one, other)] = None
    return list(pairs)


def _of_links(routes: InferredRoutes, turn: int) -> Iterator[Pair]:
    for one, other in routes.attachment.cable.tolist():
        near, far = routes.behind(one, other), routes.behind(other, one)
        if near and far:
            a, b = (near[(2 * turn + place) % len(near)] for place in (0, 1))
            c, d = (far[(2 * turn + place) % len(far)] for place in (0, 1))
            yield from ((a, b), (c, d), (a, c), (b, d), (a, d), (b, c))
    for host in range(routes.hosts):
        if routes.attachment.host_edge[host] != NO_EDGE:
            others = _nearest(routes, host, 2 * turn + 2)
            if len(others) > 1:
                b, c = others[-2:]
                yield from ((host, b), (host, c), (b, c))
            elif others:
                yield host, others[0]


def _nearest(routes: InferredRoutes, host: int, count: int) -> list[int]:
    """Return `count` other hosts, the nearest first.

    Equally near hosts are sorted by index: first the indices above `host`, then the indices below.
    """
    own = routes.attachment.host_switch
    distance = routes.distance[own[host], own]
    order = np.lexsort(((np.arange(routes.hosts) - host) % routes.hosts, distance))
    return [int(other) for other in order[: count + 1] if other != host][:count]


def find_unexplained_pairs(topology: InferredTopology, seconds: npt.NDArray[np.floating]) -> list[Pair]:
    """Return pairs whose delay the topology does not explain, the worst first. `seconds`: [host, host], delays."""
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(np.log(seconds / topology.explain_delays()))
    off = np.triu(np.fmax(off, off.T), 1)
    known = np.isfinite(off) & (np.triu(seconds, 1) > 0)
    if not known.any():
        return []
    limit = OUTLYING * max(NORMAL * float(np.median(off[known])), _FLOOR)
    found = np.argwhere(known & (off > limit))
    worst = np.argsort(-off[tuple(found.T)], kind="stable")
    return [(int(one), int(other)) for one, other in found[worst]]


def schedule_pairs(routes: InferredRoutes, pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Put pairs into rounds in which paths share no switch or link, since other messages would lengthen delays."""

    def job_of(pair: Pair) -> PairJob:
        return make_job(routes, [pair], (f"switch {switch}" for switch in routes.switches(*pair)))

    return [[job.pairs[0] for job in jobs] for jobs in put_into_rounds([job_of(pair) for pair in pairs])]
