# SPDX-License-Identifier: Apache-2.0
"""The packet engine agrees with stored results of CODES for the same fabric, tables, jobs, starts and intervals."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from ibprof_lab.simulation.engine.packet_engine import Simulation, Stop
from ibprof_lab.simulation.engine.simulated_network import index_network
from ibprof_testing.reference.codes import HARDWARE, SETTINGS, make_jobs
from ibprof_testing.samples.fabrics import read_subnet

LONG = ("checkpoint1024", "mpi4m")
"""Settings with about 20 million packet hops each."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.full) if name in LONG else name for name in SETTINGS]
)
def test_codes_says_the_same(name: str) -> None:
    setting = SETTINGS[name]
    network = index_network(read_subnet(setting.fabric), HARDWARE)
    jobs, clients = make_jobs(setting, network)
    simulation = Simulation(network, jobs, clients, adaptive=setting.adaptive)
    taken = []
    while simulation.state.stop != Stop.DONE:
        taken.append(simulation.run().copy())
    samples = np.concatenate(taken)
    start = samples["start"] * network.tick_ns
    measured = samples[(start >= setting.begin_ns) & (start < setting.end_ns)]
    of_job = simulation.job_of_client[measured["client"]]
    for number, job in enumerate(jobs):
        ns, said = measured["ticks"][of_job == number] * network.tick_ns, setting.said[job.name]
        assert len(ns) == pytest.approx(said.messages, rel=0.03)
        assert ns.mean() == pytest.approx(said.mean, rel=0.03)
        # Short messages wait for whole packets, so quantiles differ by multiples of a packet's time.
        assert np.quantile(ns, 0.95) == pytest.approx(said.p95, rel=0.05, abs=HARDWARE.packet_bytes * 8 / 100)
    if setting.adaptive:
        return  # the simulators decide ties at random, so packets take different links
    ends = np.sort(network.port_end[network.port_end >= 0])
    carried = simulation.look_at_ends().bytes.sum(axis=1)[ends].astype("<u8")
    assert hashlib.sha256(carried.tobytes()).hexdigest() == setting.link_bytes
