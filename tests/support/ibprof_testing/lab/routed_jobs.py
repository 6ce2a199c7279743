# SPDX-License-Identifier: Apache-2.0
"""Record MPI jobs on a routed network, and count the bytes that each link direction carried."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ibprof_converter.cli.place import mpich_hosts
from ibprof_testing import processes
from ibprof_testing.lab.routed_network import HEADERS, PAYLOAD, Direction, RoutedNetwork
from ibprof_testing.mpi.mpis import Mpi

SCRIPTS = Path(sysconfig.get_path("scripts"))
PROGRAMS = Path(__file__).parents[3] / "mpi" / "programs"
MPIRUN = "/usr/bin/mpirun"
RECORDED = {"IBPROF_TIME": "1", "IBPROF_SITES": "1"}
NICE = "-10"
"""Priority of jobs: high, since delays by other processes would look like effects of the network."""

MESSAGE_HEADER = 40
"""Bytes that Open MPI adds to a message: 8 by the TCP transport, the rest by the matching layer."""


CONNECTION = 750
"""Bytes in each direction to open and close a connection."""


class JobError(Exception):
    """A job failed. The error message contains the job's output."""


@dataclass(frozen=True, slots=True)
class LabRun:
    """A recorded run.

    Attributes:
        seconds: communication time that the program printed; nan for none.
        profile: the recording's folder.
        counted: bytes of each link direction, from the counters of network interfaces.
        lost: packets that queues dropped.
        text: the run's output on stderr.
    """

    seconds: float
    profile: Path
    counted: dict[Direction, int]
    lost: int
    text: str


def compile_program(name: str, folder: Path, mpicc: str = "mpicc") -> Path:
    """Compile a program of `tests/mpi/programs`."""
    program = folder / Path(name).stem
    subprocess.run([mpicc, "-O1", "-g", "-o", program, PROGRAMS / name], check=True)
    return program


def run_job(
    network: RoutedNetwork,
    ranks_on: Sequence[str],
    words: Sequence[str | Path],
    folder: Path,
    *,
    rails: Sequence[int] = (),
    mpirun: str = MPIRUN,
    hydra: Mpi | None = None,
    parameters: Mapping[str, object] | None = None,
    variables: Mapping[str, str] | None = None,
    timeout: float = 300,
) -> LabRun:
    """Record a job.

    Args:
        ranks_on: host of each rank.
        words: the program and its arguments.
        folder: an empty folder for the recording.
        rails: rails that MPI may use; empty for all rails.
        mpirun: path of Open MPI 4's mpirun.
        hydra: an MPICH to use instead of Open MPI.
        parameters: additional MCA parameters.
        variables: additional environment variables.

    Raises:
        JobError: the job failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    line: list[str | Path] = ["nice", "-n", NICE, SCRIPTS / "ibprof", "run", "-o", folder / "profile.otf2", "--"]
    rails = rails or range(len(network.rails))
    if hydra:
        line += _launch_by_hydra(network, ranks_on, rails, hydra)
    else:
        line += [mpirun, *launch_by_open_mpi(network, ranks_on, rails, folder, parameters or {})]
    environment = os.environ | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        **RECORDED,
        **(variables or {}),
    }
    before = network.count_bytes()
    done = network.hosts.run(ranks_on[0], [*line, *words], environment, folder, timeout)
    after = network.count_bytes()
    if done.returncode:
        raise JobError(f"{words}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
    said = re.search(r"^seconds (\S+)$", done.stdout, re.MULTILINE)
    return LabRun(
        seconds=float(said[1]) if said else float("nan"),
        profile=folder / "profile.otf2",
        counted={end: after[end] - before[end] for end in after},
        lost=network.find_lost(),
        text=done.stderr,
    )


def launch_by_open_mpi(
    network: RoutedNetwork,
    ranks_on: Sequence[str],
    rails: Sequence[int],
    folder: Path,
    parameters: Mapping[str, object],
) -> list[str | Path]:
    """Write a host file with one rank on each host, and return the options of Open MPI's mpirun."""
    (folder / "hosts").write_text("".join(f"{host}\n" for host in ranks_on))
    chosen: dict[str, object] = {
        "plm_rsh_agent": network.hosts.agent,
        "plm_rsh_no_tree_spawn": 1,
        "oob_tcp_if_include": "eth0",
        "btl_tcp_if_include": ",".join(f"rail{rail}" for rail in rails),
        "btl": "tcp,vader,self",
        # Use only send and receive: remote writes halve the rate if both directions are busy.
        "btl_tcp_flags": 1,
        "pml": "ob1",
        "mpi_yield_when_idle": 1,
        **parameters,
    }
    options = [word for name, value in chosen.items() for word in ("--mca", name, str(value))]
    places: list[str | Path] = ["-n", str(len(ranks_on)), "--hostfile", folder / "hosts", "--map-by", "seq"]
    return [*places, "--bind-to", "none", *options]


