# SPDX-License-Identifier: Apache-2.0
"""Synthetic delays of hosts on leaf switches, with steps and peaks at known message lengths."""

from __future__ import annotations

import numpy as np

from ibprof_lab.latency.model.delays import Delays, clear_diagonal

HOSTS_PER_LEAF = 8
STEP_OF_ALL, STEP_OF_FAR = 3000, 7000
"""Message lengths, bytes, at which delays rise: of all pairs, and of pairs on different leaves."""


def make_delays(hosts: int = 32, lengths: int = 100, noise: float = 0.005, seed: int = 0, peaks: int = 0) -> Delays:
    """Return delays of pairs within a leaf and of pairs between leaves. `peaks` random delays are 3 µs longer."""
    rng = np.random.default_rng(seed)
    bytes_ = np.arange(lengths) * 100
    leaf = np.arange(hosts) // HOSTS_PER_LEAF
    near = leaf[:, None] == leaf
    delay = np.where(near, 2e-6, 4e-6) + bytes_[:, None, None] / np.where(near, 5e9, 2e9)
    delay = delay + (bytes_ >= STEP_OF_ALL)[:, None, None] * np.where(near, 0.5e-6, 1.5e-6)
    delay = delay + (bytes_ >= STEP_OF_FAR)[:, None, None] * np.where(near, 0, 1e-6)
    delay = delay * rng.lognormal(0, noise, delay.shape)
    for _ in range(peaks):
        delay[tuple(rng.integers(side) for side in delay.shape)] += 3e-6
    cube = delay.astype(np.float32)
    clear_diagonal(cube)
    names = tuple(f"n{host:02d}" for host in range(hosts))
    return Delays(names, bytes_.astype(np.int64), cube, lower_quartile=cube * 0.99, upper_quartile=cube * 1.01)
