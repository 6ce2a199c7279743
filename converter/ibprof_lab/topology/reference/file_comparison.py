# SPDX-License-Identifier: Apache-2.0
"""Comparison of a file, a topology, a fabric or delays, with a reference."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ibprof.errors import UsageError
from ibprof_converter.routing.rail_files import has_links
from ibprof_converter.routing.synthetic.spec import is_synthetic
from ibprof_lab.topology.files.topology_files import READERS, read_graph
from ibprof_lab.topology.infer.inference_methods import InferenceMethod, apply_method, read_host_delays
from ibprof_lab.topology.reference.reference_comparison import (
    ReferenceComparison,
    compare_with_reference,
    make_observable_topology,
)
from ibprof_lab.topology.reference.reference_topology import Reference, read_reference

_ONE_HOP_S = 1e-6


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The files to compare.

    Attributes:
        inferred: file of a topology, a fabric or delays.
        reference: file of a plan, a fabric or a topology.
        rail: of a reference with several.
        least: relative excess of a delay for which a link is blamed.
        least_speed: share of its speed that a link must reach.
        method: how to infer a topology from delays; its length is that of the messages whose times are compared.
    """

    inferred: str
    reference: str
    rail: int
    least: float
    least_speed: float
    method: InferenceMethod


def compare_files(options: CompareOptions) -> ReferenceComparison:
    """Read, infer where needed, and compare.

    Raises:
        InputError: a file is damaged.
        UsageError: delays of that length were not measured.
        InconsistentError: the two have no host in common.
    """
    reference, name = read_reference(options.reference, options.rail), options.inferred
    shares = (options.least, options.least_speed)
    if Path(name).suffix in READERS:
        found = read_graph(name)
        timed = not np.isnan(found.latency_seconds).any()
        if not timed:
            found = replace(found, latency_seconds=np.full(len(found.edge), _ONE_HOP_S))
        return compare_with_reference(found, reference, None, options.method.length or 0, *shares, timed)
    if is_synthetic(name) or Path(name).is_dir() or has_links(Path(name)):
        return compare_with_reference(make_observable_topology(read_reference(name)), reference, None, timed=False)
    return _compare_delays(options, reference)


def _compare_delays(options: CompareOptions, reference: Reference) -> ReferenceComparison:
    delays, length = read_host_delays(options.inferred, options.method.unit), options.method.length
    if length is None:
        length = int(delays.lengths[0])
    elif length not in delays.lengths:
        raise UsageError(f"--length: {length} bytes were not measured")
    # The shortest messages show the topology best, whatever the length whose times are compared.
    inferred, values = apply_method(replace(options.method, bootstrap=0, length=None), delays)
    return compare_with_reference(
        inferred.topology,
        reference,
        delays,
        length,
        options.least,
        options.least_speed,
        statistic=values.statistic if values else "median",
    )