def _launch_by_hydra(
    network: RoutedNetwork, ranks_on: Sequence[str], rails: Sequence[int], hydra: Mpi
) -> list[str | Path]:
    agent = ["-launcher", "ssh", "-launcher-exec", str(network.hosts.agent), "-iface", "eth0"]
    chosen = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": f"rail{rails[0]}"}
    settings = [word for name, value in chosen.items() for word in ("-genv", name, value)]
    places = mpich_hosts([network.hosts.address(host) for host in ranks_on]).strip()
    return [hydra.program("mpirun"), *agent, "-hosts", places, "-n", str(len(ranks_on)), *settings]


def call(name: str, *arguments: str | Path, folder: Path) -> str:
    """Run one of ibprof's commands, and return its output.

    Raises:
        JobError: the command failed.
    """
    done = processes.run([SCRIPTS / name, *arguments], cwd=folder, timeout=300)
    if done.returncode:
        raise JobError(f"{name} {arguments}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def report(dumps: Sequence[Path], run: LabRun, *options: str) -> dict[str, Any]:
    """Return `ibprof-report --json` of a run."""
    text = call("ibprof-report", *dumps, run.profile, "--json", *options, folder=run.profile.parent)
    found: dict[str, Any] = json.loads(text)
    return found


def load_links(dumps: Sequence[Path], traffic: Path, *options: str) -> dict[Direction, int]:
    """Return the bytes of each link direction as `ibprof-layout` predicts them."""
    text = call("ibprof-layout", *dumps, traffic, *options, folder=traffic.parent)
    found: dict[Direction, int] = {}
    for row in csv.DictReader(text.splitlines()):
        for end in "ab":
            found[int(row["rail"]), row[f"{end}_name"], int(row[f"{end}_port"])] = int(row[f"{end}_bytes"])
    return found


def add_headers(network: RoutedNetwork, run: LabRun) -> Path:
    """Compute a run's bytes on the wire, and write them as traffic from LID to LID. Return the file.

    Open MPI adds 40 bytes to each message. For each pair of hosts, the mean message, with these 40 bytes, determines
    the number of packets of up to 4096 bytes. Each packet has 66 bytes of headers. Every second packet is acknowledged
    by 66 bytes. A connection takes 750 bytes in each direction. The network must have one rail.
    """
    folder = run.profile.parent
    call("ibprof", "matrix", run.profile, "--by", "host", "-o", folder / "hosts.csv", folder=folder)
    fabric = network.rails[0].fabric
    names = [name.split()[0] for name in fabric.node_name]
    lids = {name: int(fabric.port_lid[fabric.port_node == node][0]) for node, name in enumerate(names)}
    hosts = network.hosts.names
    amounts, messages = np.zeros((2, len(hosts), len(hosts)))
    with (folder / "hosts.csv").open() as file:
        for row in csv.DictReader(file):
            if row["src"] != row["dst"]:
                place = hosts.index(row["src"]), hosts.index(row["dst"])
                amounts[place] += int(row["bytes"]) + MESSAGE_HEADER * int(row["messages"])
                messages[place] += int(row["messages"])
    each = np.divide(amounts, messages, out=np.zeros_like(amounts), where=messages > 0)
    packets = messages * np.ceil(each / PAYLOAD)
    on_wire = amounts + HEADERS * packets + HEADERS * packets.T / 2 + CONNECTION * ((messages + messages.T) > 0)
    with (folder / "wire.csv").open("w") as file:
        file.write("src_lid,dst_lid,bytes\n")
        for one, other in np.argwhere(on_wire > 0).tolist():
            file.write(f"{lids[hosts[one]]},{lids[hosts[other]]},{round(on_wire[one, other])}\n")
    return folder / "wire.csv"
