# SPDX-License-Identifier: Apache-2.0
"""Compare placements of training jobs by `ibprof-place` with the block order of topograph and the tree order of Slurm.

All three programs place a job on the same free hosts, and the same code computes the loads. A real slurmctld, with
topology/tree and the fabric's topology.conf, chooses Slurm's hosts. Ranks are placed on these hosts in the order of
names, as by srun's block distribution (tried with Slurm 22.05). In these fabrics, the order of names is the order of
leaf switches.

Slurm 22.05 has no topology/block, so this program computes the block order. A block has the hosts of a leaf switch.
Blocks are in the order of the tree, and hosts in the order of names (NVIDIA/topograph, at e2b62507,
pkg/translate/topology.go). Each block size is twice the next smaller size (block.go, `getBlockSizes`). The job gets the
smallest group of blocks with enough free hosts. Of groups of equal size, the job gets the group with the fewest free
hosts. In the group, the job gets whole blocks where possible (Slurm's topology.conf, topology/block).

Run it as root from a checkout, with ibprof and Debian's slurmctld, slurmd, slurm-client and munge installed:
    python benchmarks/training_placement.py [--only NAME] [--time SECONDS] [--divide-groups]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ibprof.text.host_lists import expand_hosts, join_hosts
from ibprof_converter.analysis.pipeline_options import FabricOptions, no_progress
from ibprof_converter.analysis.pipeline_stages import read_subnets
from ibprof_converter.cli import layout
from ibprof_converter.placement.lower_bound import find_bounds
from ibprof_converter.placement.placement_problem import PlacementProblem, PlacementScore, SlotOfRank, find_neighbours
from ibprof_converter.placement.slots import RankSlots, assign_slots, hold_together, slots_on_hosts
from ibprof_converter.placement.starting_placements import starting_placements
from ibprof_converter.placement.swap_search import search
from ibprof_converter.placement.switch_paths import find_switch_paths
from ibprof_converter.traffic.hosts import Hosts, find_hosts
from ibprof_converter.traffic.training_jobs import TrainingJob, build_training, read_job
from ibprof_testing.lab import slurm
from ibprof_testing.mpi.mpis import environment

FABRICS = {
    "fat trees, 8 rails": ["xgft:2:8,8:1,4"] * 8,
    "rail-optimised": ["rail-optimised:64:radix=16"],
    "scalable units": ["scalable-unit:4:radix=32"],
    "two levels, 4:1": ["xgft:2:16,4:1,4"],
    "three levels, 4:1": ["xgft:3:4,4,4:1,2,2"],
    "pods, 8 rails, 7:1": ["xgft:3:4,7,3:1,4,1"] * 8,
}
"""Fabrics of 64 hosts; the last fabric has 84 hosts.

In `two levels` and `three levels`, the eight ranks of a host share an adapter. The last fabric's
oversubscription between pods is from Llama Team, "The Llama 3 Herd of Models", 2024, section 3.3.1.
"""

JOBS = {
    "dense, 2 stages": "nccl-ring+pipeline:tp=8,pp=2,dp=16",
    "dense, 4 stages": "nccl-ring+pipeline:tp=8,pp=4,dp=8",
    "dense, half a host": "nccl-ring+pipeline:tp=4,pp=4,dp=16",
    "trees, 2 stages": "nccl-tree+pipeline:tp=8,pp=2,dp=16",
    "trees, 40 replicas": "nccl-tree:tp=8,dp=40",
    "16 experts": "nccl-ring+pipeline+moe-alltoall:tp=8,pp=2,dp=16,ep=16",
    "8 experts": "nccl-ring+pipeline+moe-alltoall:tp=8,pp=4,dp=8,ep=8",
    "4 experts, 3 stages": "nccl-ring+pipeline+moe-alltoall:tp=8,pp=3,dp=12,ep=4",
}

FREE = {"shared": 0.7, "empty": 1.0}
"""Fraction of the hosts that are free; free hosts are chosen at random."""

_ALIKE = 1.01
"""No order of hosts helps if (time of the most loaded link) / (time of the most loaded host link) is below this."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--time", type=float, default=3.0, metavar="SECONDS", help="time of each search (default: 3)")
    parser.add_argument("--divide-groups", action="store_true", help="allow a tensor group on several hosts")
    parser.add_argument("--only", default="", metavar="NAME", help="run only fabrics whose names contain NAME")
    arguments = parser.parse_args()
    print("each cell has two times at line rate, in ms: most loaded link / most loaded link between switches")
    columns = (
        "fabric",
        "free",
        "job",
        "ibprof-place",
        "topograph, block",
        "Slurm, tree",
        "bound",
        "bound, whole groups",
    )
    print(f"| {' | '.join(columns)} | time / shorter other time | bound of this |")
    print("|" + "---|" * 10)
    found: dict[str, list[Compared]] = {name: [] for name in FREE}
    for name in FABRICS:
        if arguments.only.lower() in name.lower():
            for each in compare_on(name, arguments.time, arguments.divide_groups):
                found[each.free].append(each)
    for free, cases in found.items():
        every = [each.ratio for each in cases]
        others = [each.ratio for each in cases if each.is_open]
        whole = [each for each in cases if not each.splits]
        print(
            f"{free}: time / shorter other time: mean {np.mean(every):.3f}, largest {max(every):.3f}, ",
            end="",
        )
        print(f"{sum(ratio > 1 + 1e-9 for ratio in every)} above 1; ", end="")
        print(f"mean {np.mean(others):.3f} over {len(others)} cases in which hosts' links are not the limit")
        print(
            f"  lower bound if no tensor group is divided: mean {np.mean([each.least for each in cases]):.3f}; ",
            end="",
        )
        print(f"ibprof-place divides none in {len(whole)} of {len(cases)} cases, ", end="")
        print(f"and reaches the bound in {sum(each.ratio <= each.least * 1.001 for each in whole)}")


