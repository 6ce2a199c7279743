# SPDX-License-Identifier: Apache-2.0
"""Help on the study file: an example, and all that it may hold."""

EXAMPLE = """\
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

WORDS = """\
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
