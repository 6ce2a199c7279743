# SPDX-License-Identifier: Apache-2.0
"""Names of user choices, and default values that --help prints. For a fast --help, this module imports no numpy."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

MICROSECOND = 1e-6

UNITS: dict[str, float | None] = {"auto": None, "s": 1.0, "ms": 1e-3, "us": MICROSECOND, "ns": 1e-9}
"""Unit of delays in a CSV or numpy matrix -> seconds per unit; None to use the unit that the file states."""

NO_CLUSTER = 255
"""Cluster label of a pair that is in no cluster."""

ONE_TO_ONE, ASYNC, ALL_TO_ALL, BANDWIDTH = "one_to_one", "async", "all_to_all", "bandwidth"

MODES = (ONE_TO_ONE, ASYNC, ALL_TO_ALL, BANDWIDTH)
"""Message patterns between the two processes of a pair, with network_tests2's names."""

SCHEDULES = ("rounds", "sequential", "halving", "shift")
"""Schedules: the pairs that measure at the same time (see `measurement_plan`)."""

STATISTICS = ("median", "minimum", "lower_quartile", "upper_quartile", "mean", "deviation")
"""Statistics of the samples of a pair and length; each is a member of `Delays`, in seconds."""

BY = ("delays", "correlations")
"""Quantity by which pairs are clustered: delays, or the paper's correlations with peaks and steps."""

LEAST_CHANGE = 0.1
"""Smallest relative difference of two delays that counts as a change, by default."""

HOSTS, RANKS = "host", "rank"
"""Bytes that count as exchanged: bytes between hosts, or bytes between ranks."""

BLOCK = 192
"""Default block size of HPL."""

STRONG, WEAK = "strong", "weak"
"""Kinds of scaling: constant problem size, or constant work per process."""


class JobPlacement(str, Enum):
    """How the compute hosts of jobs are chosen."""

    RANDOM_NODE = "random-node"
    RANDOM_SWITCH = "random-switch"


class ServerPlacement(str, Enum):
    """Positions of I/O servers."""

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
"""By default, the fabric has one I/O server for this number of hosts."""

DRAWN = "drawn"
"""Keyword in place of the host names of a recorded run: its hosts are chosen at random."""

METHODS = ("auto", "levels", "additive", "direct", "bufe", "bannikov-salnikov")
"""Methods of inference: the best of three models (`auto`), one of the three models, or a published method."""

METHOD_STATISTICS = ("median", "minimum", "lower_quartile", "upper_quartile", "mean")
"""Statistics of the samples that an inference can use as delays."""

POSITION_METHODS = ("fast", "paper")
GAMMA = 0.5
"""Methods for 3-D positions of vertices; default weight of the repulsion between vertices."""

NONE, MINIMUM, STORE_AND_FORWARD = "none", "minimum", "store-and-forward"
CORRECTIONS = (NONE, MINIMUM, STORE_AND_FORWARD)
"""Corrections of delays for the transfer time: see `ibprof-topology regress`."""

UNIQUE, SHORTEST = "unique", "shortest"
"""Treatment of pairs with several shortest paths: leave the pairs out, or use one of the paths."""

LEAST_DELAY = 0.1
"""A link is slow if its delay exceeds the expected delay by more than this fraction."""

LEAST_SPEED = 0.5
"""A link is slow if its throughput is below this fraction of the link's speed."""
