# SPDX-License-Identifier: Apache-2.0
"""Inference by one of several methods, and join of a topology of hosts with a topology inside a host."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ibprof.errors import InputError, UsageError
from ibprof_lab.lab_choices import METHOD_STATISTICS, UNITS
from ibprof_lab.latency.files.delay_files import read_delays
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.topology.infer.inference import NO_PAIRS, Inference, InferenceEffort, infer
from ibprof_lab.topology.infer.model_choice import MODELS
from ibprof_lab.topology.infer.pair_delays import PairDelays, take_pair_delays
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.model.topology_files import read_topology


@dataclass(frozen=True, slots=True)
class InferenceMethod:
    """Inference method and its options.

    Attributes:
        method: name from `METHODS`.
        epsilon: relative tolerance of Bufe's method.
        epsilon_s, epsilon_d: tolerances of Bannikov and Salnikov's method.
        clique_seconds: limit of CPU time for Bufe's method.
        length: message length, bytes; None for the shortest.
        statistic: name from `METHOD_STATISTICS`; None to choose (see `take_pair_delays`).
        bootstrap: number of resampled delay matrices for the support of edges; 0 to compute no support.
        seconds: time limit for resampling.
        unit: unit of delays in a CSV or numpy matrix, from `UNITS`.
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
    unit: str = "auto"


def read_host_delays(name: str, unit: str = "auto") -> Delays:
    """Read delays between hosts or processes. `unit` is a name from `UNITS`, used for CSV and numpy matrices.

    Raises:
        InputError: the file holds no delays, or no process.
    """
    delays = read_delays(name, METHOD_STATISTICS[:3], UNITS[unit])
    if not delays.processes:
        raise InputError(name, None, "delays between hosts", "no host")
    return delays


def apply_method(method: InferenceMethod, delays: Delays) -> tuple[Inference, PairDelays | None]:
    """Infer a topology.

    Returns:
        The inference, and the delays between hosts from which the topology was inferred. The delays are None for the
        method `bannikov-salnikov`, which uses delays between processes.

    Raises:
        UsageError: the message length was not measured.
    """
    if method.method in ("bufe", "bannikov-salnikov"):
        return _apply_published(method, delays)
    values = take_pair_delays(delays, method.length, method.statistic)
    del delays  # free the memory of all lengths and statistics before the inference
    models = MODELS if method.method == "auto" else (method.method,)
    return infer(values, InferenceEffort(models, method.bootstrap, method.seconds, method.seed)), values


def _apply_published(method: InferenceMethod, delays: Delays) -> tuple[Inference, PairDelays | None]:
    from ibprof_lab.topology.infer.published_methods import infer_bannikov_salnikov, infer_bufe  # noqa: PLC0415  (slow to import: networkx)

    if method.method == "bannikov-salnikov":
        rows = slice(None)
        if method.length is not None:
            place = np.flatnonzero(delays.lengths == method.length)
            if not len(place):
                raise UsageError(f"--length: {method.length} bytes were not measured")
            rows = slice(int(place[0]), int(place[0]) + 1)
        found = infer_bannikov_salnikov(delays.median[rows], delays.labels, method.epsilon_s, method.epsilon_d)
        return Inference(found, NO_PAIRS), None
    values = take_pair_delays(delays, method.length, method.statistic)
    found = infer_bufe(values.seconds, values.hosts, method.epsilon, method.clique_seconds)
    return Inference(found, NO_PAIRS), values


def read_or_infer(name: str, unit: str = "auto") -> InferredTopology:
    """Read a topology from a JSON file, or infer it from a file of delays (`unit`: see `read_host_delays`).

    Raises:
        InputError: the file is neither a topology nor delays.
    """
    return (
        read_topology(name)
        if name.endswith(".json")
        else infer(take_pair_delays(read_host_delays(name, unit))).topology
    )


def infer_joined(
    outer: str, inner: str, external: str, core: str | None, method: str, epsilon: float, unit: str
) -> InferredTopology:
    """Infer a topology of hosts and a topology inside one host; join them. Arguments: as for `ibprof-topology join`.

    Raises:
        InputError: a file holds no delays.
        UsageError: `external` or `core` is not the name of a core in the file `inner`.
    """
    chosen = InferenceMethod(method, epsilon, bootstrap=0)
    delays = (read_host_delays(name, unit) for name in (outer, inner))
    hosts, inside = (apply_method(chosen, each)[0].topology for each in delays)
    for name in (external, core):
        if name is not None and name not in inside.hosts:
            raise UsageError(f"{inner}: expected a core such as {', '.join(inside.hosts[:10])}, found {name!r}")
    return join_models(hosts, inside, external, core)


def join_models(
    outer: InferredTopology, inner: InferredTopology, external: str, measured_from: str | None = None
) -> InferredTopology:
    """Replace each host in the topology of hosts by a copy of the topology inside one host.

    Args:
        outer: topology of the hosts.
        inner: topology of one host's cores and one core of another host, the external vertex.
        external: name of the external vertex.
        measured_from: core that measured the delays of the outer topology. The path from this core out of the host is
            subtracted from these delays. None for the core nearest to the external vertex.

    Source: Bufe (see `published_methods`), section 2.7.
    """
    outside = inner.hosts.index(external)
    leads_out = (inner.edge == outside).any(axis=1)
    latency = inner.latency_seconds.copy()
    # Subtract the shortest link out of the host, which the outer topology already includes.
    latency[leads_out] -= latency[leads_out].min(initial=np.inf) if leads_out.any() else 0.0
    cores = [core for core in range(len(inner.hosts)) if core != outside]
    within = replace(inner, latency_seconds=latency).explain_delays()
    own = within[outside, inner.hosts.index(measured_from)] if measured_from else within[outside, cores].min()
    hosts = tuple(f"{host}/{inner.hosts[core]}" for host in outer.hosts for core in cores)
    switches = [*outer.hosts, *outer.switches]
    edges = [outer.edge + len(hosts)]
    hosts_at = (outer.edge < len(outer.hosts)).sum(axis=1)
    latencies = [np.maximum(outer.latency_seconds - own * hosts_at, 0.0)]
    for place, host in enumerate(outer.hosts):
        vertex = np.zeros(inner.vertices, np.int32)
        vertex[cores] = place * len(cores) + np.arange(len(cores))
        vertex[outside] = len(hosts) + place
        vertex[len(inner.hosts) :] = len(hosts) + len(switches) + np.arange(len(inner.switches))
        switches += [f"{host}/{name}" for name in inner.switches]
        edges.append(vertex[inner.edge])
        latencies.append(latency)
    return InferredTopology(
        method=outer.method,
        hosts=hosts,
        switches=tuple(switches),
        edge=np.sort(np.concatenate(edges), axis=1).astype(np.int32),
        latency_seconds=np.concatenate(latencies),
        support=np.concatenate([outer.support, *[inner.support] * len(outer.hosts)]),
        probability=np.concatenate([outer.probability, *[inner.probability] * len(outer.hosts)]),
        notes=(*outer.notes, *inner.notes),
        unknown=(*outer.unknown, *inner.unknown),
    )
