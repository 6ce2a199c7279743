# SPDX-License-Identifier: Apache-2.0
"""Named efforts of a measurement: what `--quick`, `--full` and `effort: NAME` of a study mean."""

from __future__ import annotations

from collections.abc import Mapping

from ibprof_lab.simulation.measure.message_latency import Effort

QUICK = Effort(warm_up=20, least_warm_up=0, messages=20, background=5, hops=1e9)
SURVEY = Effort(least_warm_up=0, messages=60, background=20, hops=2e10)
"""For hundreds of simulations, which take four times as long with 50 messages of warm-up each."""
FULL = Effort(precision=0.0, warm_up=50, least_warm_up=0, messages=1000, background=50, hops=1e13, steady=0.005)
"""Steady states are skipped; `replace(FULL, steady=0.0)` has every message."""

EFFORTS: Mapping[str, Effort] = {"quick": QUICK, "survey": SURVEY, "full": FULL}
