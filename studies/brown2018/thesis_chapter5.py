# SPDX-License-Identifier: Apache-2.0
"""Compare each claim of chapter 5 of the thesis with the results."""

from __future__ import annotations

from collections.abc import Callable

from thesis_io_claims import (
    alone,
    at_2_ms,
    grows_before,
    largest,
    nothing_small,
    past_threshold,
    small_io,
    stays_above,
    threshold,
)
from thesis_mpi_claims import (
    congests_itself,
    elevated,
    falling,
    heavy_tails,
    io_over_mpi,
    percentile,
    small_mpi,
    still_slowed,
)
from thesis_results import KB, MB, Verdict
from thesis_routing_claims import routing_base, routing_congested, routing_free, routing_threshold
from thesis_scaling_claims import (
    large_least,
    large_like_congested,
    most_of_all,
    shares_alike,
    shares_io,
    shares_mpi,
    shares_size,
    small_job_least,
    small_most,
)

CLAIMS: list[tuple[str, str, str, Callable[[], Verdict]]] = [
    ("5.3", "I/O-congestion threshold, 4 MB", "between 5 and 1 ms", lambda: threshold(4 * MB, 5000.0, 1000.0)),
    ("5.3", "I/O-congestion threshold, 512 KB", "between 500 and 100 µs", lambda: threshold(512 * KB, 500.0, 100.0)),
    ("5.3", "I/O-congestion threshold, 4 KB", "none", lambda: threshold(4 * KB, None, None)),
    ("5.3 A, 5.5 A", "slow-down of 4 KB I/O next to 4 KB MPI, and of 4 KB MPI next to 4 KB I/O", "no variation",
     nothing_small),
    ("5.3 C", "time of 4 KB I/O alone at 1 µs", "3.07 µs", alone),
    ("5.3 C", "slow-down of 4 KB I/O at 1 µs next to 4 MB MPI at 100 µs", "1.9 times (5.9 µs)", small_io),
    ("5.3", "largest slow-down of I/O", "1.9 times, in chart C", lambda: largest("io", 1.9)),
    ("5.3 B, C, E, F, I", "slow-down of I/O at intervals above its threshold, as the MPI interval falls", "grows",
     grows_before),
    ("5.3 I", "slow-down of 4 MB I/O, at intervals below its threshold, next to 4 MB MPI", "no impact", past_threshold),
    ("5.4", "slow-down of 4 MB I/O at 2 ms next to 4 MB MPI", "little or no increase", at_2_ms),
    ("5.4", "time of 4 MB I/O: alone at intervals below its threshold; next to MPI at intervals above it",
     "the former is higher", stays_above),
    ("5.5 C", "slow-down of 4 KB MPI at 500 µs next to 4 MB I/O at 100 µs", "7.6 times", small_mpi),
    ("5.5", "largest slow-down of MPI", "7.6 times, in chart C", lambda: largest("mpi", 7.6)),
    ("5.5 B to I", "slow-down of MPI next to I/O", "some elevation in each chart", elevated),
    ("5.5 D to I", "time of 512 KB and of 4 MB MPI alone, at the shortest interval compared with the longest",
     "visibly longer", congests_itself),
    ("5.5 C", "slow-down of 4 KB MPI next to 4 MB I/O at 100 µs, as the MPI interval falls", "falls", falling),
    ("5.5 I", "75th percentile of 4 MB MPI alone at 5 and 1 ms", "351 and 630 µs", percentile),
    ("5.5 I", "slow-down of 4 MB MPI at 500 and 100 µs next to 4 MB I/O at 100 µs", "still slowed", still_slowed),
    ("5.3 C, 5.5 C", "mean / median of a message's time next to the other job, for I/O and for MPI", "far above 1",
     heavy_tails),
    ("5.3, 5.5", "time of I/O alone, compared with MPI alone, for 512 KB at 500 µs and for 4 MB at 5 ms", "higher",
     io_over_mpi),
    ("5.8", "time of 512 KB I/O alone with adaptive routing, compared with static routing", "higher",
     lambda: routing_base("io")),
    ("5.9", "time of 512 KB MPI alone with adaptive routing, compared with static routing", "higher",
     lambda: routing_base("mpi")),
    ("5.8", "slow-down of I/O, with adaptive routing, at I/O intervals above the threshold", "none",
     lambda: routing_free("io")),
    ("5.9", "slow-down of MPI, with adaptive routing, at I/O intervals above the threshold", "none",
     lambda: routing_free("mpi")),
    ("5.8", "threshold of 512 KB I/O alone, with adaptive routing", "remains", routing_threshold),
    ("5.8", "time of 512 KB I/O at intervals below its threshold with adaptive routing, compared with static routing",
     "similar",
     lambda: routing_congested("io")),
    ("5.9", "time of 512 KB MPI next to 512 KB I/O at intervals below its threshold with adaptive routing, compared "
     "with static routing",
     "similar",
     lambda: routing_congested("mpi")),
    ("5.10", "time of 4 MB I/O alone at 2 ms, with 25 : 50 : 75% of the hosts", "1 : 1.8 : 3", shares_io),
    ("5.10", "time of 4 MB I/O alone, with 75% of the hosts at 2 ms, and with 50% at 100 µs", "the same",
     large_like_congested),
    ("5.10", "slow-down of I/O with 25, 50 and 75% of the hosts", "75% suffers least", large_least),
    ("5.10", "slow-down of 4 MB I/O with 25% of the hosts at 128 ms, next to 4 MB MPI", "1.18 times", small_most),
    ("5.10", "largest slow-down of I/O", "25% at 128 ms", most_of_all),
    ("5.11", "slow-down of MPI with 75% of the hosts, next to a checkpoint", "1.6 to 3.2 times", shares_mpi),
    ("5.11", "slow-down of MPI with 25, 50 and 75% of the hosts, at each size", "25% suffers least", small_job_least),
    ("5.11", "slow-down of 4 KB and 1 MB MPI with 25, 50 and 75% of the hosts", "small sizes suffer most", shares_size),
    ("5.11", "time of MPI alone with 25, 50 and 75% of the hosts", "hardly differs; slightly for 1 MB", shares_alike),
]  # fmt: skip
