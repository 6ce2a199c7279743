# SPDX-License-Identifier: Apache-2.0
"""Measure delays in a cluster of network namespaces, infer the network, and compare it with the built network.

Run this module as root, in a checkout, with the Python in which ibprof is installed:

    python -m ibprof_testing.lab.cluster try tree              # or line, faulty, star
    python -m ibprof_testing.lab.cluster try tree --plug node3:leaf4      # with a wrong cable; or --slow A:B:US
    python -m ibprof_testing.lab.cluster run tree -- ibprof-topology throughput --help
    python -m ibprof_testing.lab.cluster show tree             # print DOT for `ibprof-topology compare`
    python -m ibprof_testing.lab.cluster down                  # remove the remains of a killed run

`try` ends with status 1 when the networks differ.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx as nx

from ibprof_testing import processes
from ibprof_testing.lab import hosts as lab
from ibprof_testing.lab.plans import PLANS, Plan
from ibprof_testing.machine import MissingError

PROGRAM = "ibprof_testing.lab.cluster"
SCRIPTS = Path(sysconfig.get_path("scripts"))
MPIRUN = "/usr/bin/mpirun"

_ROUNDS = 5
"""Maximum number of repeated measurements of doubtful pairs."""

_NOISY = 0.05
"""If measured delays deviate from the inferred network by more than this fraction, all pairs are measured again."""


class Cluster:
    """Run commands on running hosts.

    Args:
        hosts: the cluster's hosts.
        folder: working folder of the commands.
        mpirun: path of Open MPI 4's mpirun.
    """

    def __init__(self, hosts: lab.Hosts, folder: Path, mpirun: str | Path = MPIRUN) -> None:
        self.hosts, self.folder, self.mpirun = hosts, folder, str(mpirun)
        self.environment = os.environ | {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PATH": f"{SCRIPTS}:{os.environ['PATH']}",
        }

    def launch(self, *command: str | Path, timeout: float = 300, **parameters: str | int) -> str:
        """Run a command with one rank on each host; return its output.

        Raises:
            RuntimeError: the command failed. The error message contains the command's output.
        """
        # Idle ranks yield, because there are more ranks than processors.
        chosen: dict[str, str | int] = {"pml": "ob1", "btl": "tcp,self", "mpi_yield_when_idle": 1, **parameters}
        line = [self.mpirun, "-n", str(len(self.hosts.names)), *self.hosts.over_tcp(1, **chosen), "--bind-to", "none"]
        first = self.hosts.names[0]
        # High priority: delays by other processes would look like effects of the network.
        words = [*line, "nice", "-n", "-15", *command]
        return _check(self.hosts.run(first, words, self.environment, self.folder, timeout))

    def call(self, name: str, *arguments: str | Path) -> str:
        """Run one of ibprof's commands on this machine; return its output."""
        line = [str(SCRIPTS / name), *map(str, arguments)]
        return _check(processes.run(line, cwd=self.folder, timeout=300))

    def infer(self) -> dict[str, Any]:
        """Measure delays, infer the network, and repeat the measurement of doubtful pairs.

        Return the last inferred network, and write delays.nc, topology.json and topology.lst.
        """
        self._measure()
        for _ in range(_ROUNDS):
            document = self.look()
            if document["noise"] > _NOISY:
                # No network explains these delays, so all pairs are doubtful.
                pairs = "".join(f"{one},{other}\n" for one, other in combinations(self.hosts.names, 2))
                (self.folder / "again.csv").write_text(pairs)
            elif not document["again"]:
                return document
            self._measure("--pairs", "again.csv", "--resume")
        return self.look()

    def _measure(self, *options: str) -> None:
        chosen = ("--schedule", "sequential", "--repetitions", "31", *options)
        self.launch(SCRIPTS / "ibprof-latency", "measure", *chosen, "-o", "delays.nc")

    def look(self) -> dict[str, Any]:
        """Infer the network from the measured delays, and write topology.json, topology.lst and again.csv."""
        # Other work of the machine can only make a delay longer.
        options = ("--statistic", "minimum", "-o", "topology.json", "-o", "topology.lst", "--outliers", "again.csv")
        self.call("ibprof-topology", "infer", "delays.nc", *options)
        document: dict[str, Any] = json.loads((self.folder / "topology.json").read_text())
        document["again"] = (self.folder / "again.csv").read_text().splitlines()[1:]
        return document

    def compare(self, plan: Plan) -> str:
        """Compare the inferred network with a plan. Return the comparison as text, and write plan.dot."""
        (self.folder / "plan.dot").write_text(write_dot(plan))
        return self.call("ibprof-topology", "compare", "delays.nc", "plan.dot", "--statistic", "minimum")


