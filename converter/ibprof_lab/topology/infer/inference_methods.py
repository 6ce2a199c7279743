# SPDX-License-Identifier: Apache-2.0
"""The inference methods by name, their options, and the delays that they take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibprof.errors import InputError, UsageError
from ibprof_lab.latency.files.delay_files import UNITS, read_delays
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.topology.files.topology_json import read_topology
from ibprof_lab.topology.infer.bannikov_salnikov import infer_bannikov_salnikov
from ibprof_lab.topology.infer.bufe import infer_bufe
from ibprof_lab.topology.infer.inference import Inference, InferenceEffort, infer
from ibprof_lab.topology.infer.model_choice import MODELS
from ibprof_lab.topology.infer.pair_delays import PairDelays, take_pair_delays
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.model.joined_models import join_models

METHODS = ("auto", *MODELS, "bufe", "bannikov-salnikov")
STATISTICS = ("median", "minimum", "lower_quartile", "upper_quartile", "mean")


@dataclass(frozen=True, slots=True)
class InferenceMethod:
    """How to infer a topology.

    Attributes:
        method: of `METHODS`.
        epsilon: relative tolerance of Bufe's method.
        epsilon_s, epsilon_d: tolerances of Bannikov and Salnikov's method.
        clique_seconds: CPU time of Bufe's method, after which it gives up.
        length: bytes of the messages; None for the shortest.
        statistic: of `STATISTICS`; None for the one in which both directions of pairs agree best.
        bootstrap: number of resampled matrices for the support of edges; 0 for none.
        seconds: limit for resampling.
        seed: of resampling.
        unit: of delays in a CSV or numpy matrix, of `UNITS`.
    """

    method: str = "auto"
    epsilon: float = 0.1
    epsilon_s: float = 0.1
    epsilon_d: float = 0.5
    clique_seconds: float = 30.0
    length: int | None = None
    statistic: str | None = None
    bootstrap: int = 100
    seconds: float = 10.0
    seed: int = 0
    unit: str = "us"


def read_host_delays(name: str, unit: str = "us") -> Delays:
    """Read delays of at least one process, in a CSV or numpy matrix of a unit of `UNITS`.

    Raises:
        InputError: there is no process, or the file holds no delays.
    """
    delays = read_delays(name, STATISTICS[:3], UNITS[unit])
    if not delays.processes:
        raise InputError(name, None, "delays between hosts", "no host")
    return delays


def apply_method(method: InferenceMethod, delays: Delays) -> tuple[Inference, PairDelays | None]:
    """Infer a topology.

    Returns:
        The inference; the delays of pairs of hosts that it is of, None for a method that takes those of processes.

    Raises:
        UsageError: delays of that length were not measured.
    """
    no_pairs = np.zeros((0, 2), np.int64)
    if method.method == "bannikov-salnikov":
        rows = slice(None)
        if method.length is not None:
            place = np.flatnonzero(delays.lengths == method.length)
            if not len(place):
                raise UsageError(f"--length: {method.length} bytes were not measured")
            rows = slice(int(place[0]), int(place[0]) + 1)
        found = infer_bannikov_salnikov(delays.median[rows], delays.labels, method.epsilon_s, method.epsilon_d)
        return Inference(found, no_pairs), None
    values = take_pair_delays(delays, method.length, method.statistic)
    if method.method == "bufe":
        found = infer_bufe(values.seconds, values.hosts, method.epsilon, method.clique_seconds)
        return Inference(found, no_pairs), values
    models = MODELS if method.method == "auto" else (method.method,)
    return infer(values, InferenceEffort(models, method.bootstrap, method.seconds, method.seed)), values


def read_or_infer(name: str, unit: str = "us") -> InferredTopology:
    """Read a topology from JSON, by the name's end, or infer it from delays of a unit of `UNITS`.

    Raises:
        InputError: the file is neither.
    """
    return (
        read_topology(name)
        if name.endswith(".json")
        else infer(take_pair_delays(read_host_delays(name, unit))).topology
    )


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """Which models to join.

    Attributes:
        outer: file of delays between hosts.
        inner: file of delays between the cores of one host and one core of another host.
        external: name of that core of another host.
        core: the core that the hosts were measured from; None for the nearest to the external one.
        method: `auto` or `bufe`, for both models.
        epsilon: relative tolerance of Bufe's method.
        unit: of both files, of `UNITS`.
    """

    outer: str
    inner: str
    external: str
    core: str | None
    method: str
    epsilon: float
    unit: str = "us"


def infer_joined(options: JoinOptions) -> InferredTopology:
    """Infer a topology of hosts and one of a host's inside, and put the latter in the place of each host.

    Raises:
        InputError: a file holds no delays.
        UsageError: there is no core of that name.
    """
    method = InferenceMethod(options.method, options.epsilon, bootstrap=0)
    delays = (read_host_delays(name, options.unit) for name in (options.outer, options.inner))
    outer, inner = (apply_method(method, each)[0].topology for each in delays)
    for name in (options.external, options.core):
        if name is not None and name not in inner.hosts:
            raise UsageError(f"{options.inner} has no core {name!r}, but {', '.join(inner.hosts[:10])}")
    return join_models(outer, inner, options.external, options.core)
