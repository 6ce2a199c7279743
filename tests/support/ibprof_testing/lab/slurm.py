# SPDX-License-Identifier: Apache-2.0
"""Run a Slurm cluster on this machine, with real daemons. Each node has its own host name and temporary folder.

The cluster needs root, slurmctld, slurmd, munge and the client's programs (Debian: slurm-client).
"""

from __future__ import annotations

import os
import shlex
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

from ibprof_testing import processes
from ibprof_testing.machine import find_program, require_root

PACKAGES = {
    "munged": "munge",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "srun": "slurm-client",
    "salloc": "slurm-client",
    "scontrol": "slurm-client",
    "unshare": "util-linux",
}
ACCOUNTING = {
    "slurmdbd": "slurmdbd",
    "sacct": "slurm-client",
    "sacctmgr": "slurm-client",
    "mariadbd": "mariadb-server-core",
    "mariadb-install-db": "mariadb-server-core",
    "my_print_defaults": "mariadb-client-core",  # mariadb-install-db calls it
}
SEARCH_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
PROCESSORS, MEMORY_MB = 4, 4000
"""Processors and memory that the configuration gives each node."""
READY_S = 60.0


class SlurmError(Exception):
    """The cluster did not start. The error message contains the reason."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster.

    Attributes:
        nodes: names of the nodes, which are also host names.
        folder: folder of the configuration, logs and temporary files.
    """

    nodes: tuple[str, ...]
    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        """Return the variables by which Slurm's programs find the cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": SEARCH_PATH}

    def run(
        self, command: Sequence[str | Path], environment: Mapping[str, str], cwd: Path, timeout: float = 120
    ) -> CompletedProcess[str]:
        """Run a command of the cluster, such as srun."""
        slurm = {"SLURM_CONF": self.variables["SLURM_CONF"]}
        return processes.run(command, env={**environment, **slurm}, cwd=cwd, timeout=timeout)


@contextmanager
def up(nodes: int, folder: Path, settings: Sequence[str] = (), *, with_accounts: bool = False) -> Iterator[Cluster]:
    """Start a cluster, and end all its processes when the block ends.

    Args:
        nodes: number of nodes.
        folder: a folder without files, except for files of the settings.
        settings: additional lines of slurm.conf.
        with_accounts: true to keep accounts of jobs for sacct.

    Raises:
        MissingError: this machine lacks a program, or the user is not root.
        SlurmError: the cluster did not start.
    """
    require_root("to give nodes host names")
    for program, package in (PACKAGES | (ACCOUNTING if with_accounts else {})).items():
        find_program(program, package=package, path=SEARCH_PATH)
    cluster = Cluster(tuple(f"node{number}" for number in range(1, nodes + 1)), folder)
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(nodes + 2)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        port, *ports = [each.getsockname()[1] for each in sockets]
        _configure(cluster, ports, [*settings, *(_configure_accounts(folder, port) if with_accounts else ())])
    (folder / "start").write_text(_start_script(cluster, with_accounts))
    # When the first process of a PID namespace ends, all processes of the namespace end, even in other sessions.
    line = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", str(folder / "start")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    with processes.start(line, env=environment | cluster.variables, cwd=folder):
        _wait(cluster)
        yield cluster


def _configure(cluster: Cluster, ports: Sequence[int], settings: Sequence[str]) -> None:
    folder = cluster.folder
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o400)
    (folder / "state").mkdir()
    nodes, further = "", "".join(f"{line}\n" for line in settings)
    for name, port in zip(cluster.nodes, ports[1:], strict=True):
        (folder / f"tmp-{name}").mkdir()
        nodes += f"NodeName={name} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={port}\n"
    (folder / "slurm.conf").write_text(f"""\
ClusterName=ibprof
SlurmctldHost={socket.gethostname()}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/spool-%n
StateSaveLocation={folder}/state
TmpFS={folder}/tmp-%n
AuthType=auth/munge
AuthInfo=socket={folder}/munge
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
SchedulerParameters=bf_interval=1
NodeName=DEFAULT CPUs={PROCESSORS} RealMemory={MEMORY_MB}
{further}{nodes}PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")


def _configure_accounts(folder: Path, port: int) -> Sequence[str]:
    """Write the configuration of slurmdbd, and return the lines that slurm.conf needs.

    To reach slurmdbd, programs use the munge socket in AccountingStoragePass, and ignore AuthInfo.
    """
    file = folder / "slurmdbd.conf"
    file.write_text(f"""\
AuthType=auth/munge
AuthInfo=socket={folder}/munge
DbdHost={socket.gethostname()}
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
""")
    file.chmod(0o600)
    return (
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageHost=127.0.0.1",
        f"AccountingStoragePort={port}",
        f"AccountingStoragePass={folder}/munge",
    )


_START_ACCOUNTS = """\
mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db --user=root \
    --datadir="$PWD/db" >install.log 2>&1
mariadbd --no-defaults --user=root --datadir="$PWD/db" --socket="$PWD/mysql" --skip-networking \
    --innodb-flush-log-at-trx-commit=0 --skip-innodb-doublewrite >mariadbd.log 2>&1 &
until [ -S mysql ]; do sleep 0.1; done
MYSQL_UNIX_PORT="$PWD/mysql" slurmdbd -D >slurmdbd.log 2>&1 &
until sacctmgr -n show cluster >/dev/null 2>&1; do sleep 0.2; done
"""


def _start_script(cluster: Cluster, with_accounts: bool) -> str:
    place = shlex.quote(str(cluster.folder))
    files = " ".join(
        f"--{option} {place}/{name}"
        for option, name in (
            ("key-file", "key"),
            ("socket", "munge"),
            ("pid-file", "munged.pid"),
            ("log-file", "munged.log"),
            ("seed-file", "munged.seed"),
        )
    )
    lines = [
        f"munged --force {files}",
        *([_START_ACCOUNTS] if with_accounts else []),
        "slurmctld -D >slurmctld.log 2>&1 &",
    ]
    for name in cluster.nodes:
        inner = f"hostname {name}; TMPDIR={place}/tmp-{name} exec slurmd -D -N {name} >{name}.log 2>&1"
        lines.append(f"unshare --uts sh -c {shlex.quote(inner)} &")
    return "\n".join([f"cd {place} || exit", *lines, "wait\n"])


def _wait(cluster: Cluster) -> None:
    """Wait until all nodes are free."""
    until = time.monotonic() + READY_S
    environment = {**os.environ, **cluster.variables}
    said = ""
    while time.monotonic() < until:
        done = processes.run(["sinfo", "--noheader", "--Node", "--format=%T"], env=environment, timeout=READY_S)
        said = done.stdout + done.stderr
        if done.stdout.split() == ["idle"] * len(cluster.nodes):
            return
        time.sleep(0.1)
    logs = "".join(path.read_text()[-1000:] for path in sorted(cluster.folder.glob("*.log")))
    raise SlurmError(f"Slurm's nodes are not free after {READY_S:.0f} s: {said}{logs}")
