# SPDX-License-Identifier: Apache-2.0
"""Choices of a user of the laboratory, by the names that are typed, and defaults that help states.

Parsers and their help need these names alone, so this module imports nothing that reads a file or holds an array.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

MICROSECOND = 1e-6

UNITS: dict[str, float | None] = {"auto": None, "s": 1.0, "ms": 1e-3, "us": MICROSECOND, "ns": 1e-9}
"""Units that a CSV or numpy matrix may be in -> seconds."""

NO_CLUSTER = 255
"""Label of a pair that is in no cluster."""

ONE_TO_ONE, ASYNC, ALL_TO_ALL, BANDWIDTH = "one_to_one", "async", "all_to_all", "bandwidth"

MODES = (ONE_TO_ONE, ASYNC, ALL_TO_ALL, BANDWIDTH)
"""Messages of a pair that measures, as network_tests2 names them."""

SCHEDULES = ("rounds", "sequential", "halving", "shift")
"""Pairs that measure at the same time; see `measurement_plan`."""

STATISTICS = ("median", "minimum", "lower_quartile", "upper_quartile", "mean", "deviation")
"""Statistics of the samples of a pair and length; each is a field of `Delays`, seconds."""

BY = ("delays", "correlations")
"""Similarity of the pairs of a cluster: level and shape; or, as in the paper, only peaks and steps."""

LEAST_CHANGE = 0.1
"""Relative difference below which nothing is an outlier, however similar the rest is."""

HOSTS, RANKS = "hosts", "ranks"
"""Places between which exchanged bytes are counted."""

BLOCK = 192
"""Block size of HPL, unless another one is given."""

STRONG, WEAK = "strong", "weak"
"""Scaling of a problem of one size, and of as much work for each process."""


class JobPlacement(str, Enum):
    """Assignment of compute hosts to jobs."""

    RANDOM_NODE = "random-node"
    RANDOM_SWITCH = "random-switch"


class ServerPlacement(str, Enum):
    """Positions of I/O servers."""

    ISOLATED = "isolated"
    SPREAD = "spread"
    RANDOM = "random"


RANGES: Mapping[str, tuple[float, float]] = {
    "packet_bytes": (1, 1 << 23),
    "lane_bytes": (1, 1 << 23),
    "switch_ns": (0, 1e9),
    "wire_ns": (0, 1e9),
    "nic_gap_ns": (0, 1e9),
    "gbps": (1e-3, 1e6),
    "tick_ns": (1e-3, 1e3),
}
"""Smallest and largest value of each property of `Hardware`.

Bytes that lie at a link direction or wait for it, from all ports of a switch, are counted in 32 bits; ticks of a packet
in 64."""

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
  hosts: [n1, "n[3-9]"]  in place of share; for a profile as many as its run had, in the order of their first ranks.
                         Without it a profile stays on its recorded hosts, if the fabric has them; "drawn" samples them.
  interval: 500 us       from a message's arrival, or a collective's end, to the next start (default: none)
  window: 2 ms           of io and pairs: shortest time from start to start, a throttle
  jitter: 0.05           interval and window vary by up to this part (default: 0.05)
  limit: 1000            messages of each client, after which it ends
  reads: 256 B           of io, pairs and profile: the other host is sent a request of this size, and answers with bytes
  goal: trace.goal       of the role goal: what ranks compute, send and wait for (LogGOPSim's text format)
  profile: profile.otf2  of the role profile: a recorded run, by its time line or with an interval

further keys of hardware: wire_ns, nic_gap_ns (between packets of a host), tick_ns,
  gbps (of all links; default: as in the fabric)
further keys of effort: precision (0.05), warm_up (50), least_warm_up (50), hops (1e10);
  messages (200), background (50), steady (0; 0.005 ends in a steady state whose mean is known to 0.5%)
effort may also be a name: quick, survey, full

a study that varies something:
  vary:                                # axes: every combination is simulated
    - job_placement: [random-node, random-switch]
    - jobs: {mpi: {interval: [50 us, 500 us]}}
  cases:                               # with each combination
    - measured: [io, mpi]
  by: [job_placement, mpi_interval_us] # columns of means.csv that distinguish the slow-downs
  summary, quick                       # of presets: a line of text; vary and cases of --quick

sizes: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB; times: 1 ns, 1 us, 1 ms, 1 s
files: next to the study, or else in the current folder
"""

HOSTS_PER_SERVER = 18
"""Hosts of the fabric for each I/O server, where the number of servers is not given."""

DRAWN = "drawn"
"""In place of names: the hosts of a recorded run are sampled as those of other jobs, whatever the recording says."""

METHODS = ("auto", "levels", "additive", "direct", "bufe", "bannikov-salnikov")
"""Methods of inference: the best model, one of the three, or a published one."""

METHOD_STATISTICS = ("median", "minimum", "lower_quartile", "upper_quartile", "mean")
"""Statistics of repetitions that a topology is inferred from."""

POSITION_METHODS = ("fast", "paper")
GAMMA = 0.5
"""Positions in space: their methods, and how much hosts keep apart."""

NONE, MINIMUM, STORE_AND_FORWARD = "none", "minimum", "store-and-forward"
CORRECTIONS = (NONE, MINIMUM, STORE_AND_FORWARD)
"""Corrections of delays for the time of the bytes: see `ibprof-topology regress`."""

UNIQUE, SHORTEST = "unique", "shortest"
"""Pairs with several shortest paths are left out, or take one of them."""

LEAST_DELAY = 0.1
"""Least relative excess of a delay that blames a link."""

LEAST_SPEED = 0.5
"""Share of its speed that a link should reach."""
