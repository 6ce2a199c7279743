# SPDX-License-Identifier: Apache-2.0
"""Run programs with known waiting under the tracer, on shared memory or a slow network, with or without ibprof."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ibprof_testing import processes
from ibprof_testing.lab.hosts import check_machine, run_ip, take_down, up
from ibprof_testing.lab.plans import Cable, Plan
from ibprof_testing.mpi import mpis
from ibprof_testing.waits.traces import OUTPUT, Trace, build_tracer, read_traces

PROGRAM = "waits.c"

MTU = 1500
"""MTU of the slow device. Larger packets, of up to 64 KiB, would not fit into the bucket of `tc tbf`, which drops them.
"""

# In a network namespace with only a loopback device, ranks communicate by TCP.
ROUTED = "routed0"
"""A device with an address that UCX accepts, unlike a loopback address. Packets to this address go through the loopback
device."""

OVER_TCP = {
    "UCX_TLS": "tcp",
    "UCX_NET_DEVICES": ROUTED,
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_oob_tcp_if_include": "lo",
    "OMPI_MCA_btl_tcp_flags": "1",
    "PRTE_MCA_prte_if_include": ROUTED,
    "PMIX_MCA_ptl_tcp_if_include": "lo",
    "FI_PROVIDER": "tcp",
    "FI_TCP_IFACE": "lo",
    **mpis.THROUGH_NETWORK,
}


@dataclass(frozen=True, slots=True)
class WaitPlant:
    """A program of waits.c with a known wait, and the network that it runs on.

    Attributes:
        name: the program's name.
        milliseconds, bytes, rounds: the program's arguments.
        mbit: rate of the only network device, Mb/s; None for shared memory.
        ranks: number of ranks.
        host_mbit: rate of each host's cable, Mb/s; empty for one host. Ranks are spread over the hosts evenly.
        is_lossy: true if hosts have queues of only four packets, which drop most packets of a burst.
    """

    name: str
    milliseconds: float
    bytes: int
    rounds: int
    mbit: int | None = None
    ranks: int = 4
    host_mbit: tuple[int, ...] = ()
    is_lossy: bool = False

    @property
    def words(self) -> list[str]:
        """Return the arguments of waits.c."""
        return [self.name, f"{self.milliseconds:g}", str(self.bytes), str(self.rounds)]

    @property
    def title(self) -> str:
        """Return a description of the program and its network."""
        network = f"{self.mbit} Mb/s" if self.mbit else "shared memory"
        if self.host_mbit:
            network = f"hosts with {', '.join(map(str, self.host_mbit))} Mb/s"
        if self.is_lossy:
            network += ", packets lost"
        return f"{' '.join(self.words)}, {self.ranks} ranks, {network}"


PLANTS = (
    WaitPlant("late", 5, 8, 100),
    WaitPlant("random", 5, 8, 100),
    WaitPlant("balanced", 0, 1_000_000, 40),
    WaitPlant("balanced", 0, 1_000_000, 12, mbit=400),
    WaitPlant("half", 60, 1_000_000, 10, mbit=400),
    WaitPlant("half", 300, 1_000_000, 10, mbit=400),
    WaitPlant("half", 5, 1_000_000, 40),
    WaitPlant("uneven", 10, 4_000_000, 40),
    WaitPlant("noise", 0.06, 8, 12_000),
    WaitPlant("pipeline", 5, 1024, 100),
    WaitPlant("probe", 5, 1024, 100),
    WaitPlant("look", 5, 1024, 100),
    WaitPlant("grid", 5, 1024, 100),
    WaitPlant("graph", 5, 1024, 100),
    WaitPlant("epochs", 5, 1024, 100),
    WaitPlant("partitions", 5, 1024, 100),
    WaitPlant("persistent", 5, 8, 100),
    WaitPlant("halo", 5, 1024, 100),
    WaitPlant("halo", 40, 1_000_000, 20, mbit=400),
    WaitPlant("exchange", 0, 1_000_000, 20, mbit=400),
    WaitPlant("uneven-exchange", 40, 1_000_000, 20, mbit=400),
    WaitPlant("broadcast", 5, 1024, 100),
    WaitPlant("broadcast", 40, 1_000_000, 20, mbit=400),
    WaitPlant("reduce", 5, 1024, 100),
    WaitPlant("groups", 5, 8, 100),
    WaitPlant("fence", 5, 1024, 100),
    WaitPlant("receiver", 5, 1024, 100),
    WaitPlant("nonblocking", 5, 8, 100),
    WaitPlant("server", 2, 64, 50),
    WaitPlant("gather-all", 2, 8, 100),
    WaitPlant("gather-some", 2, 8, 100),
    WaitPlant("steps", 1, 1024, 400),
    WaitPlant("rare", 400, 8, 20_000),
    WaitPlant("seldom", 40, 8, 5_000, ranks=2),
    WaitPlant("balanced", 0, 1_000_000, 10, host_mbit=(400, 400)),
    WaitPlant("balanced", 0, 1_000_000, 10, host_mbit=(400, 40)),
    WaitPlant("halo", 40, 1_000_000, 10, host_mbit=(400, 100)),
    WaitPlant("late", 20, 8, 50, host_mbit=(400, 400)),
    WaitPlant("exchange", 0, 300_000, 10, host_mbit=(100, 100), is_lossy=True),
)
"""Runs with waiting, with transfer, and with both, for each kind of wait."""


@contextmanager
def slow_loopback(mbit: int) -> Iterator[list[str]]:
    """Make a network namespace whose loopback device has `mbit` Mb/s. Yield the words that run a command there.

    All packets between processes in the namespace go through this device.

    Raises:
        MissingError: this machine cannot make such a namespace.
    """
    check_machine()
    namespace = f"ibprof-{os.getpid()}-slow"
    run_ip("netns", "add", namespace)
    try:
        run_ip("-n", namespace, "link", "set", "lo", "mtu", str(MTU), "up")
        run_ip("-n", namespace, "link", "add", ROUTED, "type", "veth", "peer", "name", "unused0")
        run_ip("-n", namespace, "address", "add", "198.18.0.1/24", "dev", ROUTED)
        for device in (ROUTED, "unused0"):
            run_ip("-n", namespace, "link", "set", device, "up")
        limit = ["rate", f"{mbit}mbit", "burst", "64k", "latency", "400ms"]
        subprocess.run(["tc", "-n", namespace, "qdisc", "add", "dev", "lo", "root", "tbf", *limit], check=True)
        yield ["ip", "netns", "exec", namespace]
    finally:
        take_down(namespace)


def run_traced(
    mpi: mpis.Mpi,
    plant: WaitPlant,
    folder: Path,
    programs: Path,
    recording: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> list[Trace]:
    """Run a program with a known wait under the tracer.

    Args:
        folder: an empty folder for the traces.
        programs: folder of compiled programs, with one folder for each MPI.
        recording: folder of ibprof's recording of the same run; None for no recording.
        variables: environment variables of the ranks.
    """
    program = mpis.build(mpi, PROGRAM, programs, "-g")
    preload = [str(build_tracer(mpi, programs))]
    settings = {OUTPUT: str(folder), **(variables or {})}
    if recording:
        preload.append(str(mpis.library()))
        settings["IBPROF_OUTPUT"] = str(recording)
    settings["LD_PRELOAD"] = " ".join(preload)
    if plant.host_mbit:
        _launch_on_hosts(mpi, plant, [program, *plant.words], settings, folder)
    elif plant.mbit:
        with slow_loopback(plant.mbit) as around:
            launch(mpi, plant.ranks, [program, *plant.words], settings | OVER_TCP, around, folder)
    else:
        launch(mpi, plant.ranks, [program, *plant.words], settings, [], folder)
    return read_traces(folder)


_MPICH_BETWEEN_HOSTS = {
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    "I_MPI_FABRICS": "shm:ofi",
    "FI_PROVIDER": "tcp",
    "FI_TCP_IFACE": "eth0",
}


def _launch_on_hosts(
    mpi: mpis.Mpi, plant: WaitPlant, command: list[str | Path], settings: Mapping[str, str], folder: Path
) -> None:
    """Run a program on hosts in network namespaces, with cables of limited rates."""
    names = tuple(f"node{number}" for number in range(1, len(plant.host_mbit) + 1))
    rates = [0 if plant.is_lossy else rate for rate in plant.host_mbit]
    cables = tuple(Cable(name, "switch", mbit=rate) for name, rate in zip(names, rates, strict=True))
    place = folder / "hosts"
    place.mkdir()
    with up(Plan(names, cables), place) as hosts:
        for name, rate in zip(names, plant.host_mbit if plant.is_lossy else (), strict=plant.is_lossy):
            where = ["-n", hosts.namespace(name), "qdisc", "add", "dev", "eth0", "root"]
            limit = ["rate", f"{rate}mbit", "burst", "4k", "limit", "6000"]
            subprocess.run(["tc", *where, "tbf", *limit], check=True)
        line: list[str | Path] = [mpi.program("mpirun"), "-n", str(plant.ranks)]
        each = plant.ranks // len(names)
        if mpi.is_mpich_like:
            places = ",".join(map(hosts.address, names))
            line += ["-launcher", "ssh", "-launcher-exec", hosts.agent, "-iface", "eth0", "-hosts", places]
            line += ["-ppn", str(each)]
            settings = {**mpi.variables, **_MPICH_BETWEEN_HOSTS, **settings}
        else:
            line += hosts.over_tcp(each)
        for name, value in settings.items():
            line += ["-genv", name, value] if mpi.is_mpich_like else ["-x", f"{name}={value}"]
        around = mpis.environment(mpi.variables if mpi.is_mpich_like else None)
        done = hosts.run(names[0], [*line, *command], around, folder, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr


def launch(
    mpi: mpis.Mpi,
    ranks: int,
    command: list[str | Path],
    settings: Mapping[str, str],
    around: list[str],
    folder: Path,
) -> None:
    """Run a command on some ranks in a folder, with environment variables for the launcher and all ranks.

    Args:
        around: words before the launcher, such as the words from `slow_loopback`.
    """
    line: list[str | Path] = [*around, mpi.program("mpirun"), "-n", str(ranks)]
    variables = mpis.environment(mpi.variables if mpi.is_mpich_like else None)
    for name, value in settings.items():
        line += ["-genv", name, value] if mpi.is_mpich_like else ["-x", f"{name}={value}"]
        if name != "LD_PRELOAD":
            variables[name] = value
    done = processes.run([*line, *command], env=variables, cwd=folder, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
