# SPDX-License-Identifier: Apache-2.0
"""The conformance matrix: checks of each MPI, for each language and kind of call.

Each cell of the matrix is one run of a program with known traffic. This traffic comes from the program's own records,
or from the definition of the MPI's algorithm. docs/conformance.md shows the matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ibprof.profile.profile_data import Profile
from ibprof_testing.mpi import mpis, patterns
from ibprof_testing.mpi.matrices import Matrix, add_up, load_complete, read_tally, recorded
from ibprof_testing.mpi.mpis import Mpi, run_mpi
from ibprof_testing.mpi.patterns import all_the_same

RANKS = 4
BYTES = 9600
BLOCK_BYTES = 800  # size of a block in programs/exchange.py and in the Fortran programs


@dataclass(frozen=True, slots=True)
class Target:
    """An MPI and the layer that carries its messages.

    Attributes:
        name: name of the MPI in `mpis`.
        layer: name in docs/conformance.md of the layer that carries messages.
        source: name in a profile of the source that counts these messages.
        variables: the ranks' environment variables that choose the layer.
        quick: true if the short form of the tests has this target.
    """

    name: str
    layer: str
    source: str
    variables: Mapping[str, str]
    quick: bool = False

    @property
    def label(self) -> str:
        """Return the name of the MPI and layer for the page and the tests."""
        return f"{TITLES[self.name]}, {self.layer}"


TITLES = {
    mpis.SYSTEM: "Open MPI 4.1.4 (Debian)",
    "4.1.8": "Open MPI 4.1.8 (PyPI)",
    "5.0.11": "Open MPI 5.0.11 (PyPI)",
    mpis.MPICH_SYSTEM: "MPICH 4.0.2 (Debian)",
    "mpich-4.3.2": "MPICH 4.3.2 (PyPI)",
    "mpich-5.0.2": "MPICH 5.0.2 (PyPI)",
    mpis.STANDARD_ABI: "MPICH 5.0.2, standard ABI (PyPI)",
    mpis.INTEL: "Intel MPI 2021.18 (PyPI)",
}

CM = "pml cm (libfabric)"
LARGE_COUNTS = "calls for large counts"
SESSION, PARTITIONED = "a session without MPI_Init", "partitioned point-to-point"
_BY_UCX = {"OMPI_MCA_pml": "ucx", "OMPI_MCA_pml_ucx_tls": "any", "OMPI_MCA_pml_ucx_devices": "any"}
_BY_CM = {"OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": "ofi", "OMPI_MCA_mtl_ofi_provider_include": "tcp"}
_OFI = mpis.THROUGH_NETWORK | {"MPIR_CVAR_CH4_NETMOD": "ofi"}
_UCX = mpis.THROUGH_NETWORK | {"MPIR_CVAR_CH4_NETMOD": "ucx"}

_OLD_WORDS = {"MPIR_CVAR_BARRIER_INTRA_ALGORITHM": "dissemination"}  # the name in MPICH 4.0

TARGETS = (
    Target(mpis.SYSTEM, "ob1", "OPENMPI", {}, quick=True),
    Target(mpis.SYSTEM, "pml ucx", "OPENMPI", _BY_UCX),
    Target(mpis.SYSTEM, CM, "OPENMPI", _BY_CM),
    Target("4.1.8", "ob1", "OPENMPI", {}),
    Target("5.0.11", "ob1", "OPENMPI", {}),
    Target(mpis.MPICH_SYSTEM, "UCX", "UCX", mpis.THROUGH_NETWORK | _OLD_WORDS, quick=True),
    Target("mpich-4.3.2", "UCX", "UCX", _UCX),
    Target("mpich-4.3.2", "libfabric", "LIBFABRIC", _OFI, quick=True),
    Target("mpich-5.0.2", "UCX", "UCX", _UCX),
    Target("mpich-5.0.2", "libfabric", "LIBFABRIC", _OFI),
    Target(mpis.STANDARD_ABI, "UCX", "UCX", _UCX, quick=True),
    Target(mpis.INTEL, "libfabric", "LIBFABRIC", mpis.THROUGH_NETWORK, quick=True),
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of call, with its program and expected traffic.

    Attributes:
        title: name of the kind on the page.
        program: a file of programs/, and its arguments.
        expect: returns the expected traffic of each operation; None if the program writes its own records.
    """

    title: str
    language: str
    program: tuple[str, ...]
    expect: Callable[[Target], dict[str, Matrix]] | None = None


def _tree(target: Target) -> patterns.Pairs:
    of_mpich = target.name in mpis.MPICH_LIKE
    return patterns.binomial_tree_of_mpich(RANKS) if of_mpich else patterns.binomial_tree(RANKS)


