# SPDX-License-Identifier: Apache-2.0
"""Traffic matrices of well-known algorithms, derived from the definitions of the algorithms.

The root is rank 0. Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations
in MPICH", 2005. `ompi/mca/coll/base` of Open MPI has the order of ranks in Open MPI's trees.
"""

from __future__ import annotations

from collections.abc import Iterable

from ibprof_testing.mpi.matrices import Matrix

Pairs = Iterable[tuple[int, int]]


def all_the_same(pairs: Pairs, size: int, messages: int = 1) -> Matrix:
    """Return a matrix: each pair sends `messages` messages of `size` bytes."""
    return dict.fromkeys(sorted(pairs), (size * messages, messages))


def from_root(ranks: int) -> Pairs:
    """Return the pairs of linear broadcast and scatter: the root sends to each other rank."""
    return [(0, rank) for rank in range(1, ranks)]


def to_root(ranks: int) -> Pairs:
    """Return the pairs of linear gather and reduce: each rank sends to the root."""
    return [(rank, 0) for rank in range(1, ranks)]


def chain(ranks: int) -> Pairs:
    """Return the pairs of a pipelined broadcast: each rank except the last sends to the next."""
    return [(rank, rank + 1) for rank in range(ranks - 1)]


def ring(ranks: int) -> Pairs:
    """Return the pairs of a ring: each rank sends to the next, and the last to the first."""
    return [(rank, (rank + 1) % ranks) for rank in range(ranks)]


def binomial_tree(ranks: int) -> Pairs:
    """Return the pairs of Open MPI's binomial broadcast: in round k, each rank below 2^k sends to the rank 2^k above.

    So the parent's rank is the child's rank without the highest bit.
    """
    return [(rank - (1 << rank.bit_length() - 1), rank) for rank in range(1, ranks)]


def binomial_tree_of_mpich(ranks: int) -> Pairs:
    """Return the pairs of MPICH's binomial broadcast: the parent's rank is the child's rank without the lowest bit."""
    return [(rank & (rank - 1), rank) for rank in range(1, ranks)]


def all_pairs(ranks: int) -> Pairs:
    """Return the pairs of linear and pairwise all-to-all: each rank sends to each other rank."""
    return [(sender, receiver) for sender in range(ranks) for receiver in range(ranks) if sender != receiver]


def hypercube(ranks: int) -> Pairs:
    """Return the pairs of recursive doubling: in round k, each rank sends to the rank that differs in bit k.

    Args:
        ranks: a power of two.
    """
    return [(rank, rank ^ 1 << bit) for rank in range(ranks) for bit in range(ranks.bit_length() - 1)]


def binomial_blocks(ranks: int) -> list[tuple[int, int, int]]:
    """Return (parent, child, blocks) of a binomial scatter: each child receives the blocks of its subtree.

    Args:
        ranks: a power of two.
    """
    return [(rank & (rank - 1), rank, rank & -rank) for rank in range(1, ranks)]


def dissemination(ranks: int) -> Pairs:
    """Return the pairs of a dissemination barrier: in round k, each rank sends to the rank 2^k above (modulo ranks)."""
    return [(rank, (rank + (1 << bit)) % ranks) for rank in range(ranks) for bit in range((ranks - 1).bit_length())]
