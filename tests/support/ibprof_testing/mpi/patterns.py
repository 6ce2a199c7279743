# SPDX-License-Identifier: Apache-2.0
"""Matrices of well-known algorithms, worked out from their definitions.

Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH", 2005, and
`ompi/mca/coll/base` of Open MPI for the order of ranks in its trees. The root is rank 0.
"""

from __future__ import annotations

from collections.abc import Iterable

from ibprof_testing.mpi.matrices import Matrix

Pairs = Iterable[tuple[int, int]]


def all_the_same(pairs: Pairs, size: int, messages: int = 1) -> Matrix:
    """Return the matrix of pairs with equal traffic: a number of messages of one size."""
    return dict.fromkeys(sorted(pairs), (size * messages, messages))


def from_root(ranks: int) -> Pairs:
    """Linear broadcast and scatter: the root to each other rank."""
    return [(0, rank) for rank in range(1, ranks)]


def to_root(ranks: int) -> Pairs:
    """Linear gather and reduce: each rank to the root."""
    return [(rank, 0) for rank in range(1, ranks)]


def chain(ranks: int) -> Pairs:
    """Pipeline broadcast: each rank to the next, but for the last one."""
    return [(rank, rank + 1) for rank in range(ranks - 1)]


def ring(ranks: int) -> Pairs:
    """Ring: each rank sends to the next, the last to the first."""
    return [(rank, (rank + 1) % ranks) for rank in range(ranks)]


def binomial_tree(ranks: int) -> Pairs:
    """Binomial broadcast: in round k ranks below 2^k each inform the rank 2^k above, so a parent lacks the top bit."""
    return [(rank - (1 << rank.bit_length() - 1), rank) for rank in range(1, ranks)]


def binomial_tree_of_mpich(ranks: int) -> Pairs:
    """Binomial broadcast in the order of MPICH, whose parents lack the lowest bit."""
    return [(rank & (rank - 1), rank) for rank in range(1, ranks)]


def all_pairs(ranks: int) -> Pairs:
    """Linear and pairwise all-to-all: each rank sends to each other rank, and copies its own block."""
    return [(sender, receiver) for sender in range(ranks) for receiver in range(ranks) if sender != receiver]


def hypercube(ranks: int) -> Pairs:
    """Recursive doubling, ranks a power of two: in round k with the rank that differs in bit k."""
    return [(rank, rank ^ 1 << bit) for rank in range(ranks) for bit in range(ranks.bit_length() - 1)]


def binomial_blocks(ranks: int) -> list[tuple[int, int, int]]:
    """Binomial scatter: (parent, child, blocks), a child getting those of its subtree; ranks a power of two."""
    return [(rank & (rank - 1), rank, rank & -rank) for rank in range(1, ranks)]


def dissemination(ranks: int) -> Pairs:
    """Dissemination barrier: in round k to the rank 2^k above, round."""
    return [(rank, (rank + (1 << bit)) % ranks) for rank in range(ranks) for bit in range((ranks - 1).bit_length())]
