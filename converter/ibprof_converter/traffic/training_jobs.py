# SPDX-License-Identifier: Apache-2.0
"""Model the traffic of one step of a training job, given as `pattern:NAME[+NAME..]:tp=8,pp=4,dp=16[,KEY=VALUE..]`.

Sources of the bytes:
    Shoeybi et al., "Megatron-LM", arXiv:1909.08053, 2019: two all-reduces of a layer's output forward, two backward.
    Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021:
        parameters (equation 2), pipeline stages (sections 2.2 and 4.1), GPT-3 as the default model (table 1).
    Korthikanti et al., "Reducing activation recomputation in large transformer models", arXiv:2205.05198, 2022,
        section 4.2.2: four all-gathers and four reduce-scatters replace these all-reduces.
    Lepikhin et al., "GShard", arXiv:2006.16668, 2020, and Rajbhandari et al., "DeepSpeed-MoE", arXiv:2201.05596, 2022:
        an all-to-all sends tokens to their two experts, a second all-to-all returns them.
    Huang et al., "GPipe", NeurIPS 2019: at least four micro-batches for each stage.
    NVIDIA, nccl-tests, doc/PERFORMANCE.md: bytes in rings; NCCL, src/graph/trees.cc: double binary trees.
    NVIDIA, Megatron-LM, megatron/core/parallel_state.py: the order of ranks, tp-cp-ep-dp-pp, also for experts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError, quote_found
from ibprof_converter.choices import PATTERN_PREFIX
from ibprof_converter.traffic.traffic_data import RANK_LIMIT, RankTraffic

TRAINING = ("nccl-ring", "nccl-tree", "moe-alltoall", "pipeline")
"""Names of the kinds of traffic; in a pattern, `+` joins several names."""

_NEEDED = dict(zip(TRAINING, ("tp, dp or ep", "tp, dp or ep", "ep", "pp"), strict=True))
"""Kind of traffic -> names of group sizes. Ranks send only if at least one of these sizes exceeds 1."""

_SIZES = ("tp", "pp", "dp", "ep", "etp")
_ORDER = "tp-ep-dp-pp"
_BYTES = {"fp8": 1, "bf16": 2, "fp16": 2, "fp32": 4}
_LIMIT = 1 << 40
"""Largest value of a key in a pattern. With any real model, a step has less than 2**63 bytes."""

_MOST_PAIRS = 1 << 26
"""Largest number of pairs of ranks: more pairs do not fit in memory, and no machine needs more."""

Groups = npt.NDArray[np.int64]
"""Ranks of each group, such as each tensor group: int64 [group, member]."""


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """Sizes of a training job. The defaults of the model are GPT-3's.

    Attributes:
        tp, pp, dp, ep: sizes of tensor, pipeline, data and expert groups.
        etp: size of experts' tensor groups (0: as `tp`).
        gpus: number of ranks on each host.
        hidden, layers, seq, vocab: the model's hidden size, layers, sequence length and vocabulary.
        micro: number of sequences in a micro-batch.
        batches: number of micro-batches in a step (0: four per stage).
        experts: number of experts in a layer (0: as `ep`, or no experts if `ep` is 1).
        topk: number of experts to which each token is sent.
        chunks: number of separate parts of the model in each stage (interleaved schedule).
        sp: 1 if activations are split within tensor groups (sequence parallelism), else 0.
        dtype, grad: number format of activations, and of gradients.
        order: names of the group sizes, joined by `-`; groups of the first name consist of consecutive ranks.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    etp: int = 0
    gpus: int = 8
    hidden: int = 12288
    layers: int = 96
    seq: int = 2048
    vocab: int = 51200
    micro: int = 1
    batches: int = 0
    experts: int = 0
    topk: int = 2
    chunks: int = 1
    sp: int = 1
    dtype: str = "bf16"
    grad: str = "fp32"
    order: str = _ORDER

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.tp * self.pp * self.dp

    @property
    def expert_tp(self) -> int:
        """Number of ranks that share an expert."""
        return self.etp or self.tp

    @property
    def expert_count(self) -> int:
        """Number of experts of a layer; 0 for a dense model."""
        return self.experts or (self.ep if self.ep > 1 else 0)

    @property
    def micro_batches(self) -> int:
        """Number of micro-batches of a step."""
        return self.batches or 4 * self.pp

    @property
    def activation(self) -> int:
        """Bytes of a layer's output for one micro-batch."""
        return self.micro * self.seq * self.hidden * _BYTES[self.dtype]

    def layers_of(self, stage: int) -> int:
        """Return the number of layers of a stage. The first stages may have one layer more than later stages."""
        return self.layers // self.pp + (stage < self.layers % self.pp)

    def groups(self, kind: str, of_experts: bool = False) -> Groups:
        """Return the groups of one kind: ranks that differ only in their coordinate of this kind.

        Args:
            kind: name of the size, as in `order`.
            of_experts: true for the grid of experts: sizes `etp`, `ep`, tp*dp / (etp*ep) for data, and `pp`.

        Source: Megatron-LM, `RankGenerator`.
        """
        if of_experts:
            shape = {"tp": self.expert_tp, "ep": self.ep, "pp": self.pp}
            shape["dp"] = self.tp * self.dp // (self.expert_tp * self.ep)
        else:
            shape = {"tp": self.tp, "ep": 1, "dp": self.dp, "pp": self.pp}
        names = self.order.split("-")[::-1]  # the slowest axis comes first
        numbers = np.arange(self.ranks).reshape([shape[name] for name in names])
        return np.moveaxis(numbers, names.index(kind), -1).reshape(-1, shape[kind])

    def stage_of(self) -> npt.NDArray[np.int64]:
        """Return the pipeline stage of each rank: int64 [rank]."""
        stage = np.zeros(self.ranks, np.int64)
        for number, ranks in enumerate(self.groups("pp").T):
            stage[ranks] = number
        return stage


