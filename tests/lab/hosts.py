# SPDX-License-Identifier: Apache-2.0
"""A few hosts on one machine: network namespaces with a name, an address and a temporary folder of their own.

They hang on one switch (a bridge in a namespace of its own) and share the file system, as nodes of a cluster do. Open
MPI reaches them through `agent`, which takes the place of ssh: what it starts has an empty environment but for PATH and
TMPDIR, so that nothing gets to another host that was not sent there.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REMOTE_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
SUBNET = "10.77.0.0/24"


def _ip(*words: str | Path) -> str:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout


@dataclass(frozen=True, slots=True)
class Hosts:
    """Hosts that are up.

    Attributes:
        names: of the hosts, node1 first.
        folder: of the agent and the temporary folders.
    """

    names: tuple[str, ...]
    folder: Path

    def namespace(self, host: str) -> str:
        """The network namespace of a host."""
        return f"ibprof-{os.getpid()}-{host}"

    def address(self, host: str) -> str:
        """The IPv4 address of a host."""
        return f"10.77.0.{self.names.index(host) + 1}"

    @property
    def agent(self) -> Path:
        """What a launcher calls in place of ssh: `agent [OPTIONS] ADDRESS COMMAND`."""
        return self.folder / "agent"

    def run(
        self, host: str, command: Sequence[str | Path], environment: Mapping[str, str], cwd: Path, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command on a host, as one who is logged in there."""
        # The host's name is of the namespace, and so is gone with the command.
        line = ["ip", "netns", "exec", self.namespace(host), "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"']
        return subprocess.run(
            [*line, host, *command],
            capture_output=True,
            text=True,
            check=False,
            env={**environment, "TMPDIR": str(self.folder / host)},
            cwd=cwd,
            timeout=timeout,
        )

    def sent_bytes(self, host: str) -> int:
        """What a host has sent on its link, headers and all."""
        counter = "/sys/class/net/eth0/statistics/tx_bytes"
        return int(_ip("netns", "exec", self.namespace(host), "cat", counter))


def _connect(hosts: Hosts, host: str, switch: str) -> None:
    namespace = hosts.namespace(host)
    _ip("netns", "add", namespace)
    _ip("-n", namespace, "link", "set", "lo", "up")
    _ip("link", "add", "eth0", "netns", namespace, "type", "veth", "peer", "name", host, "netns", switch)
    _ip("-n", switch, "link", "set", host, "master", "br0", "up")
    _ip("-n", namespace, "addr", "add", f"{hosts.address(host)}/24", "dev", "eth0")
    _ip("-n", namespace, "link", "set", "eth0", "up")
    (hosts.folder / host).mkdir()
    # `ip netns exec` puts these files over those in /etc: hosts know one another by name.
    names = "".join(f"{hosts.address(each)} {each}\n" for each in hosts.names)
    etc = Path("/etc/netns", namespace)
    etc.mkdir(parents=True)
    (etc / "hosts").write_text(f"127.0.0.1 localhost\n{names}")


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
exec ip netns exec $namespace env -i PATH={REMOTE_PATH} TMPDIR={folder}/$name \\
    unshare --uts sh -c "hostname $name; $*"
""")
    hosts.agent.chmod(0o755)


@contextmanager
def up(number: int, folder: Path) -> Iterator[Hosts]:
    """Puts hosts up, and takes them down in the end.

    Args:
        folder: an empty one.
    """
    hosts = Hosts(tuple(f"node{index + 1}" for index in range(number)), folder)
    switch = hosts.namespace("switch")
    try:
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "br0", "type", "bridge", "forward_delay", "0")
        _ip("-n", switch, "link", "set", "br0", "up")
        for host in hosts.names:
            _connect(hosts, host, switch)
        _write_agent(hosts)
        yield hosts
    finally:
        there = _ip("netns", "list")
        for namespace in [switch, *map(hosts.namespace, hosts.names)]:
            if namespace in there:
                _ip("netns", "del", namespace)
            shutil.rmtree(f"/etc/netns/{namespace}", ignore_errors=True)