def _exchange(target: Target) -> dict[str, Matrix]:
    return {
        "BCAST": all_the_same(_tree(target), BLOCK_BYTES),
        "ALLTOALL": all_the_same(patterns.all_pairs(RANKS), BLOCK_BYTES),
        "ALLREDUCE": all_the_same(patterns.hypercube(RANKS), 8),
        "SEND": all_the_same(patterns.ring(RANKS), BLOCK_BYTES),
    }


def _agreed(target: Target) -> dict[str, Matrix]:
    """Return the traffic of programs/agreed.c: one block for each rank.

    If the blocks of an operation differ in size, each rank's block is 8 bytes smaller than the previous rank's.
    """
    ring, tree = patterns.ring(RANKS), patterns.binomial_blocks(RANKS)
    uneven = [BYTES - 8 * rank for rank in range(RANKS)]
    return {
        "BCAST": all_the_same(_tree(target), BYTES),
        "GATHER": {(child, parent): (blocks * BYTES, 1) for parent, child, blocks in reversed(tree)},
        "GATHERV": {(rank, 0): (uneven[rank], 1) for rank in range(1, RANKS)},
        "SCATTER": {(parent, child): (blocks * BYTES, 1) for parent, child, blocks in tree},
        "SCATTERV": {(0, rank): (uneven[rank], 1) for rank in range(1, RANKS)},
        "ALLGATHER": all_the_same(ring, BYTES, RANKS - 1),
        "ALLGATHERV": {(rank, after): (sum(uneven) - uneven[after], RANKS - 1) for rank, after in ring},
        "ALLTOALL": all_the_same(patterns.all_pairs(RANKS), BYTES),
        "REDUCE": all_the_same(((child, parent) for parent, child, _ in tree), BYTES),
        "ALLREDUCE": all_the_same(patterns.hypercube(RANKS), BYTES),
        "REDUCE_SCATTER_BLOCK": {pair: ((pair[0] ^ pair[1]) * BYTES, 1) for pair in patterns.hypercube(RANKS)},
        "SCAN": all_the_same(patterns.hypercube(RANKS), BYTES),
        "EXSCAN": all_the_same(patterns.hypercube(RANKS), BYTES),
        "BARRIER": all_the_same(patterns.dissemination(RANKS), 0),
    }


def _threads(target: Target) -> dict[str, Matrix]:
    """Return the traffic of programs/threads.c: two threads call Ssend, two call Send, and one calls Bcast."""

    def ring(*sizes: int) -> Matrix:
        return add_up((*pair, 60 * size, 60) for pair in patterns.ring(RANKS) for size in sizes)

    return {"SSEND": ring(100, 102), "SEND": ring(101, 103), "BCAST": all_the_same(_tree(target), 50, 3)}


def _neighbours(target: Target) -> dict[str, Matrix]:
    """Return the traffic of programs/neighbours.c: four messages on each edge, in a ring and from rank 0 to others."""
    edges = [*patterns.ring(RANKS), *((0, rank) for rank in range(2, RANKS))]
    sent = add_up((*edge, 8 + 1024 * (1 + 16 + 200), 4) for edge in edges)
    return {f"NEIGHBOR_{call}": sent for call in ("ALLGATHER", "ALLGATHERV", "ALLTOALL", "ALLTOALLV", "ALLTOALLW")}