def is_training(text: str) -> bool:
    """Return true if a text is a pattern of a training job."""
    name = text.removeprefix(PATTERN_PREFIX).partition(":")[0].lower()
    return text.startswith(PATTERN_PREFIX) and any(each in TRAINING for each in name.split("+"))


def ranks_a_host(text: str) -> int | None:
    """Return a training job's number of ranks per host; None for other traffic.

    Raises:
        UsageError: the text is no valid training job.
    """
    return read_job(text).gpus if is_training(text) else None


def note_training(text: str) -> tuple[str, ...]:
    """Return a note on a training job: its bytes are modelled from these sizes; empty for other traffic."""
    if not is_training(text):
        return ()
    job = read_job(text)
    stated = {each.name: getattr(job, each.name) for each in fields(job)}
    stated |= {"etp": job.expert_tp, "batches": job.micro_batches, "experts": job.expert_count}
    said = ", ".join(f"{name}={value}" for name, value in stated.items())
    return (f"modelled: published formulas give the bytes of one training step, with {said}",)


def tensor_group_size(text: str) -> int:
    """Return the size of tensor groups of consecutive ranks; 1 for other orders of ranks and for other traffic.

    Raises:
        UsageError: the text is no valid training job.
    """
    job = read_job(text) if is_training(text) else TrainingJob()
    return job.tp if job.order.startswith("tp") else 1


def note_divided(text: str, hosts: Sequence[str]) -> tuple[str, ...]:
    """Return a note if tensor groups span several hosts, although each group fits on one host; else empty.

    Args:
        text: name of the traffic.
        hosts: host of each rank.
    """
    if not is_training(text) or (job := read_job(text)).tp > job.gpus:
        return ()
    groups = job.groups("tp").tolist()
    divided = sum(len({hosts[rank] for rank in group}) > 1 for group in groups)
    if not divided:
        return ()
    return (
        f"{divided} of {len(groups)} tensor groups are on several hosts. The most loaded link carries less. "
        "But these groups lose the fast links between the GPUs of a host, which the times do not include",
    )


def read_job(text: str) -> TrainingJob:
    """Return the job that a pattern states.

    Raises:
        UsageError: a key or value is invalid, or the sizes contradict each other.
    """
    _, _, sizes = text.removeprefix(PATTERN_PREFIX).partition(":")
    known = {each.name: type(each.default) for each in fields(TrainingJob)}
    values: dict[str, int | str] = {}
    for part in filter(None, sizes.split(",")):
        name, _, value = part.strip().lower().partition("=")
        if name not in known:
            raise UsageError(f"{text}: expected KEY=VALUE with a key of {', '.join(known)}; found {quote_found(part)}")
        if name in values:
            raise UsageError(f"{text}: expected {name} once, found it again")
        if name == "order":
            value = value.replace("cp-", "").removesuffix("-cp")  # ignore context groups, whose size is always 1
        values[name] = value if known[name] is str else _read_size(text, name, value)
    job = TrainingJob(**values)  # type: ignore[arg-type]
    _check(text, job)
    return job


