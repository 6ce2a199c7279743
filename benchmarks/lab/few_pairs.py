# SPDX-License-Identifier: Apache-2.0
"""Measure delays of all pairs of hosts and of few pairs in network namespaces; compare inferred topologies and times.

python benchmarks/lab/few_pairs.py [--leaves 4,4,4,4] -o FOLDER    (as root)

--leaves lists the number of hosts of each leaf switch. One cable joins each leaf switch with the spine. `ibprof-latency
measure` measures all pairs; `ibprof-latency measure --few-pairs` then measures selected pairs. The program prints a row
for each measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

from ibprof_lab.latency.files.delay_files import read_delays
from ibprof_testing.lab import hosts as lab
from ibprof_testing.lab.cluster import SCRIPTS, Cluster, find_splits
from ibprof_testing.lab.plans import Cable, Plan, make_plan

OPTIONS = ("--schedule", "sequential", "--repetitions", "31")
KINDS = {"all pairs": (), "few pairs": ("--few-pairs",)}


def plan_cluster(leaves: list[int]) -> Plan:
    """Return the plan of a cluster: hosts on leaf switches, leaf switches on one spine."""
    names = {f"leaf{number}": count for number, count in enumerate(leaves, 1)}
    return make_plan(names, [Cable(name, "spine", 300, 400) for name in names])


def measure(cluster: Cluster, plan: Plan, kind: str) -> str:
    """Measure delays and infer the topology; return a row of the table."""
    name = kind.replace(" ", "-")
    file, answer = f"{name}.nc", f"{name}.json"
    cluster.launch(SCRIPTS / "ibprof-latency", "measure", *OPTIONS, *KINDS[kind], "-o", file)
    # Use the minimum, because other work on the machine can only make a delay longer.
    cluster.call("ibprof-topology", "infer", file, "--statistic", "minimum", "--accept-weak", "-o", answer)
    delays = read_delays(cluster.folder / file)
    measured = delays.measured[0]
    document = json.loads((cluster.folder / answer).read_text())
    same = find_splits(document, plan.hosts[0]) == plan.splits()
    pairs = int((measured | measured.T).sum()) // 2
    seconds = float(delays.attributes["elapsed_s"])
    return f"| {len(plan.hosts)} | {kind} | {pairs} | {seconds:.1f} | {'yes' if same else 'NO'} |"


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--leaves", default="4,4,4,4", help="number of hosts of each leaf switch (default: %(default)s)"
    )
    parser.add_argument("-o", "--output", metavar="FOLDER", type=Path, required=True)
    arguments = parser.parse_args()
    lab.check_machine()
    arguments.output.mkdir(parents=True, exist_ok=True)
    plan = plan_cluster([int(count) for count in arguments.leaves.split(",")])
    print(f"load {os.getloadavg()[0]:.0f}")
    print("| hosts | measured | pairs | s | the tree that was built |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, lab.up(plan, Path(folder)) as hosts:
        cluster = Cluster(hosts, arguments.output.resolve())
        for kind in KINDS:
            print(measure(cluster, plan, kind), flush=True)
    print(f"load {os.getloadavg()[0]:.0f}")


if __name__ == "__main__":
    main()
