# SPDX-License-Identifier: Apache-2.0
"""The verdict names the reason for a slow network: two hosts on virtual cables, limited by `tc`.

sysfs shows no speed of virtual cables. So the test writes sysfs files for each host, with a speed of eth0, and an
adapter if needed. Counters and connections are real.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof.verdict.verdict_data import Verdict, VerdictKind
from ibprof.verdict.verdict_rules import judge_run
from ibprof_testing import processes
from ibprof_testing.lab import hosts as lab
from ibprof_testing.lab.plans import Cable, Plan
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.mpis import Build, Mpi

HOSTS = ("node1", "node2")
MBIT = 400

PROGRAM = ("exchange", "0", "1000000", "12")
"""Arguments of waits.c: all ranks exchange 1 MB with their neighbours at the same time."""

FLOOD = """
import socket, sys, time
end = time.time() + 30
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while time.time() < end:
    try:
        link.sendto(bytes(1400), (sys.argv[1], 9))
    except OSError:
        time.sleep(0.001)
"""


def make_plan(*mbit: int) -> Plan:
    return Plan(HOSTS, tuple(Cable(host, "switch", mbit=rate) for host, rate in zip(HOSTS, mbit, strict=True)))


def show_host(folder: Path, speed_mbps: int, adapter: bool = False) -> None:
    """Write a host's sysfs files: eth0 with a speed and real counters, and optionally an idle adapter."""
    interface = folder / "net" / "eth0"
    interface.mkdir(parents=True)
    for name, text in (("speed", str(speed_mbps)), ("type", "1"), ("mtu", "1500"), ("operstate", "up")):
        (interface / name).write_text(f"{text}\n")
    (interface / "device").mkdir()
    (interface / "statistics").symlink_to("/sys/class/net/eth0/statistics")
    port = folder / "infiniband" / "mlx5_0" / "ports" / "1"
    port.mkdir(parents=True)
    state = "4: ACTIVE" if adapter else "1: DOWN"
    shown = (("state", state), ("lid", "0x1"), ("rate", "100 Gb/sec (4X EDR)"), ("link_layer", "InfiniBand"))
    for name, text in (*shown, ("counters/port_xmit_data", "5"), ("counters/symbol_error", "0")):
        (port / name).parent.mkdir(exist_ok=True)
        (port / name).write_text(f"{text}\n")


def run_exchange(hosts: lab.Hosts, mpi: Mpi, program: Path, folder: Path) -> Verdict:
    """Run exchanges of 1 MB with a rank on each host, and return the verdict."""
    script = folder / "on-host"
    script.write_text(f'#!/bin/sh\nIBPROF_SYSFS={folder}/$(hostname)/infiniband exec "$@"\n')
    script.chmod(0o755)
    line: list[str | Path] = [mpi.program("mpirun"), "-n", "2", *hosts.over_tcp()]
    recorded = {"LD_PRELOAD": mpis.library(), "IBPROF_OUTPUT": folder / "recording", "IBPROF_TIME": "1"}
    for name, value in recorded.items():
        line += ["-x", f"{name}={value}"]
    done = hosts.run("node1", [*line, script, program, *PROGRAM], mpis.environment(), folder)
    assert done.returncode == 0, done.stderr
    return judge_run(load_profile(folder / "recording"))


@contextmanager
def flood(hosts: lab.Hosts, source: str, destination: str) -> Iterator[None]:
    """Send datagrams from one host to another in the background."""
    line = ["ip", "netns", "exec", hosts.namespace(source), sys.executable, "-c", FLOOD, hosts.address(destination)]
    with processes.start(line):
        yield


@pytest.fixture
def program(system_mpi: Mpi, build: Build) -> Path:
    return build(system_mpi, "waits.c", "-g")


def test_tcp_next_to_an_idle_adapter(system_mpi: Mpi, program: Path, tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    with lab.up(make_plan(MBIT, MBIT), tmp_path / "lab") as hosts:
        for host in HOSTS:
            show_host(tmp_path / host, MBIT, adapter=True)
        verdict = run_exchange(hosts, system_mpi, program, tmp_path)
    assert (verdict.kind, verdict.cause) == (VerdictKind.SLOW_TRANSFER, "wrong-transport"), verdict.text
    assert "TCP over eth0 (0.4 Gb/s)" in verdict.text
    assert "OMPI_MCA_btl=tcp,vader,self" in verdict.text


def test_an_adapter_slower_than_its_peers(system_mpi: Mpi, program: Path, tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    with lab.up(make_plan(MBIT, MBIT // 10), tmp_path / "lab") as hosts:
        show_host(tmp_path / "node1", MBIT)
        show_host(tmp_path / "node2", MBIT // 10)
        verdict = run_exchange(hosts, system_mpi, program, tmp_path)
    assert (verdict.kind, verdict.cause) == (VerdictKind.SLOW_TRANSFER, "slow-adapter"), verdict.text
    assert "node2 eth0 runs at 0.04 Gb/s (most hosts: 0.4 Gb/s)" in verdict.text


def test_traffic_of_another_program(system_mpi: Mpi, program: Path, tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    with lab.up(make_plan(MBIT, MBIT), tmp_path / "lab") as hosts, flood(hosts, "node1", "node2"):
        for host in HOSTS:
            show_host(tmp_path / host, MBIT)
        verdict = run_exchange(hosts, system_mpi, program, tmp_path)
    assert (verdict.kind, verdict.cause) == (VerdictKind.SLOW_TRANSFER, "other-traffic"), verdict.text


def test_packets_that_are_lost(system_mpi: Mpi, program: Path, tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    with lab.up(make_plan(0, 0), tmp_path / "lab") as hosts:
        for host in HOSTS:
            show_host(tmp_path / host, MBIT)
            # The queue holds four packets, so most packets of a burst are dropped.
            place = ["-n", hosts.namespace(host), "qdisc", "add", "dev", "eth0", "root"]
            subprocess.run(["tc", *place, "tbf", "rate", "100mbit", "burst", "4k", "limit", "6000"], check=True)
        verdict = run_exchange(hosts, system_mpi, program, tmp_path)
    assert (verdict.kind, verdict.cause) == (VerdictKind.SLOW_TRANSFER, "link-errors"), verdict.text
    assert " resent " in verdict.text


def test_a_limit_that_no_host_shows(system_mpi: Mpi, program: Path, tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    with lab.up(make_plan(MBIT // 10, MBIT // 10), tmp_path / "lab") as hosts:
        for host in HOSTS:
            show_host(tmp_path / host, MBIT)
        verdict = run_exchange(hosts, system_mpi, program, tmp_path)
    assert (verdict.kind, verdict.cause) == (VerdictKind.SLOW_TRANSFER, None), verdict.text