def _check(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode:
        raise RuntimeError(f"{done.args}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def find_splits(document: dict[str, Any], first: str) -> set[frozenset[str]]:
    """Return the hosts beyond each edge of an inferred tree, seen from the host `first`.

    Edges with fewer than two hosts on a side are left out.
    """
    graph = nx.Graph((edge["a"], edge["b"]) for edge in document["edges"])
    hosts = set(document["hosts"])
    found = set()
    for edge in nx.bridges(graph):
        cut = graph.copy()
        cut.remove_edge(*edge)
        far = frozenset(hosts - nx.node_connected_component(cut, first))
        if 1 < len(far) < len(hosts) - 1:
            found.add(far)
    return found


def write_dot(plan: Plan) -> str:
    """Return the plan in DOT."""
    lines = ["graph plan {"]
    lines += [f"  {name} [shape=box];" for name in plan.switches]
    for cable in plan.cables:
        lines.append(f"  {cable.a} -- {cable.b} [gbps={cable.mbit / 1000:g}];")
    return "\n".join([*lines, "}", ""])


# -- the command


def _spoil(plan: Plan, arguments: argparse.Namespace) -> Plan:
    for one, other, microseconds in arguments.slow:
        plan = plan.slow(one, other, float(microseconds))
    for host, switch in arguments.plug:
        plan = plan.plug(host, switch)
    return plan


def _try(arguments: argparse.Namespace) -> int:
    lab.check_machine()
    plan = PLANS[arguments.plan]
    built = _spoil(plan, arguments)
    arguments.output.mkdir(parents=True, exist_ok=True)
    good = 0
    for run in range(arguments.runs):
        with tempfile.TemporaryDirectory() as folder, lab.up(built, Path(folder)) as hosts:
            cluster = Cluster(hosts, arguments.output.resolve(), arguments.mpirun)
            document = cluster.infer()
            said = cluster.compare(plan)
        same = find_splits(document, plan.hosts[0]) == built.splits()
        good += same
        print(said, end="")
        print(f"run {run + 1}: {'the network that was built' if same else 'ANOTHER network'}", flush=True)
    print(f"{good} of {arguments.runs} runs found what was built; {arguments.output} has the last one's files")
    return 0 if good == arguments.runs else 1


def _run(arguments: argparse.Namespace) -> int:
    built = _spoil(PLANS[arguments.plan], arguments)
    with tempfile.TemporaryDirectory() as folder, lab.up(built, Path(folder)) as hosts:
        print(Cluster(hosts, Path.cwd(), arguments.mpirun).launch(*arguments.words), end="")
    return 0


def _show(arguments: argparse.Namespace) -> int:
    print(write_dot(PLANS[arguments.plan]), end="")
    return 0


def _down(_: argparse.Namespace) -> int:
    lab.check_machine()
    for name in lab.take_down_leftovers():
        print(name)
    return 0


def _fields(count: int) -> Any:
    def split(text: str) -> list[str]:
        fields = text.split(":")
        if len(fields) != count:
            raise argparse.ArgumentTypeError(f"expected {count} fields with colons between, found {text!r}")
        return fields

    return split


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__, formatter_class=raw)
    commands = parser.add_subparsers(required=True)
    for name, run in (("try", _try), ("run", _run), ("show", _show), ("down", _down)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        if name != "down":
            command.add_argument("plan", choices=PLANS)
        if name in {"try", "run"}:
            command.add_argument("--slow", metavar="A:B:US", type=_fields(3), action="append", default=[])
            command.add_argument("--plug", metavar="HOST:SWITCH", type=_fields(2), action="append", default=[])
            command.add_argument("--mpirun", default=MPIRUN, help="mpirun of Open MPI 4 (default: %(default)s)")
        if name == "try":
            command.add_argument("--runs", type=int, default=1)
            command.add_argument("-o", "--output", metavar="FOLDER", type=Path, default=Path("lab-output"))
        if name == "run":
            command.add_argument("words", metavar="COMMAND", nargs="+")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. The built network is removed at the end, even after an interrupt."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arguments = _parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
    except (lab.LabError, MissingError, RuntimeError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1 if isinstance(error, RuntimeError) else 4
    return status


if __name__ == "__main__":
    sys.exit(main())
