# SPDX-License-Identifier: Apache-2.0
"""Names that users type: input formats, sources of routes, policies, rankings.

Argument parsers and --help need only this module, so it imports no slow modules such as numpy.
"""

from __future__ import annotations

from ibprof.errors import UsageError, quote_found

FABRIC_FORMS = """\
LST may also be a synthetic fabric, with GBPS of each link (100 if left out):
  xgft:H:M1,..,MH:W1,..,WH[:P1,..,PH][@GBPS]   a fat-tree XGFT(h; m; w), with p parallel cables; routed d-mod-k
  tree:K,N[@GBPS]                              a k-ary n-tree, routed d-mod-k
  torus:XxYx..:HOSTS[@GBPS]                    HOSTS on each switch; dimension-order routes
  codes:LEAVES,RADIX[@GBPS]                    the simulator CODES' fat-tree of three levels; routed d-mod-k
  dragonfly:A,P,H[,GROUPS][@GBPS]              A switches per group; P hosts, H global cables per switch; minimal routes
  scalable-unit:UNITS[:KEY=N..][@GBPS]         units of 32 GPU hosts and 8 rails, one leaf per rail; d-mod-k. KEY: hosts
                                               (total; a unit has radix / 2), rails, radix (64), planes
  rail-optimised:HOSTS[:KEY=N..][@GBPS]        the same, but each rail is a subnet. KEY: rails, radix, planes
"""

TRAFFIC_FORMS = """\
TRAFFIC is one of
  profile.otf2, profile.ibprof      a profile or a recording of a run
  FILE.csv                          src_lid,dst_lid,bytes[,rail]: bytes from LID to LID; rails count from 0
                                    guid,port,bytes: bytes that ports sent, by NODE GUID; needs no routing
                                    src,dst,bytes,messages: a rank matrix of `ibprof matrix`; needs --placement
  FOLDER, or FOLDER/*.log           files of NCCL Inspector, one per process: collectives as modelled rings
  port counters                     output of perfquery -x -l -a, ibqueryerrors --counters, or ibdiagnet's .db_csv
  pattern:all-to-all[:BYTES]        BYTES per pair (1 if left out) between the adapters of all hosts, with --nic or
                                    --placement between the hosts; also shift:DISTANCE,
                                    permutation:SEED, bisect:SEED, 2dnn:SEED, 2dnndiag:SEED, 3dnn:SEED,
                                    3dnndiag:SEED, random50:SEED, randn50:SEED, each with [:BYTES]
  pattern:NAME[+NAME..]:SIZES       one step of a training job: nccl-ring or nccl-tree, pipeline, moe-alltoall, with
                                    SIZES as tp=8,pp=4,dp=16,ep=8[,KEY=VALUE..]: gpus=8 ranks per host, hidden=12288,
                                    layers=96, seq=2048, vocab=51200, micro=1, batches=4*pp, experts=ep, topk=2,
                                    chunks=1, sp=1, etp=tp, dtype=bf16, grad=fp32, order=tp-ep-dp-pp
"""

PATTERN_PREFIX = "pattern:"

PLACEMENT_FORMS = (
    "packed, spread, random:SEED, slurm:node[01-04,7], or a file: CSV with the columns rank,host or rank,lid, "
    "an Open MPI rank file or hostfile, a PBS node file, a Slurm host list or topology, a script of --torchrun"
)

TABLES = "tables"
"""Source of routes: forwarding tables in a file, or of a synthetic fabric."""

MODELLED = "modelled"
OPENSM = "opensm"

MIN_HOP = "min-hop"
D_MOD_K = "d-mod-k"
MODELS = (D_MOD_K, MIN_HOP)

ENGINES = ("minhop", "updn", "dnup", "ftree", "dor", "lash", "sssp", "dfsssp", "nue")
"""OpenSM's routing engines that need no additional file."""

ROUTE_CHOICES = f"{TABLES}, {MODELLED}[:{'|'.join(MODELS)}] or {OPENSM}[:ENGINE]"
"""Sources of routes: tables, a model, or OpenSM on this machine."""

RAIL_POLICIES = ("split", "round-robin", "first", "second")
"""Policies for bytes without a measured rail; the first policy is the default. See `adapter_policies`."""

NIC_POLICIES = ("rank", "near", "spread", "first")
"""Policies that choose a rank's adapter in one subnet, if no adapter was measured. See `adapter_policies`."""

COMPUTE = "compute"
STORAGE = "storage"
ALL_INTERFACES = "all"

RANKINGS = ("time", "bytes")
"""Sort keys of link directions; the first is the default. See `link_loads`."""


def parse_routes(text: str) -> str:
    """Check and return a source of routes, one of `ROUTE_CHOICES`.

    Raises:
        UsageError: the name is unknown.
    """
    kind, _, detail = text.partition(":")
    known = {TABLES: ("",), MODELLED: ("", *MODELS), OPENSM: ("", *ENGINES)}
    if kind not in known or detail not in known[kind] or text.endswith(":"):
        raise UsageError(
            f"expected {ROUTE_CHOICES}, where ENGINE is one of {', '.join(ENGINES)}; found {quote_found(text)}"
        )
    return text


SEARCH_SECONDS = 10.0
"""Search time, in seconds, for at most 1,024 ranks; with more ranks, the time is proportional to the number."""

BALANCED = "balanced"
"""Rule for forwarding tables: destinations are distributed evenly over links. `--routes` does not have this value."""