def _read_size(text: str, name: str, value: str) -> int:
    least = int(name in _SIZES or name in {"gpus", "hidden", "layers", "seq", "micro", "topk", "chunks"})
    most = 1 if name == "sp" else _LIMIT
    if not re.fullmatch(r"[0-9]{1,13}", value) or not least <= int(value) <= most:
        raise UsageError(f"{text}: expected {name}= with a number from {least} to {most}, found {quote_found(value)}")
    return int(value)


def _check(text: str, job: TrainingJob) -> None:
    for name in ("dtype", "grad"):
        if getattr(job, name) not in _BYTES:
            found = quote_found(getattr(job, name))
            raise UsageError(f"{text}: expected {name}= with one of {', '.join(_BYTES)}; found {found}")
    if sorted(job.order.split("-")) != sorted(_ORDER.split("-")):
        raise UsageError(f"{text}: expected order= with each of {_ORDER}, found {quote_found(job.order)}")
    if job.ranks > RANK_LIMIT:
        raise UsageError(f"{text}: expected at most {RANK_LIMIT} ranks, found {job.ranks}")
    pairs = job.ranks * (min(job.gpus, job.ranks) + (job.ep if "moe-alltoall" in text.lower() else 0))
    if pairs > _MOST_PAIRS:
        raise UsageError(
            f"{text}: expected ranks * (gpus + ep) of at most {_MOST_PAIRS}, found {pairs}; only moe-alltoall adds ep"
        )
    if job.tp * job.dp % (job.expert_tp * job.ep):
        raise UsageError(
            f"{text}: expected etp*ep that divides tp*dp = {job.tp * job.dp}, found {job.expert_tp * job.ep} "
            f"(etp={job.expert_tp}, ep={job.ep})"
        )
    if job.expert_count % job.ep:
        raise UsageError(f"{text}: expected experts= with a multiple of ep={job.ep}, found {job.experts}")
    if job.layers < job.pp * job.chunks:
        raise UsageError(
            f"{text}: expected layers= with at least pp*chunks = {job.pp * job.chunks}, found {job.layers}"
        )
    dense, experts = (job.groups("pp", of_experts=each) for each in (False, True))
    if not np.array_equal(dense[np.argsort(dense[:, 0])], experts[np.argsort(experts[:, 0])]):
        raise UsageError(f"{text}: expected order= with each expert on the stage of its layer, found {job.order}")


def build_training(text: str) -> RankTraffic:
    """Return the traffic of one training step between the ranks of a job.

    Args:
        text: `pattern:NAME[+NAME..]:KEY=VALUE,..` as given by the user.

    Raises:
        UsageError: a name is unknown, the text is no valid training job, no rank sends, or the sum of bytes is too
            large.
    """
    names = text.removeprefix(PATTERN_PREFIX).partition(":")[0].lower().split("+")
    if unknown := [each for each in names if each not in _PARTS]:
        raise UsageError(f"{text}: expected names of {', '.join(_PARTS)}, found {quote_found(unknown[0])}")
    if {"nccl-ring", "nccl-tree"} <= {*names}:
        raise UsageError(f"{text}: expected one of nccl-ring and nccl-tree, found both")
    job = read_job(text)
    flows = [flow for name in dict.fromkeys(names) for flow in _PARTS[name](job) if flow.bytes and len(flow.source)]
    total = sum(flow.bytes * len(flow.source) for flow in flows)
    if not flows:
        needed = ", ".join(f"{_NEEDED[name]} for {name}" for name in names)
        raise UsageError(f"{text}: no rank sends bytes; expected a size above 1: {needed}")
    if total >= 1 << 63:
        raise UsageError(f"{text}: expected bytes that sum to less than 2**63, found {total}")
    regions = tuple(dict.fromkeys(flow.region for flow in flows))
    operations = tuple(dict.fromkeys(flow.operation for flow in flows))
    lengths = [len(flow.source) for flow in flows]

    def column(values: list[int], dtype: type[np.generic]) -> npt.NDArray[Any]:
        return np.repeat(np.array(values, dtype), lengths)

    return RankTraffic(
        source=np.concatenate([flow.source for flow in flows]).astype(np.int32),
        destination=np.concatenate([flow.destination for flow in flows]).astype(np.int32),
        bytes=column([flow.bytes for flow in flows], np.uint64),
        messages=column([1] * len(flows), np.uint64),
        region=column([regions.index(flow.region) for flow in flows], np.int32),
        operation=column([operations.index(flow.operation) for flow in flows], np.int32),
        regions=regions,
        operations=operations,
        ranks=job.ranks,
        unmapped={},
        origin=text,
    )


