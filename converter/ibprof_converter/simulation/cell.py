# SPDX-License-Identifier: Apache-2.0
"""One simulation of a study, from its description to its figures."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from multiprocessing import get_context
from os import environ
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_converter.routing.subnet import Subnet, read_subnet
from ibprof_converter.simulation.deadlock import assign_lanes
from ibprof_converter.simulation.engine import Simulation
from ibprof_converter.simulation.measure import QUANTILES, Effort, Latency, measure
from ibprof_converter.simulation.network import Hardware, SimulatedNetwork, index_network
from ibprof_converter.simulation.roles import JobPlacement, Seats, ServerPlacement, Workload, make_clients, seat

STORE = "results.jsonl"
"""In a study's folder: a line for each simulation that is done, so that it can be gone on with."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What the simulations of a study have in common.

    Attributes:
        fabric: a LST, or the name of a fabric that is made up.
        hardware: what the fabric does not say.
        adaptive: whether packets choose among shortest ways.
        servers, server_placement, job_placement: who sits where.
        effort: how long each is measured.
    """

    fabric: str
    hardware: Hardware = field(default_factory=Hardware)
    adaptive: bool = False
    servers: int = 72
    server_placement: ServerPlacement = ServerPlacement.ISOLATED
    job_placement: JobPlacement = JobPlacement.RANDOM_NODE
    effort: Effort = field(default_factory=Effort)


@dataclass(frozen=True, slots=True)
class Cell:
    """One simulation.

    Attributes:
        setting: of it.
        workloads: all jobs that have seats, whether they run or not: so a job sits where it sits with the others.
        running: names of those that run.
        measured: the name of the one whose latency is wanted.
        seed: of seats, partners, starts, jitter.
        labels: what it stands for in its study.
    """

    setting: Setting
    workloads: tuple[Workload, ...]
    running: tuple[str, ...]
    measured: str
    seed: int
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """A name that is the same for the same simulation."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a simulation gave.

    Attributes:
        key: of the cell.
        latency: of the measured job.
        packet_hops, cpu_seconds: what it took.
        last_ns: tick at which each running job's last client ended; nan where clients do not end.
    """

    key: str
    latency: Latency
    packet_hops: int
    cpu_seconds: float
    last_ns: dict[str, float]


@lru_cache(maxsize=4)
def load_network(fabric: str, hardware: Hardware) -> tuple[Subnet, SimulatedNetwork, npt.NDArray[np.uint8] | None]:
    """Read a fabric, and find the virtual lanes that it needs; kept for the next simulations of this process."""
    subnet = read_subnet(fabric)
    network = index_network(subnet, hardware)
    return subnet, network, assign_lanes(network)


def set_up(cell: Cell, sampled: Sequence[str] = ()) -> tuple[Simulation, npt.NDArray[np.bool_]]:
    """Make a cell's simulation, and say which clients are measured; `sampled` names jobs to sample besides."""
    setting = cell.setting
    _, network, lanes = load_network(setting.fabric, setting.hardware)
    seats = seat(
        network,
        cell.workloads,
        setting.servers,
        setting.server_placement,
        setting.job_placement,
        np.random.default_rng(cell.seed),
    )
    chosen = [number for number, each in enumerate(cell.workloads) if each.name in cell.running]
    kept = Seats(seats.servers, tuple(seats.jobs[number] for number in chosen))
    workloads = [cell.workloads[number] for number in chosen]
    jobs, clients = make_clients(network, workloads, kept, (cell.measured, *sampled), cell.seed)
    simulation = Simulation(network, jobs, clients, cell.seed, setting.adaptive, lanes)
    return simulation, np.array([jobs[client.job].name == cell.measured for client in clients])


def run_cell(cell: Cell) -> Outcome:
    """Simulate."""
    begin = time.process_time()
    simulation, measured = set_up(cell)
    latency = measure(simulation, measured, cell.setting.effort)
    last = simulation.look_at_clients().last
    limited = {each.name for each in cell.workloads if each.limit}
    job_of = simulation.job_of_client
    return Outcome(
        key=cell.key,
        latency=latency,
        packet_hops=simulation.state.packet_hops,
        cpu_seconds=time.process_time() - begin,
        last_ns={
            job.name: simulation.network.to_ns(int(last[job_of == number].max())) if job.name in limited else math.nan
            for number, job in enumerate(simulation.jobs)
        },
    )


