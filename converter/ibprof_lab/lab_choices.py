# SPDX-License-Identifier: Apache-2.0
"""Option values and defaults for --help. For a fast --help, this module imports no numpy."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

MICROSECOND = 1e-6

UNITS: dict[str, float | None] = {"auto": None, "s": 1.0, "ms": 1e-3, "us": MICROSECOND, "ns": 1e-9}
"""Unit of delays in a CSV or numpy matrix -> seconds per unit. None means: use the unit that the file states."""

NO_CLUSTER = 255
"""Cluster label of a pair that is in no cluster."""

ONE_TO_ONE, ASYNC, ALL_TO_ALL, BANDWIDTH = "one_to_one", "async", "all_to_all", "bandwidth"

MODES = (ONE_TO_ONE, ASYNC, ALL_TO_ALL, BANDWIDTH)
"""Message patterns of a pair of processes, with network_tests2's names."""

SCHEDULES = ("rounds", "sequential", "halving", "shift")
"""Rules that choose which pairs measure at the same time (see `measurement_plan`)."""

STATISTICS = ("median", "minimum", "lower_quartile", "upper_quartile", "mean", "deviation")
"""Statistics of a pair's samples for one message length; each is a member of `Delays`, in seconds."""

BY = ("delays", "correlations")
"""Quantity by which pairs are clustered: delays, or correlations of delays with peaks and steps (see `features`)."""

LEAST_CHANGE = 0.1
"""Default for the smallest relative difference of two delays that counts as a change."""

HOSTS, RANKS = "host", "rank"
"""Bytes that the scaling model counts: bytes between hosts, or bytes between ranks."""

BLOCK = 192
"""Default block size of HPL."""

STRONG, WEAK = "strong", "weak"
"""Kinds of scaling: constant problem size, or constant work per process."""


class JobPlacement(str, Enum):
    """Rules that choose the compute hosts of jobs."""

    RANDOM_NODE = "random-node"
    RANDOM_SWITCH = "random-switch"


class ServerPlacement(str, Enum):
    """Rules that choose the hosts of I/O servers."""

    ISOLATED = "isolated"
    SPREAD = "spread"
    RANDOM = "random"


RANGES: Mapping[str, tuple[float, float]] = {
    "packet_bytes": (1, 1 << 23),
    "lane_bytes": (1, 1 << 22),
    "switch_ns": (0, 1e9),
    "wire_ns": (0, 1e9),
    "nic_gap_ns": (0, 1e9),
    "gbps": (1e-3, 1e6),
    "tick_ns": (1e-3, 1e3),
    "message_step_bytes": (0, 1 << 31),
}
"""Smallest and largest value of each property of `Hardware`.

The limits prevent overflow: counters of queued bytes have 32 bits, and times in ticks have 64 bits."""

MOST_SEEDS = 1000

STUDY_EXAMPLE = """\
fabric: xgft:3:8,8,4:1,8,2:1,1,4@100   # or a LST
routes: tables                         # or modelled, opensm:ENGINE (default: tables, or else modelled)
routing: static                        # or adaptive
servers: 16                            # or node[01-16]
server_placement: isolated             # spread, random
job_placement: random-node             # random-switch
hardware: {packet_bytes: 4096, lane_bytes: 65536, switch_ns: 90}
effort: {messages: 20, background: 5}
seeds: 2
measured: mpi
jobs:
  - {name: io, role: io, bytes: 4 MiB, share: 0.5}
  - {name: mpi, role: pairs, bytes: 4 KiB, interval: 500 us, share: 0.5}
"""

STUDY_WORDS = """\
roles: io, pairs, ring, all-to-all, allgather, allreduce, bcast, barrier, profile,
  goal

further keys of a job:
  hosts: [n1, "n[3-9]"]  in place of share. For a profile: the run's number of hosts, in the order of their first ranks,
                         or "drawn" for random hosts (default: the recorded hosts, if the fabric has them)
  interval: 500 us       from a message's arrival, or a collective's end, to the next start (default: none)
  window: 2 ms           roles io and pairs: shortest time from one start to the next, a throttle
  jitter: 0.05           largest random change of interval and window, as a fraction (default: 0.05)
  limit: 1000            messages that each client sends before it ends (default: no limit)
  reads: 256 B           roles io, pairs and profile: size of a request; the other host answers with `bytes`
  goal: trace.goal       role goal: computing, sending and waiting of each rank (LogGOPSim's text format)
  profile: profile.otf2  role profile: a recorded run, with its recorded times or with an interval

further keys of hardware: wire_ns, nic_gap_ns (between packets of a host), tick_ns,
  gbps (of all links; default: as in the fabric), message_step_bytes (adaptive
  routing chooses per message, not packet, by occupied bytes in these steps)
further keys of effort: precision (0.05), warm_up (50), least_warm_up (50), hops (1e10);
  messages (200), background (50), steady (0; with 0.005, a run ends when the mean is known to 0.5%)
effort may also be a name: quick, survey, full

a study that varies something:
  vary:                                # axes: every combination is simulated
    - job_placement: [random-node, random-switch]
    - jobs: {mpi: {interval: [50 us, 500 us]}}
  cases:                               # each case is combined with each combination of vary
    - measured: [io, mpi]
  by: [job_placement, mpi_interval_us] # columns of means.csv that distinguish the slow-downs
  summary, quick                       # only included studies: a line of text; vary and cases of --quick

sizes: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB; times: 1 ns, 1 us, 1 ms, 1 s
files: paths from the study's folder, or else from the current folder
"""

HOSTS_PER_SERVER = 18
"""Default number of hosts per I/O server."""

DRAWN = "drawn"
"""Keyword in place of a recorded run's host names: choose hosts at random."""

METHODS = ("auto", "levels", "additive", "direct", "bufe", "bannikov-salnikov")
"""Methods of inference: `auto` is the best of the next three models; the last two methods are published."""

METHOD_STATISTICS = ("median", "minimum", "lower_quartile", "upper_quartile", "mean")
"""Statistics of a pair's samples that an inference can use as the pair's delay."""

POSITION_METHODS = ("fast", "paper")
GAMMA = 0.5
"""Methods that compute 3-D positions of vertices, and the default weight of the repulsion between vertices."""

NONE, MINIMUM, STORE_AND_FORWARD = "none", "minimum", "store-and-forward"
CORRECTIONS = (NONE, MINIMUM, STORE_AND_FORWARD)
"""Rules that subtract transfer times from delays (see `ibprof-topology regress`)."""

UNIQUE, SHORTEST = "unique", "shortest"
"""Treatment of pairs with several shortest paths: leave the pairs out, or use one of the paths."""

LEAST_DELAY = 0.1
"""A link is slow if its delay exceeds the expected delay by more than this fraction of the expected delay."""

LEAST_SPEED = 0.5
"""A link is slow if its throughput is below this fraction of the link's speed."""