@dataclass(frozen=True, slots=True)
class _Flow:
    """Pairs of ranks that send the same number of bytes.

    Attributes:
        region: kind of group, such as `tensor`.
        operation: name of the NCCL call.
        source, destination: int64 [pair], ranks.
        bytes: bytes of each pair.
    """

    region: str
    operation: str
    source: npt.NDArray[np.int64]
    destination: npt.NDArray[np.int64]
    bytes: int


Edges = tuple[list[int], list[int], int]
"""Source of each pair, destination of each pair, and bytes per pair."""


def ring_bytes(function: str, amount: int, ranks: int) -> int:
    """Return the bytes that a rank sends in a ring, as a mean over all ranks; 0 if the function is not modelled.

    Args:
        function: name of the collective in NCCL, without `nccl`.
        amount: bytes of the call; for AllGather and ReduceScatter, bytes of one rank's part.
    """
    if function == "AllReduce":
        return 2 * amount * (ranks - 1) // ranks
    if function in ("AllGather", "AllGatherV", "ReduceScatter"):
        return amount * (ranks - 1)
    # Broadcast and Reduce are chains: each rank except the last sends the data once.
    return amount * (ranks - 1) // ranks if function in ("Broadcast", "Reduce") else 0


def ring_edges(hosts: Sequence[Sequence[int]], amount: int) -> Iterator[Edges]:
    """Yield the rings of a communicator. With k ranks on each host there are k rings, each with 1/k of the bytes.

    Ring i enters each host at the host's rank i, and leaves at rank i - 1 (ring 0: at the last rank). NCCL builds these
    rings if each GPU has a near adapter.

    Args:
        hosts: the ranks of each host.
        amount: bytes that each rank sends, summed over all rings.
    """
    rings = min(map(len, hosts), default=0) if len(hosts) > 1 else 1
    for ring in range(rings):
        order = [rank for own in hosts for rank in (*own[ring:], *own[:ring])]
        # Round the cumulative sum, so that the shares of all rings sum to `amount`.
        yield order, [*order[1:], order[0]], amount * (ring + 1) // rings - amount * ring // rings


def tree_edges(hosts: Sequence[Sequence[int]], amount: int) -> Iterator[Edges]:
    """Yield the double binary trees of an all-reduce. Each tree carries half of the bytes, up and then down.

    The nodes of the trees are hosts. With k ranks on each host there are k channels, each with 1/k of the bytes. In
    channel i, rank i of each host is the first rank in a chain of the host's ranks, and sends to other hosts.

    Args:
        hosts: the ranks of each host.
        amount: bytes of the all-reduce.

    Source: NCCL, src/graph/trees.cc; Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast,
    reduction and scan", Parallel Computing 35(12), 2009.
    """
    channels = min(map(len, hosts), default=0)
    for channel in range(channels):
        share = amount * (channel + 1) // channels - amount * channel // channels
        order = [(*own[channel:], *own[:channel]) for own in hosts]
        down = [(one, other) for own in order for one, other in pairwise(own)]
        for tree in range(2):
            heads = [(order[up][0], order[host][0]) for host, up in enumerate(_parents(len(hosts), tree)) if up >= 0]
            pairs = [*down, *heads]
            half = share * (tree + 1) // 2 - share * tree // 2
            yield [one for pair in pairs for one in pair], [one for pair in pairs for one in pair[::-1]], half


def _parents(count: int, tree: int) -> list[int]:
    """Return the parent of each of `count` hosts in NCCL's tree 0 or 1; -1 for the root."""

    def parent(number: int) -> int:
        bit = number & -number
        up = (number ^ bit) | (bit << 1)
        return -1 if not number else (number ^ bit if up >= count else up)

    if tree == 0:
        return [parent(number) for number in range(count)]
    if count % 2:  # tree 1 is tree 0 with each host's number increased by 1
        ups = [parent((number - 1) % count) for number in range(count)]
        return [up if up < 0 else (up + 1) % count for up in ups]
    ups = [parent(count - 1 - number) for number in range(count)]
    return [up if up < 0 else count - 1 - up for up in ups]


