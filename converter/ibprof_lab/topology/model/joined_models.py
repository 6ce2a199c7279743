# SPDX-License-Identifier: Apache-2.0
"""A model of hosts and of their inside: a copy of the model of one host's inside in the place of each host.

Source: Bufe (see `bufe`), section 2.7.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ibprof.errors import InputError
from ibprof_lab.topology.model.inferred_topology import InferredTopology


def join_models(
    outer: InferredTopology, inner: InferredTopology, external: str, measured_from: str | None = None
) -> InferredTopology:
    """Put a copy of the inner model in the place of each host.

    Args:
        outer: of the hosts.
        inner: of the cores of one host, and of one core of another host, the external vertex.
        external: name of that core in the inner model.
        measured_from: the core from which the outer model's delays were measured; these include its path to the host's
            edge. None for the core nearest to the external vertex.

    Raises:
        InputError: the inner model has no such core.
    """
    for name in (external, measured_from):
        if name is not None and name not in inner.hosts:
            raise InputError("--external", None, f"one of {', '.join(inner.hosts)}", repr(name))
    outside = inner.hosts.index(external)
    leads_out = (inner.edge == outside).any(axis=1)
    latency = inner.latency_seconds.copy()
    # The outer model has the shortest link out of the host already; the rest shows which cores are farther from it.
    latency[leads_out] -= latency[leads_out].min(initial=np.inf) if leads_out.any() else 0.0
    cores = [core for core in range(len(inner.hosts)) if core != outside]
    within = replace(inner, latency_seconds=latency).explain_delays()
    own = within[outside, inner.hosts.index(measured_from)] if measured_from else within[outside, cores].min()
    hosts = tuple(f"{host}/{inner.hosts[core]}" for host in outer.hosts for core in cores)
    switches = [*outer.hosts, *outer.switches]
    edges = [outer.edge + len(hosts)]
    hosts_at = (outer.edge < len(outer.hosts)).sum(axis=1)
    latencies = [np.maximum(outer.latency_seconds - own * hosts_at, 0.0)]
    supports = [outer.support]
    probabilities = [outer.probability]
    for place, host in enumerate(outer.hosts):
        vertex = np.zeros(inner.vertices, np.int32)
        vertex[cores] = place * len(cores) + np.arange(len(cores))
        vertex[outside] = len(hosts) + place
        vertex[len(inner.hosts) :] = len(hosts) + len(switches) + np.arange(len(inner.switches))
        switches += [f"{host}/{name}" for name in inner.switches]
        edges.append(vertex[inner.edge])
        latencies.append(latency)
        supports.append(inner.support)
        probabilities.append(inner.probability)
    return InferredTopology(
        method=outer.method,
        hosts=hosts,
        switches=tuple(switches),
        edge=np.sort(np.concatenate(edges), axis=1).astype(np.int32),
        latency_seconds=np.concatenate(latencies),
        support=np.concatenate(supports),
        probability=np.concatenate(probabilities),
        notes=(*outer.notes, *inner.notes),
        unknown=(*outer.unknown, *inner.unknown),
    )