@dataclass(frozen=True, slots=True)
class Case:
    """A job on free hosts of a fabric.

    Attributes:
        hosts: the fabric's hosts.
        free: indices of the free hosts.
        needed: number of hosts of the job.
    """

    hosts: Hosts
    free: list[int]
    needed: int


@dataclass(frozen=True, slots=True)
class Compared:
    """Result of a case: (time of the most loaded link) / (the shorter of its times with topograph's and Slurm's order).

    Attributes:
        free: key of `FREE`.
        ratio: the quotient for the placement by `ibprof-place`.
        least: lower bound of the quotient over placements with each tensor group on one host.
        splits: whether `ibprof-place` divides a tensor group among hosts.
        is_open: false if links of hosts limit every placement (`_ALIKE`).
    """

    free: str
    ratio: float
    least: float
    splits: bool
    is_open: bool


def least_of_whole(problem: PlacementProblem, job: TrainingJob, block: SlotOfRank) -> float:
    """Return a lower bound of the time (s) of the most loaded host link, if each tensor group is on one host.

    A host with one group sends the bytes that leave the group, for any order of groups. For hosts with two groups, the
    bound assumes for each group the partner that leaves the fewest bytes to other hosts. At best, a host's
    adapters send equal numbers of bytes.

    Args:
        problem: the ranks to place.
        job: the job's sizes.
        block: any placement that keeps each tensor group on one host.
    """
    assert job.gpus in (job.tp, 2 * job.tp)
    if job.gpus == job.tp:
        return problem.host_seconds(problem.load(block))
    neighbours, groups = problem.neighbours, problem.ranks // job.tp
    owner, other = neighbours.owner().astype(np.int64) // job.tp, neighbours.rank.astype(np.int64) // job.tp
    sent = np.zeros((groups, groups))
    np.add.at(sent, (owner, other), neighbours.sent[:, 0].sum(axis=1).astype(float))
    np.fill_diagonal(sent, 0)
    out = sent.sum(axis=1)
    pair = out[:, np.newaxis] + out - sent - sent.T
    np.fill_diagonal(pair, np.inf)
    slots, paths = problem.slots, problem.paths
    adapters = np.unique(np.column_stack([slots.host_of_slot, slots.port_of_slot]), axis=0)[:, 0]
    links = int(np.bincount(adapters).max()) * len(paths.lid)
    return float(pair.min(axis=1).max()) / links * float(paths.seconds_per_byte[paths.between_switches : -1].min())


def splits_groups(slots: RankSlots, slot_of_rank: SlotOfRank, tp: int) -> bool:
    host = slots.host_of_slot[slot_of_rank].reshape(-1, tp)
    return bool((host != host[:, :1]).any())


