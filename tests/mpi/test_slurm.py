# SPDX-License-Identifier: Apache-2.0
"""On a real Slurm with two nodes, srun or a launcher that uses srun starts jobs. A job has a file on each node."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof.recording.folder_runs import list_runs
from ibprof_converter.cli.place import PlacementFiles, host_per_rank, write_placement
from ibprof_testing.lab import slurm
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.mpi.mpis import Build, Mpi, environment, library
from ibprof_testing.mpi.patterns import ring

NODES = 2
RANKS = 2 * NODES
SENT = 1500  # bytes that a rank of programs/copied.c sends to the next rank, with the argument `end`
STARTS = {
    "srun, Open MPI by PMIx": (mpis.SYSTEM, ["srun", "--mpi=pmix"]),
    "srun, MPICH by PMI-2": (mpis.MPICH_SYSTEM, ["srun", "--mpi=pmi2"]),
    "salloc, Open MPI 4": (mpis.SYSTEM, ["{folder}/mpirun", "--oversubscribe"]),
    "salloc, Open MPI 5": (mpis.FROM_PYPI[-1], ["{folder}/mpirun", "--map-by", "ppr:2:node"]),
    "salloc, MPICH's Hydra": (mpis.MPICH_FROM_PYPI[-1], ["{folder}/mpiexec.hydra"]),
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm.Cluster]:
    with slurm.up(NODES, tmp_path_factory.mktemp("slurm")) as up:
        yield up


def find(name: str) -> Mpi:
    return mpis.find_mpi(name) if name in mpis.NAMES else mpis.find_mpich_like(name)


def check_one_job(cluster: slurm.Cluster, output: Path, files: int = NODES) -> None:
    profile = load_complete(output, RANKS)
    assert sorted(host.name for host in profile.hosts) == list(cluster.nodes)
    assert {pair: size for pair, (size, _) in recorded(profile, operation="SENDRECV").items()} == dict.fromkeys(
        ring(RANKS), SENT
    )
    assert len(list(output.iterdir())) == files


@pytest.mark.parametrize("start", STARTS)
def test_ibprof_run(start: str, cluster: slurm.Cluster, build: Build, tmp_path: Path) -> None:
    name, words = STARTS[start]
    mpi = find(name)
    line: list[str | Path] = [word.format(folder=mpi.folder) for word in words]
    command = [sys.executable, "-m", "ibprof", "run", "--", *line, "-n", str(RANKS), build(mpi, "copied.c"), "end"]
    places = ["--nodes", str(NODES), "--ntasks-per-node", str(RANKS // NODES)]
    done = cluster.run(["salloc", *places, *command], environment(mpis.THROUGH_NETWORK), tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert f"{RANKS} of {RANKS} ranks on {NODES} hosts" in done.stderr
    check_one_job(cluster, tmp_path / "profile.ibprof")


def test_bare_preload(cluster: slurm.Cluster, build: Build, tmp_path: Path) -> None:
    """Two steps of an allocation are two runs."""
    mpi = find(mpis.MPICH_SYSTEM)
    step = f"srun --mpi=pmi2 {build(mpi, 'copied.c')} end"
    places = [f"--nodes={NODES}", f"--ntasks={RANKS}"]
    variables = {"LD_PRELOAD": str(library()), "IBPROF_OUTPUT": str(tmp_path / "rec")}
    settings = [f"{name}={value}" for name, value in {**mpis.THROUGH_NETWORK, **variables}.items()]
    line = ["salloc", "--quiet", *places, "env", *settings, "sh", "-c", f"{step} && {step}"]
    done = cluster.run(line, environment(), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    check_one_job(cluster, tmp_path / "rec", files=2 * NODES)
    runs = list_runs(tmp_path / "rec")
    assert [run.ranks for run in runs] == [RANKS] * 2
    job, _, step_id = runs[0].name.partition(".")
    assert [run.name for run in runs] == [f"{job}.{step_id}", f"{job}.{int(step_id) + 1}"]


def test_parts_with_an_environment_of_their_own(cluster: slurm.Cluster, build: Build, tmp_path: Path) -> None:
    """`srun --export=NONE ... : --export=...`: each part of a job has its own variables."""
    mpi = find(mpis.MPICH_SYSTEM)
    half = ["--mpi=pmi2", "--nodes=1", f"--ntasks={RANKS // 2}"]
    program = [str(build(mpi, "copied.c")), "end"]
    through_network = ",".join(f"{name}={value}" for name, value in mpis.THROUGH_NETWORK.items())
    parts = [*half, f"--export={through_network}", *program, ":", *half, f"--export={through_network},A=1", *program]
    line = [sys.executable, "-m", "ibprof", "run", "--", "srun", *parts]
    done = cluster.run(line, environment(), tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    check_one_job(cluster, tmp_path / "profile.ibprof")


def test_each_step_of_a_batch_job_has_a_profile(cluster: slurm.Cluster, build: Build, tmp_path: Path) -> None:
    """Each step, and each mpirun in a task of an array, has a profile, with or without patterns in the file name."""
    program, other = (build(find(name), "copied.c") for name in (mpis.MPICH_SYSTEM, mpis.SYSTEM))
    run, mpirun = f"{sys.executable} -m ibprof run", f"{find(mpis.SYSTEM).folder}/mpirun --oversubscribe -n 2"
    step = f"srun --mpi=pmi2 -n2 {program} end"
    script = tmp_path / "twice"
    script.write_text(f"#!/bin/sh\n{mpirun} {other} end\n{mpirun} {other} end\n")
    script.chmod(0o755)
    alone, twice = f"{run} -- {mpirun} {other} end", f"{run} -- {script}"
    lines = [f"{run} -- {step}", f"{run} -o r-%A_%a.%s-%h -- {step}", alone, twice]
    (tmp_path / "job.sh").write_text("\n".join(["#!/bin/sh", *lines, ""]))
    places = ["--wait", "--array=3", "--nodes=1", "--ntasks=2", "--job-name=odd name; %j", "--output=said"]
    done = cluster.run(["sbatch", *places, "job.sh"], environment(mpis.THROUGH_NETWORK), tmp_path)
    said = (tmp_path / "said").read_text()
    assert done.returncode == 0, said
    found = {str(path.relative_to(tmp_path)): load_profile(path) for path in tmp_path.rglob("*.otf2")}
    (task,) = {profile.scheduler.job_label for profile in found.values()}
    node = cluster.nodes[0]
    names = [f"profile-{task}.0", f"r-{task}.1-{node}/profile-{task}.1", f"profile-{task}"]
    names += [f"{names[-1]}-2", f"{names[-1]}-3"]
    assert sorted(found) == sorted(f"{name}.otf2" for name in names)
    assert f"profile-{task}.otf2 exists already, so the new profile is profile-{task}-3.otf2" in said
    assert f"another run of 2 rank(s): profile-{task}-2.otf2" in said
    for profile in found.values():
        job = profile.scheduler
        assert (job.array_task, job.user, job.partition, job.cluster, job.nodes, job.name) == (
            *("3", "root", "all", "ibprof", node, "odd name; %j"),
        )


def test_options_for_sbatch_put_ranks_where_a_placement_says(cluster: slurm.Cluster, tmp_path: Path) -> None:
    one, other = cluster.nodes
    wanted = (other, one, one, one)
    write_placement(PlacementFiles(for_sbatch=tmp_path / "next"), wanted, leaves=1)
    (tmp_path / "job.sh").write_text("#!/bin/sh\nsrun sh -c 'echo \"$SLURM_PROCID $(hostname)\"'\n")
    line = ["sh", "-c", "exec sbatch --wait --output=said $(cat next) job.sh"]
    done = cluster.run(line, environment(), tmp_path)
    assert done.returncode == 0, (tmp_path / "said").read_text()
    said = sorted((tmp_path / "said").read_text().splitlines())
    assert said == [f"{rank} {host}" for rank, host in enumerate(wanted)]


def test_arbitrary_distribution_puts_ranks_where_a_placement_says(cluster: slurm.Cluster, tmp_path: Path) -> None:
    one, other = cluster.nodes
    wanted = (other, one, one, other)
    hosts = tmp_path / "slurm"
    hosts.write_text(host_per_rank(wanted))
    said = ["sh", "-c", 'echo "$SLURM_PROCID $(hostname)"']
    step = ["env", f"SLURM_HOSTFILE={hosts}", "srun", "--distribution=arbitrary", "--ntasks=4", *said]
    done = cluster.run(["salloc", "--quiet", "--nodes=2", "--ntasks=4", *step], environment(), tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"{rank} {host}" for rank, host in enumerate(wanted)]