def _between_halves(target: Target) -> patterns.Pairs:
    lower, upper = range(RANKS // 2), range(RANKS // 2, RANKS)
    return [pair for low in lower for high in upper for pair in ((low, high), (high, low))]


def _large(target: Target) -> dict[str, Matrix]:
    ring = all_the_same(patterns.ring(RANKS), BYTES)
    collectives = {"BCAST": _tree(target), "ALLTOALL": patterns.all_pairs(RANKS)}
    return {"SEND": ring, "SENDRECV": ring} | {name: all_the_same(pairs, BYTES) for name, pairs in collectives.items()}


def _one(
    operation: str, pairs: Callable[[Target], patterns.Pairs], times: int = 1
) -> Callable[[Target], dict[str, Matrix]]:
    return lambda target: {operation: all_the_same(pairs(target), BYTES, times)}


KINDS = (
    Kind("point-to-point", "C", ("point_to_point.c", "1")),
    Kind("persistent point-to-point", "C", ("persistent.c", "4", "6")),
    Kind("one-sided", "C", ("onesided.c", "create")),
    Kind("one-sided, dynamic window", "C", ("onesided.c", "dynamic")),
    Kind("broadcast", "C", ("collectives.c", "blocking", "Bcast", str(BYTES)), _one("BCAST", _tree)),
    Kind("nonblocking broadcast", "C", ("collectives.c", "nonblocking", "Bcast", str(BYTES)), _one("IBCAST", _tree)),
    Kind(
        "persistent broadcast", "C", ("collectives.c", "persistent", "Bcast", str(BYTES)), _one("BCAST_INIT", _tree, 2)
    ),
    Kind(
        "all-to-all",
        "C",
        ("collectives.c", "blocking", "Alltoall", str(BYTES)),
        _one("ALLTOALL", lambda _: patterns.all_pairs(RANKS)),
    ),
    Kind("collectives by the same algorithms", "C", ("agreed.c", str(BYTES)), _agreed),
    Kind(
        "nonblocking collectives that overlap",
        "C",
        ("overlap_known.c", str(BYTES)),
        lambda target: {
            "IBCAST": all_the_same(_tree(target), 3 * BYTES),
            "BCAST": all_the_same(_tree(target), 2 * BYTES),
        },
    ),
    Kind(
        SESSION,
        "C",
        ("session.c", str(BYTES)),
        lambda target: {
            "BCAST": all_the_same(_tree(target), BYTES),
            "SENDRECV": all_the_same(patterns.ring(RANKS), BYTES),
        },
    ),
    Kind(
        PARTITIONED,
        "C",
        ("partitioned.c", str(BYTES)),
        _one("PSEND_INIT", lambda _: patterns.ring(RANKS), 2),
    ),
    Kind("threads that send at once", "C", ("threads.c", "60"), _threads),
    Kind("neighbourhood collectives", "C", ("neighbours.c", "blocking", "adjacent"), _neighbours),
    Kind("an intercommunicator", "C", ("between_groups.c", str(BYTES)), _one("SEND", _between_halves)),
    Kind(LARGE_COUNTS, "C", ("large_counts.c", str(BYTES)), _large),
    Kind("calls of all kinds", "Fortran 77", ("mpif_h.f",), _exchange),
    Kind("calls of all kinds", "Fortran 2008", ("use_mpi_f08.f90",), _exchange),
    Kind("calls of all kinds", "mpi4py", ("exchange.py",), _exchange),
)

FIXED = {
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
    "OMPI_MCA_coll_tuned_bcast_algorithm": "6",
    "OMPI_MCA_coll_tuned_bcast_algorithm_segmentsize": "0",
    "OMPI_MCA_coll_tuned_alltoall_algorithm": "2",
    "OMPI_MCA_coll_tuned_allreduce_algorithm": "3",
    "OMPI_MCA_coll_tuned_gather_algorithm": "2",
    "OMPI_MCA_coll_tuned_scatter_algorithm": "2",
    "OMPI_MCA_coll_tuned_allgather_algorithm": "4",
    "OMPI_MCA_coll_tuned_allgatherv_algorithm": "3",
    "OMPI_MCA_coll_tuned_reduce_algorithm": "5",
    "OMPI_MCA_coll_tuned_reduce_scatter_block_algorithm": "3",
    "OMPI_MCA_coll_tuned_scan_algorithm": "2",
    "OMPI_MCA_coll_tuned_exscan_algorithm": "2",
    "OMPI_MCA_coll_tuned_barrier_algorithm": "4",
    "OMPI_MCA_coll_libnbc_ibcast_algorithm": "2",
    "MPIR_CVAR_BCAST_INTRA_ALGORITHM": "binomial",
    "MPIR_CVAR_IBCAST_INTRA_ALGORITHM": "sched_binomial",
    "MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM": "pairwise",
    "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "recursive_doubling",
    "MPIR_CVAR_GATHER_INTRA_ALGORITHM": "binomial",
    "MPIR_CVAR_GATHERV_INTRA_ALGORITHM": "linear",
    "MPIR_CVAR_SCATTER_INTRA_ALGORITHM": "binomial",
    "MPIR_CVAR_SCATTERV_INTRA_ALGORITHM": "linear",
    "MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM": "ring",
    "MPIR_CVAR_ALLGATHERV_INTRA_ALGORITHM": "ring",
    "MPIR_CVAR_REDUCE_INTRA_ALGORITHM": "binomial",
    "MPIR_CVAR_REDUCE_SCATTER_BLOCK_INTRA_ALGORITHM": "recursive_halving",
    "MPIR_CVAR_SCAN_INTRA_ALGORITHM": "recursive_doubling",
    "MPIR_CVAR_EXSCAN_INTRA_ALGORITHM": "recursive_doubling",
    "MPIR_CVAR_BARRIER_INTRA_ALGORITHM": "k_dissemination",
    "I_MPI_ADJUST_BCAST": "1",
    "I_MPI_ADJUST_IBCAST": "1",
    "I_MPI_ADJUST_ALLTOALL": "3",
    "I_MPI_ADJUST_ALLREDUCE": "1",
    "I_MPI_ADJUST_GATHER": "1",
    "I_MPI_ADJUST_GATHERV": "1",
    "I_MPI_ADJUST_SCATTER": "1",
    "I_MPI_ADJUST_SCATTERV": "1",
    "I_MPI_ADJUST_ALLGATHER": "3",
    "I_MPI_ADJUST_ALLGATHERV": "3",
    "I_MPI_ADJUST_REDUCE": "2",
    "I_MPI_ADJUST_REDUCE_SCATTER_BLOCK": "1",
    "I_MPI_ADJUST_SCAN": "1",
    "I_MPI_ADJUST_EXSCAN": "1",
    "I_MPI_ADJUST_BARRIER": "1",
}
"""The settings of each MPI that select the algorithms."""


def has(target: Target, kind: Kind) -> bool:
    """Return whether the MPI supports the kind of call.

    Of PyPI's MPIs, only Intel MPI has Fortran, but no Fortran 2008 module for gfortran. Debian's MPIs and the standard
    ABI have no mpi4py. Open MPI 4 has no calls of MPI-4. Open MPI 5 has no large counts.

    The point-to-point program hangs in Open MPI 4.1.4 over libfabric's tcp provider, even without ibprof.
    """
    of_system = target.name in (mpis.SYSTEM, mpis.MPICH_SYSTEM)
    if kind.language == "Fortran 77" and target.name == mpis.INTEL:
        return True
    if kind.language.startswith("Fortran"):
        return of_system
    if kind.language == "mpi4py":
        return not of_system and target.name != mpis.STANDARD_ABI
    if kind.title in (SESSION, PARTITIONED):
        return target.name not in (mpis.SYSTEM, "4.1.8")
    if kind.title == LARGE_COUNTS:
        return target.name in mpis.MPICH_LIKE
    return not (target.layer == CM and kind.title == "point-to-point")


def find(target: Target) -> Mpi:
    """Return the MPI of a target."""
    return mpis.find_mpich_like(target.name) if target.name in mpis.MPICH_LIKE else mpis.find_mpi(target.name)


def record(target: Target, kind: Kind, build: mpis.Build, folder: Path) -> tuple[Profile, dict[str, Matrix]]:
    """Run a kind's program; return the recorded and the expected traffic."""
    mpi = find(target)
    source, *arguments = kind.program
    books = folder / "books"
    books.mkdir()
    program: list[str | Path] = (
        [build(mpi, source, "-pthread")] if not source.endswith(".py") else [mpi.python, mpis.PROGRAMS / source]
    )
    env = {**FIXED, **target.variables, "TALLY": str(books)}
    run_mpi(mpi, RANKS, [*program, *arguments], recording=folder / "recording", env=env)
    profile = load_complete(folder / "recording", RANKS)
    return profile, kind.expect(target) if kind.expect else _of_network(target, kind, read_tally(books))


def _of_network(target: Target, kind: Kind, books: dict[str, Matrix]) -> dict[str, Matrix]:
    """Leave out messages of a rank to itself, which use no network, unless the source is Open MPI's PML.

    One-sided calls of a rank to itself are kept, because ibprof counts them from their arguments.
    """
    if target.source == "OPENMPI" or kind.title.startswith("one-sided"):
        return books
    return {
        operation: {pair: amount for pair, amount in matrix.items() if pair[0] != pair[1]}
        for operation, matrix in books.items()
    }


def found(profile: Profile, expected: dict[str, Matrix]) -> dict[str, Matrix]:
    """Return the recorded traffic of the expected operations."""
    matrices = {operation: recorded(profile, operation=operation) for operation in expected}
    return matrices | {
        operation: _without_agreement(matrices[operation])
        for operation in ("GATHERV", "SCATTERV")
        if operation in matrices
    }


def _without_agreement(matrix: Matrix) -> Matrix:
    """Subtract the broadcast of 8 bytes that precedes Intel MPI's GATHERV and SCATTERV on some processors."""
    tree = patterns.binomial_tree_of_mpich(RANKS)
    if matrix.get((2, 3)) != (8, 1):
        return matrix
    rest = {pair: (size - 8 * (pair in tree), messages - (pair in tree)) for pair, (size, messages) in matrix.items()}
    return {pair: amount for pair, amount in rest.items() if amount != (0, 0)}


def render() -> str:
    """Return the page's list of programs, and the page's table of the programs that each MPI does not run."""
    lines = [f"{number}. {kind.language}: {kind.title}" for number, kind in enumerate(KINDS, 1)]
    lines += ["", "| MPI, layer | source | programs not run |", "|---|---|---|"]
    for target in TARGETS:
        missing = ", ".join(str(number) for number, kind in enumerate(KINDS, 1) if not has(target, kind))
        lines.append(f"| {target.label} | `{target.source.lower()}` | {missing} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(render(), end="")