def run_cells(
    cells: Sequence[Cell], folder: Path, workers: int, tell: Callable[[int, int], None] = lambda _done, _all: None
) -> dict[str, Outcome]:
    """Simulate what has not been yet, several at once, and keep each outcome as soon as it is there.

    Args:
        cells: of the study.
        folder: of the study; outcomes in it are taken over.
        workers: processes; under `mpirun -n K`, mpi4py's other ranks are taken instead.
        tell: is told how many are done, of how many.

    Returns:
        Outcomes by key.
    """
    store = folder / STORE
    outcomes = {each.key: each for each in _read_store(store)}
    wanted = {cell.key: cell for cell in cells}
    missing = [cell for key, cell in wanted.items() if key not in outcomes]
    tell(len(wanted) - len(missing), len(wanted))
    if missing:
        with _open_pool(min(workers, len(missing))) as pool, store.open("a", encoding="ascii") as file:
            futures = [pool.submit(run_cell, cell) for cell in missing]
            for done, future in enumerate(as_completed(futures), start=len(wanted) - len(missing) + 1):
                outcome = future.result()
                outcomes[outcome.key] = outcome
                file.write(json.dumps(_plain(outcome)) + "\n")
                file.flush()
                tell(done, len(wanted))
    return {key: outcomes[key] for key in wanted}


@contextmanager
def _open_pool(workers: int) -> Iterator[Executor]:
    if any(int(environ.get(name, "1")) > 1 for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")):
        from mpi4py.futures import MPIPoolExecutor  # noqa: PLC0415  (only where there is MPI)

        with MPIPoolExecutor() as pool:
            yield pool
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield pool


def _plain(outcome: Outcome) -> dict[str, Any]:
    """As JSON can hold it: nan, which it cannot, as null."""
    document = asdict(outcome)
    latency = document["latency"]
    for name, value in latency.items():
        if isinstance(value, float) and math.isnan(value):
            latency[name] = None
    latency["quantiles"] = [None if math.isnan(each) else each for each in latency["quantiles"]]
    document["last_ns"] = {name: None if math.isnan(each) else each for name, each in document["last_ns"].items()}
    return document


def _read_store(store: Path) -> Iterator[Outcome]:
    if not store.exists():
        return
    for line in store.read_text(encoding="ascii").splitlines():
        try:
            document = json.loads(line)
        except ValueError:
            continue  # the run that wrote it was killed in the middle of the line
        latency: dict[str, Any] = {
            name: math.nan if value is None else value for name, value in document["latency"].items()
        }
        latency["quantiles"] = tuple(math.nan if each is None else each for each in latency["quantiles"])
        last = {name: math.nan if each is None else each for name, each in document["last_ns"].items()}
        yield Outcome(**{**document, "latency": Latency(**latency), "last_ns": last})


def describe_latency(latency: Latency) -> dict[str, Any]:
    """Give a latency for programs, in microseconds; a mean that is not settled is null."""
    settled = latency.is_settled

    def us(value: float) -> float | None:
        return round(value / 1000, 4) if settled and not math.isnan(value) else None

    return {
        "mean_us": us(latency.mean),
        "half_interval_us": us(latency.half),
        "node_mean_us": us(latency.node_mean),
        "deviation_us": us(latency.deviation),
        "least_us": us(latency.least),
        "most_us": us(latency.most),
        "quantiles_us": {f"{q:g}": us(value) for q, value in zip(QUANTILES, latency.quantiles, strict=True)},
        "messages": latency.messages,
        "left_out_us": round(latency.left_out_ns / 1000, 3),
        "measured_us": round(latency.measured_ns / 1000, 3),
        "is_settled": settled,
        "note": latency.note,
    }