def compare_on(fabric: str, seconds: float, divide_groups: bool) -> Iterator[Compared]:
    """Print a row for each job, and yield its result."""
    subnets = read_subnets(FabricOptions(tuple(FABRICS[fabric])), no_progress)
    hosts = find_hosts([subnet.fabric for subnet in subnets])
    with slurm_of(fabric, hosts) as cluster:
        for free, share in FREE.items():
            count = len(hosts.name)
            chosen = sorted(np.random.RandomState(1).permutation(count)[: int(share * count)].tolist())
            for job, text in JOBS.items():
                demand = build_training(f"pattern:{text}")
                sizes = read_job(f"pattern:{text}")
                gpus = sizes.gpus
                slots = assign_slots(hosts, dict.fromkeys(chosen, gpus), demand.ranks, whole=gpus)
                slots = slots if divide_groups else hold_together(slots, sizes.tp)
                rails = slots.rails_among(subnets)
                neighbours = find_neighbours(demand, "split", slots.rails, len(rails))
                problem = PlacementProblem(neighbours, slots, find_switch_paths(rails, slots.lid))
                case = Case(hosts, chosen, demand.ranks // gpus)
                given = [put_on(problem, slots, find(case), gpus) for find in (take_blocks, cluster.take_hosts)]
                others = [problem.score(each) for each in given]
                own = problem.host_seconds(problem.load(given[0]))
                starts = starting_placements(neighbours, slots, problem.paths, 1)
                # The amount of work ends the search, not the time, so that a busy machine finds the same placements.
                result = search(problem, list(starts.values()), 1, seconds, find_bounds(problem), patience=600)
                found = result.score
                bound = find_bounds(problem, found.bottleneck_seconds).bottleneck_seconds
                whole = max(least_of_whole(problem, sizes, given[0]), bound)
                best = min(others).bottleneck_seconds
                splits = splits_groups(slots, result.slot_of_rank, sizes.tp)
                cells = [
                    fabric,
                    free,
                    job,
                    *map(_cell, (found, *others)),
                    *(f"{each * 1e3:.4g}" for each in (bound, whole)),
                ]
                shares = f"{found.bottleneck_seconds / best:.3f}{', split' if splits else ''} | {whole / best:.3f}"
                print(f"| {' | '.join(cells)} | {shares} |", flush=True)
                yield Compared(free, found.bottleneck_seconds / best, whole / best, splits, best > own * _ALIKE)


def put_on(problem: PlacementProblem, slots: RankSlots, order: list[int], each: int) -> SlotOfRank:
    """Return the slot of each rank, with `each` successive ranks on each host of `order`."""
    slot_of_rank = slots_on_hosts(slots, np.repeat(np.array(order, np.int32), each)[: problem.ranks])
    assert slot_of_rank is not None
    return slot_of_rank


def take_blocks(case: Case) -> list[int]:
    """Return the hosts that a job gets by topograph's blocks, sorted by index."""
    blocks = [np.flatnonzero(case.hosts.leaf == leaf) for leaf in range(int(case.hosts.leaf.max()) + 1)]
    free = [[host for host in block.tolist() if host in set(case.free)] for block in blocks]
    size = 1
    while size < 2 * len(free):
        groups = [free[begin : begin + size] for begin in range(0, len(free), size)]
        fitting = [group for group in groups if sum(map(len, group)) >= case.needed]
        if fitting:
            group = min(fitting, key=lambda each: sum(map(len, each)))
            taken: list[list[int]] = []
            left = case.needed
            while left:
                unused = [block for block in group if block and block not in taken]
                holding = [block for block in unused if len(block) >= left]
                block = min(holding, key=len) if holding else max(unused, key=len)
                taken.append(block)
                left -= min(left, len(block))
            last = taken.pop()[: case.needed - sum(map(len, taken))]
            return sorted(host for block in [*taken, last] for host in block)
        size *= 2
    raise AssertionError("too few hosts are free")


@dataclass(frozen=True, slots=True)
class SlurmHosts:
    """A Slurm cluster with the hosts of a fabric. They run no jobs."""

    cluster: slurm.Cluster

    def take_hosts(self, case: Case) -> list[int]:
        """Return the hosts that slurmctld chooses for a job, sorted by index."""
        busy = [name for host, name in enumerate(case.hosts.name) if host not in set(case.free)]
        excluded = ",".join(filter(None, [self.cluster.nodes[0], join_hosts(busy) if busy else ""]))
        command = ["sbatch", "--test-only", f"--exclude={excluded}", f"--nodes={case.needed}", "--wrap=true"]
        done = self.cluster.run(command, environment(), self.cluster.folder)
        found = re.search(r"on nodes (\S+) in partition", done.stderr)
        assert found, done.stderr
        index = {name: host for host, name in enumerate(case.hosts.name)}
        return sorted(index[name] for name in expand_hosts(found[1]))


@contextlib.contextmanager
def slurm_of(fabric: str, hosts: Hosts) -> Iterator[SlurmHosts]:
    """Start a real slurmctld with the tree of a fabric. The nodes have the state CLOUD, so they need no slurmd."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = ["-o", str(folder / "links.csv"), "--topology-conf", str(folder / "topology.conf")]
        with contextlib.redirect_stderr(io.StringIO()):
            assert layout.main([FABRICS[fabric][0], "pattern:shift:1", *options]) == 0
        settings = ["TopologyPlugin=topology/tree", "SuspendTime=600"]
        settings += ["SuspendProgram=/bin/true", "ResumeProgram=/bin/true", "ResumeTimeout=3600"]
        settings += [f"NodeName={join_hosts(list(hosts.name))} CPUs=8 State=CLOUD"]
        with slurm.up(1, folder, settings) as cluster:
            yield SlurmHosts(cluster)


def _cell(score: PlacementScore) -> str:
    return f"{score.bottleneck_seconds * 1e3:.4g} / {score.max_seconds * 1e3:.4g}"


if __name__ == "__main__":
    main()
