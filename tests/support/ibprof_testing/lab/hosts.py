# SPDX-License-Identifier: Apache-2.0
"""A cluster on one machine. Hosts and switches are network namespaces; ranks are processes in these namespaces.

Each host has its own name, address and temporary folder. All hosts share the file system, as nodes of a cluster do. A
switch is a bridge. A cable is a pair of virtual devices; `cables.c` delays the packets of a long cable. `tc tbf` limits
rates. Open MPI reaches hosts through `agent`, which replaces ssh. `agent` starts programs with only HOME (for Open MPI
5's daemon), PATH and TMPDIR set. So all other environment variables reach a host only if Open MPI sends them.

The cluster needs root. `up` removes the namespaces at the end. After a kill, the next `up` removes the namespaces.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ibprof_testing import processes
from ibprof_testing.lab.plans import Cable, Plan, one_switch
from ibprof_testing.machine import find_program, require_root

REMOTE_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
SUBNET = "10.77.0.0/24"

_NAMESPACE = re.compile(r"ibprof-(\d+)-\S+")
_NETNS = Path("/etc/netns")
PACKAGES = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "hostname": "hostname", "cc": "gcc"}

_MPIRUN_STARTS = 10
_CRASHED = {code for signalled in (signal.SIGABRT, signal.SIGSEGV) for code in (-signalled, 128 + signalled)}

_BURST_BYTES = 16_000
_QUEUE_MS = 100


class LabError(Exception):
    """This machine cannot build a cluster of network namespaces. The error message states the reason."""


def check_machine() -> None:
    """Check that a cluster can be built here.

    Raises:
        MissingError: a cluster cannot be built.
    """
    require_root("to make network namespaces")
    for tool, package in PACKAGES.items():
        find_program(tool, package=package)


def run_ip(*words: str | Path) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"ip {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class Hosts:
    """Running hosts.

    Attributes:
        names: names of the hosts, in the order of ranks.
        folder: folder of the agent and the temporary folders.
        plan: the built network.
    """

    names: tuple[str, ...]
    folder: Path
    plan: Plan = field(default_factory=lambda: one_switch(0))

    def namespace(self, node: str) -> str:
        """Return the name of the network namespace of a host or switch."""
        return f"ibprof-{os.getpid()}-{node}"

    def address(self, host: str) -> str:
        """Return the IPv4 address of a host."""
        return f"10.77.0.{self.names.index(host) + 1}"

    @property
    def agent(self) -> Path:
        """Return the path of the program that launchers call instead of ssh: `agent [OPTIONS] ADDRESS COMMAND`."""
        return self.folder / "agent"

    def over_tcp(self, slots: int = 1, **parameters: object) -> list[str]:
        """Return options of Open MPI's mpirun: ranks are in the hosts' order, and use the hosts' network.

        Args:
            slots: ranks on each host.
            parameters: additional MCA parameters.
        """
        chosen: dict[str, object] = {
            "plm_rsh_agent": self.agent,
            "plm_rsh_no_tree_spawn": 1,
            "oob_tcp_if_include": SUBNET,
            "btl_tcp_if_include": SUBNET,
            "btl": "tcp,vader,self",
            **parameters,
        }
        places = ",".join(f"{self.address(host)}:{slots}" for host in self.names)
        return ["--host", places, *(word for name, value in chosen.items() for word in ("--mca", name, str(value)))]

    def run(
        self,
        host: str,
        command: Sequence[str | Path],
        environment: Mapping[str, str],
        cwd: Path,
        timeout: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a host, like a user who is logged in there."""
        # The host's name is set only for this command, in its own UTS namespace.
        line = ["ip", "netns", "exec", self.namespace(host), "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"']
        return processes.run(
            [*line, host, *command],
            env={**environment, "TMPDIR": str(self.folder / host)},
            cwd=cwd,
            timeout=timeout,
        )

    def run_open_mpi_5(
        self,
        host: str,
        command: Sequence[str | Path],
        environment: Mapping[str, str],
        cwd: Path,
        is_all: Callable[[str], bool],
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of Open MPI 5 on a host. Repeat the command if mpirun fails for known reasons.

        On a busy machine, mpirun of Open MPI 5.0.11 sometimes prints all lines and does not end. Then it is killed. If
        a line is missing, the test fails at once. When ranks spawn ranks on other hosts, mpirun and its daemons damage
        their own memory. valgrind reports this damage in each run, also without ibprof. In 400 runs without ibprof,
        mpirun crashed 19 times, once in three successive starts. If a rank crashes, mpirun reports this rank, and the
        command is not repeated.
        """
        for _ in range(_MPIRUN_STARTS - 1):
            try:
                done = self.run(host, command, environment, cwd, timeout=60)
            except subprocess.TimeoutExpired as stopped:
                printed = bytes(stopped.stdout or b"").decode()
                assert is_all(printed), printed
                continue
            if done.returncode not in _CRASHED or "exited on signal" in done.stderr:
                return done
        return self.run(host, command, environment, cwd)

    def sent_bytes(self, host: str) -> int:
        """Return the bytes that a host has sent on its link, including headers."""
        counter = "/sys/class/net/eth0/statistics/tx_bytes"
        return int(run_ip("netns", "exec", self.namespace(host), "cat", counter))


# -- building


def _add_node(hosts: Hosts, node: str) -> None:
    namespace = hosts.namespace(node)
    run_ip("netns", "add", namespace)
    run_ip("-n", namespace, "link", "set", "lo", "up")
    if node not in hosts.names:
        run_ip("-n", namespace, "link", "add", "br0", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
        run_ip("-n", namespace, "link", "set", "br0", "up")
        return
    (hosts.folder / node).mkdir()
    # `ip netns exec` mounts these files over /etc, so that hosts know each other's names.
    names = "".join(f"{hosts.address(each)} {each}\n" for each in hosts.names)
    etc = _NETNS / namespace
    etc.mkdir(parents=True)
    (etc / "hosts").write_text(f"127.0.0.1 localhost\n{names}")


def _ends(hosts: Hosts, cable: Cable) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return namespace and device of both ends of a cable."""
    device = "eth0" if cable.a in hosts.names else cable.b
    return (hosts.namespace(cable.a), device), (hosts.namespace(cable.b), cable.a)


def _lay_plain(hosts: Hosts, cable: Cable) -> None:
    (one, device), (other, port) = _ends(hosts, cable)
    run_ip("link", "add", device, "netns", one, "type", "veth", "peer", "name", port, "netns", other)


@contextmanager
def _lay_long(hosts: Hosts, cables: Sequence[Cable]) -> Iterator[None]:
    """Connect long cables. A process delays the frames of these cables."""
    program = hosts.folder / "cables"
    subprocess.run(["cc", "-O2", "-o", program, Path(__file__).with_name("cables.c")], check=True)
    words = [word for cable in cables for end in _ends(hosts, cable) for word in end]
    # For each cable, cables.c expects namespace and device of both ends, and the delay.
    lines = [[*words[4 * row : 4 * row + 4], str(cable.microseconds)] for row, cable in enumerate(cables)]
    line = [str(program), *(word for each in lines for word in each)]
    # The process ends when its input is closed, even if this process is killed.
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        try:
            if process.stdout.readline().strip() != "ready":
                raise LabError("cables could not be laid: is there no /dev/net/tun?")
            yield
        finally:
            process.stdin.close()


def _connect(hosts: Hosts, cable: Cable) -> None:
    for node, (namespace, device) in zip(cable[:2], _ends(hosts, cable), strict=True):
        if node in hosts.names:
            run_ip("-n", namespace, "addr", "add", f"{hosts.address(node)}/24", "dev", device)
        else:
            run_ip("-n", namespace, "link", "set", device, "master", "br0")
        run_ip("-n", namespace, "link", "set", device, "up")
        if cable.mbit:
            limit = ["rate", f"{cable.mbit}mbit", "burst", str(_BURST_BYTES), "latency", f"{_QUEUE_MS}ms"]
            subprocess.run(["tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "tbf", *limit], check=True)


def _write_agent(hosts: Hosts) -> None:
    cases = "\n".join(
        f"{hosts.address(host)} | {host}) name={host} namespace={hosts.namespace(host)} ;;" for host in hosts.names
    )
    folder = shlex.quote(str(hosts.folder))
    hosts.agent.write_text(f"""#!/bin/sh
while true; do case $1 in -*) shift ;; *) break ;; esac; done
case $1 in
{cases}
*) exit 255 ;;
esac
shift
exec ip netns exec $namespace env -i HOME={folder}/$name PATH={REMOTE_PATH} TMPDIR={folder}/$name \\
    unshare --uts sh -c "hostname $name; $*"
""")
    hosts.agent.chmod(0o755)


@contextmanager
def up(plan: Plan | int, folder: Path) -> Iterator[Hosts]:
    """Start hosts, and remove them at the end.

    Args:
        plan: plan of the network. A number N stands for N hosts on one switch.
        folder: an empty folder.

    Raises:
        LabError: this machine cannot build a cluster.
    """
    check_machine()
    take_down_leftovers()
    plan = one_switch(plan) if isinstance(plan, int) else plan
    hosts = Hosts(plan.hosts, folder, plan)
    with ExitStack() as stack:
        for node in (*plan.switches, *plan.hosts):
            stack.callback(take_down, hosts.namespace(node))
            _add_node(hosts, node)
        for cable in plan.cables:
            if not cable.microseconds:
                _lay_plain(hosts, cable)
        if long := [cable for cable in plan.cables if cable.microseconds]:
            stack.enter_context(_lay_long(hosts, long))
        for cable in plan.cables:
            _connect(hosts, cable)
        _write_agent(hosts)
        yield hosts


# -- taking down


def namespaces() -> set[str]:
    """Return the names of all network namespaces of this machine."""
    return {line.split()[0] for line in run_ip("netns", "list").splitlines() if line.strip()}


def take_down(namespace: str) -> None:
    if namespace in namespaces():
        for number in run_ip("netns", "pids", namespace).split():
            with suppress(ProcessLookupError):
                os.kill(int(number), signal.SIGKILL)  # a rank that outlived its launcher
        run_ip("netns", "del", namespace)
    shutil.rmtree(_NETNS / namespace, ignore_errors=True)


def take_down_leftovers() -> list[str]:
    """Remove the namespaces of ended processes; return the names of these namespaces."""
    left = []
    for name in sorted(namespaces() | {each.name for each in _NETNS.glob("ibprof-*")}):
        match = _NAMESPACE.fullmatch(name)
        if match and not Path("/proc", match.group(1)).exists():
            take_down(name)
            left.append(name)
    return left
