# SPDX-License-Identifier: Apache-2.0
"""Results as JSON documents: plain objects; infinite and unknown values are null."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from ibprof_lab.scaling.analytic_kernels import AnalyticKernel
from ibprof_lab.scaling.exchange_fit import ExchangeFit
from ibprof_lab.scaling.scaling_model import (
    Cluster,
    Optimum,
    WorkShares,
    balance,
    find_optimum,
    performance,
    speed_up,
)
from ibprof_lab.scaling.scaling_study import RegionStudy, ScalingStudy
from ibprof_lab.scaling.top500 import ListedSystem, correlate_with_rank

Document = dict[str, Any]


def describe_kernel(kernel: AnalyticKernel, cluster: Cluster, processes: list[int]) -> Document:
    """Return a kernel: the optimum by the exact forms and by the slides', formulas, curves."""
    exact, closed = find_optimum(kernel.exact, cluster), kernel.closed
    return _finite(
        {
            "kernel": kernel.name,
            "l_peak": cluster.peak,
            "bandwidth": cluster.bandwidth,
            "hardware_intensity": cluster.intensity,
            "software_intensity": kernel.exact.intensity,
            **{
                name: {"exact": getattr(exact, name), "slide": getattr(closed, name)}
                for name in ("p_half", "p_max", "l_max")
            },
            "formulas": [asdict(formula) for formula in kernel.formulas],
            "curve": [
                {
                    "processes": p,
                    "x": balance(kernel.exact, cluster, p),
                    "speed_up": speed_up(kernel.exact, cluster, p),
                    "performance": performance(kernel.exact, cluster, p),
                    "speed_up_simplified": speed_up(kernel.approximate, cluster, p),
                }
                for p in processes
            ],
            "notes": list(kernel.notes),
        }
    )


def describe_shares(shares: WorkShares) -> Document:
    """Return processing units that differ."""
    return _finite(asdict(shares))


NOT_MEANT = (
    "b_eff is not the bandwidth of a link, of a host, nor of a bisection: it is the one bandwidth that would explain "
    "R_max if all bytes of a system passed through it. It grows with the number of processes",
    "R_max per core is not a peak: it contains the time of communicating",
    "a rank correlation is not a cause: R_max, which decides the rank, is a factor of both quantities",
)
"""Misreadings of a list's numbers."""


def describe_systems(systems: list[ListedSystem]) -> Document:
    """Return a TOP500-like list."""
    return _finite(
        {
            "systems": [{**asdict(each), "per_core": each.per_core} for each in systems],
            "rank_correlation": correlate_with_rank(systems),
            "notes": list(NOT_MEANT),
        }
    )


def describe_study(study: ScalingStudy, between: str) -> Document:
    """Return the results of a set of recordings."""
    first = study.regions[0] if study.regions else None
    return _finite(
        {
            "n": study.size,
            "l_peak": study.cluster.peak,
            "bandwidth": study.cluster.bandwidth,
            "between": between,
            "first_to_stop": first.name if first and math.isfinite(first.optimum.p_max) else None,
            "whole": _describe_region(study.whole),
            "regions": [_describe_region(region) for region in study.regions],
            "notes": list(study.notes),
        }
    )


def _describe_region(region: RegionStudy) -> Document:
    optimum: Optimum = region.optimum
    return {
        "name": region.name,
        "operations": region.operations,
        "exchange": _describe_fit(region.fit) if region.fit else None,
        **asdict(optimum),
        "curve": [asdict(each) for each in region.predictions],
        "got": [asdict(each) for each in region.got],
        "bytes_by_operation": dict(region.by_operation),
    }


def _describe_fit(fit: ExchangeFit) -> Document:
    return {
        "form": str(fit.form),
        "coefficient": asdict(fit.coefficient),
        "scatter": fit.scatter,
        "points": fit.points,
        "alternatives": [str(form) for form in fit.alternatives],
        "n_exponent": asdict(fit.size_exponent) if fit.size_exponent else None,
        "p_exponent": asdict(fit.process_exponent) if fit.process_exponent else None,
        "measured_n": fit.sizes,
        "measured_p": fit.processes,
    }


def _finite(document: Document) -> Document:
    """Return a document without infinity and nan, which JSON lacks."""
    return {key: _finite_value(each) for key, each in document.items()}


def _finite_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _finite(value)
    if isinstance(value, (list, tuple)):
        return [_finite_value(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