def _collectives(job: TrainingJob, trees: bool) -> Iterator[_Flow]:
    """Yield the collectives of activations in tensor groups, and of gradients in data groups.

    If `trees` is true, all-reduces use trees.
    """
    stage = job.stage_of()
    part = job.activation // job.tp
    for ranks in job.groups("tp"):
        times = 4 * job.layers_of(int(stage[ranks[0]])) * job.micro_batches
        if job.sp:
            for function in ("AllGather", "ReduceScatter"):
                yield from _collective("tensor", function, job, ranks, times * part, trees=False)
        else:
            yield from _collective("tensor", "AllReduce", job, ranks, times * job.activation, trees)
    for ranks in job.groups("dp"):
        yield from _collective("data", "AllReduce", job, ranks, _gradients(job, int(stage[ranks[0]])), trees)
    for ranks in job.groups("dp", of_experts=True) if job.expert_count else ():
        amount = _expert_gradients(job, int(stage[ranks[0]]))
        yield from _collective("expert data", "AllReduce", job, ranks, amount, trees)


def _gradients(job: TrainingJob, stage: int) -> int:
    """Return the bytes of a rank's gradients without experts; the gradients of stage 0 include the embeddings.

    Source: Narayanan et al., equation 2: a layer has 12 h^2 + 13 h parameters. In a layer with experts, the experts
    replace 8 h^2 of these parameters.
    """
    layer = (4 if job.expert_count else 12) * job.hidden**2 + 13 * job.hidden
    embeddings = (job.vocab + job.seq) * job.hidden if stage == 0 else 0
    return (job.layers_of(stage) * layer + embeddings) * _BYTES[job.grad] // job.tp


def _expert_gradients(job: TrainingJob, stage: int) -> int:
    parameters = job.layers_of(stage) * 8 * job.hidden**2 * job.expert_count
    return parameters * _BYTES[job.grad] // (job.ep * job.expert_tp)


def _collective(
    region: str, function: str, job: TrainingJob, ranks: npt.NDArray[np.int64], amount: int, trees: bool
) -> Iterator[_Flow]:
    """Yield the flows of a collective between the ranks of a group; `amount` as in `ring_bytes`."""
    if len(ranks) < 2:
        return
    hosts: dict[int, list[int]] = {}
    for rank in ranks.tolist():
        hosts.setdefault(rank // job.gpus, []).append(rank)
    own = list(hosts.values())
    edges = tree_edges(own, amount) if trees else ring_edges(own, ring_bytes(function, amount, len(ranks)))
    for source, destination, size in edges:
        yield _Flow(region, f"nccl{function}", np.array(source), np.array(destination), size)


def _pipeline(job: TrainingJob) -> Iterator[_Flow]:
    """Yield the flows of activations to the next stage, and of their gradients back.

    With several chunks, the last stage also sends to the first stage. With sequence parallelism, each rank sends 1/tp
    of an activation. Source: Narayanan et al., sections 2.2 and 4.1.
    """
    stages = job.groups("pp").T
    amount = job.activation // (job.tp if job.sp else 1) * job.micro_batches
    for number in range(job.pp if job.pp > 1 else 0):
        one, other = stages[number], stages[(number + 1) % job.pp]
        times = job.chunks if number + 1 < job.pp else job.chunks - 1
        for source, destination in ((one, other), (other, one)):
            yield _Flow("pipeline", "ncclSend", source, destination, amount * times)


def _expert_exchange(job: TrainingJob) -> Iterator[_Flow]:
    """Yield the four all-to-alls of each layer with experts: to experts and back, in each of forward and backward pass.

    All experts get equally many tokens. A rank has 1/tp of the tokens of its micro-batch. If several ranks share an
    expert (`etp` above 1), the bytes that these ranks exchange to sum the output are left out.
    """
    groups = job.groups("ep", of_experts=True)
    stage = job.stage_of()[groups[:, 0]]
    for number in range(job.pp):
        here = groups[stage == number]
        amount = 4 * job.layers_of(number) * job.micro_batches * job.topk * job.activation // (job.tp * job.ep)
        for step in range(1, job.ep):
            yield _Flow("expert", "ncclSend", here.ravel(), np.roll(here, -step, axis=1).ravel(), amount)


_PARTS: dict[str, Callable[[TrainingJob], Iterator[_Flow]]] = dict(
    zip(
        TRAINING,
        (partial(_collectives, trees=False), partial(_collectives, trees=True), _expert_exchange, _pipeline),
        strict=True,
    )
)
