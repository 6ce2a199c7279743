# SPDX-License-Identifier: Apache-2.0
"""A training job sends the bytes of its collectives. The tests execute the collectives in Megatron's groups."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from ibprof.errors import UsageError
from ibprof_converter.traffic.training_jobs import build_training, note_divided, read_job, ring_edges, tree_edges

SMALL = "hidden=16,layers=8,seq=6,vocab=10,micro=2,batches=3"


def sent(text: str, region: str | None = None) -> Counter[tuple[int, int]]:
    """Return the bytes of each pair of ranks; with a region, only the bytes in this region."""
    traffic = build_training(text)
    found: Counter[tuple[int, int]] = Counter()
    rows = zip(
        *(each.tolist() for each in (traffic.source, traffic.destination, traffic.bytes, traffic.region)), strict=True
    )
    for source, destination, amount, number in rows:
        if region in (None, traffic.regions[number]):
            found[source, destination] += amount
    return found


def carry_out_ring(order: list[int], amount: int) -> Counter[tuple[int, int]]:
    """Carry out an all-reduce on a ring of ranks by the textbook algorithm; return (sender, receiver) -> bytes."""
    ranks = len(order)
    data = {rank: [rank + 100 * chunk for chunk in range(ranks)] for rank in order}
    wanted = [sum(data[rank][chunk] for rank in order) for chunk in range(ranks)]
    moved: Counter[tuple[int, int]] = Counter()
    for step in range(2 * (ranks - 1)):
        messages = []
        for place, rank in enumerate(order):
            chunk = (place - step) % ranks
            messages.append((rank, order[(place + 1) % ranks], chunk, data[rank][chunk]))
        for rank, to, chunk, value in messages:
            moved[rank, to] += amount // ranks
            data[to][chunk] = data[to][chunk] + value if step < ranks - 1 else value
    assert all(each == wanted for each in data.values())
    return moved


@pytest.mark.parametrize("ranks", [2, 3, 7, 8])
def test_a_ring_sends_what_its_steps_send(ranks: int) -> None:
    order, amount = list(range(ranks)), 5 * ranks * ranks
    found: Counter[tuple[int, int]] = Counter()
    for sources, destinations, size in ring_edges([[rank] for rank in order], 2 * amount * (ranks - 1) // ranks):
        found.update(dict.fromkeys(zip(sources, destinations, strict=True), size))
    assert found == carry_out_ring(order, amount)


def test_rings_of_hosts_enter_and_leave_at_each_rank() -> None:
    edges = list(ring_edges([[0, 1], [2, 3], [4, 5]], 101))
    assert [size for *_, size in edges] == [50, 51]
    assert [(order[-1], to[-1]) for order, to, _ in edges] == [(5, 0), (4, 1)]
    assert all(sorted(to) == list(range(6)) for _, to, _ in edges)


@pytest.mark.parametrize(
    "hosts",
    [[[0]], [[0, 1, 2]], *([[n, n + 100][:each] for n in range(c)] for c, each in product((2, 3, 13, 14), (1, 2)))],
)
def test_trees_reduce_and_broadcast_every_byte(hosts: list[list[int]]) -> None:
    """Each tree joins all ranks in both directions. The bytes of the trees add up to the call's bytes."""
    ranks = [rank for own in hosts for rank in own]
    shares = 0
    for sources, destinations, size in tree_edges(hosts, 1001):
        pairs = set(zip(sources, destinations, strict=True))
        assert pairs == {(b, a) for a, b in pairs}
        assert len(pairs) == 2 * (len(ranks) - 1)
        reached, front = {ranks[0]}, [ranks[0]]
        while front:
            front = [b for a in front for c, b in pairs if c == a and b not in reached]
            reached.update(front)
        assert reached == set(ranks)
        shares += size
    assert shares == 1001


def test_trees_are_those_of_nccls_pictures() -> None:
    (one, _, _), (other, _, _) = tree_edges([[n] for n in range(14)], 2)
    of_first = {tuple(sorted(pair)) for pair in zip(one[::2], one[1::2], strict=True)}
    assert of_first == {(0, 8), (4, 8), (8, 12), (2, 4), (4, 6), (10, 12), (12, 13)} | {
        pair for up in (2, 6, 10) for pair in ((up - 1, up), (up, up + 1))
    }
    assert {tuple(sorted((13 - a, 13 - b))) for a, b in of_first} == {
        tuple(sorted(pair)) for pair in zip(other[::2], other[1::2], strict=True)
    }
    (one, _, _), (other, _, _) = tree_edges([[n] for n in range(13)], 2)
    moved = {tuple(sorted(((a + 1) % 13, (b + 1) % 13))) for a, b in zip(one[::2], one[1::2], strict=True)}
    assert moved == {tuple(sorted(pair)) for pair in zip(other[::2], other[1::2], strict=True)}


def test_groups_are_those_of_megatrons_documentation() -> None:
    """The example of `initialize_model_parallel`: 16 GPUs, tensor groups of 2 ranks, and 4 stages."""
    job = read_job("pattern:pipeline:tp=2,pp=4,dp=2")
    assert job.groups("tp").tolist() == [[n, n + 1] for n in range(0, 16, 2)]
    assert sorted(job.groups("dp").tolist()) == [[n, n + 2] for n in (0, 1, 4, 5, 8, 9, 12, 13)]
    assert sorted(job.groups("pp").tolist()) == [[n, n + 4, n + 8, n + 12] for n in range(4)]


@pytest.mark.parametrize(
    "text",
    [
        "tp=2,pp=2,dp=4,ep=2",
        "tp=2,pp=2,dp=4,ep=4,etp=1",
        "tp=2,pp=3,dp=2,ep=2,order=pp-tp-cp-ep-dp",
        "tp=4,pp=1,dp=6,ep=3",
    ],
)
def test_expert_groups_follow_the_order(text: str) -> None:
    job = read_job(f"pattern:pipeline:{text}")
    sizes = {"tp": job.expert_tp, "ep": job.ep, "pp": job.pp}
    sizes["dp"] = job.ranks // (sizes["tp"] * sizes["ep"] * sizes["pp"])
    for kind in ("tp", "ep", "dp", "pp"):
        wanted: dict[tuple[int, ...], list[int]] = {}
        for rank in range(job.ranks):
            rest, own = rank, []
            for name in job.order.split("-"):
                rest, digit = divmod(rest, sizes[name])
                if name != kind:
                    own.append(digit)
            wanted.setdefault(tuple(own), []).append(rank)
        assert sorted(job.groups(kind, of_experts=True).tolist()) == sorted(wanted.values())


def test_tensor_groups_send_the_published_sum() -> None:
    """Narayanan et al.: 8bsh(t - 1)/t elements for each layer, micro-batch and rank, in one ring."""
    element = 2
    each = 8 * 2 * 6 * 16 * 3 // 4 * 8 * 3 * element
    assert sent(f"pattern:nccl-ring:tp=4,{SMALL}") == {(n, (n + 1) % 4): each for n in range(4)}
    assert sent(f"pattern:nccl-ring:tp=4,sp=0,{SMALL}") == sent(f"pattern:nccl-ring:tp=4,{SMALL}")


def test_gradients_are_all_parameters() -> None:
    """GPT-3 has 175 billion parameters (Narayanan et al., equation 2). Their gradients are fp32."""
    found = sent("pattern:nccl-tree:dp=2,gpus=1")
    hidden, layers = 12288, 96
    count = 12 * layers * hidden**2 * (1 + 13 / (12 * hidden) + (51200 + 2048) / (12 * layers * hidden))
    assert found == {(0, 1): 4 * round(count), (1, 0): 4 * round(count)}
    assert 174e9 < count < 176e9


@pytest.mark.parametrize("sizes", ["tp=2,pp=4,dp=2,ep=2", "pp=3,dp=2,ep=2,experts=6", "tp=2,dp=4,ep=8,etp=1"])
def test_gradients_of_stages_and_experts_are_all_parameters(sizes: str) -> None:
    """Each parameter is reduced once. For each, a ring of d replicas sends 2(d - 1) times the parameter's bytes."""
    job = read_job(f"pattern:nccl-ring:{sizes},{SMALL}")
    dense = 8 * (4 * 16**2 + 13 * 16) + (10 + 6) * 16
    experts = 8 * 8 * 16**2 * job.expert_count
    replicas = job.tp * job.dp // (job.expert_tp * job.ep)
    text = f"pattern:nccl-ring:{sizes},gpus=1,{SMALL}"
    assert sum(sent(text, "data").values()) == 4 * dense * 2 * (job.dp - 1)
    assert sum(sent(text, "expert data").values()) == 4 * experts * 2 * (replicas - 1)


@pytest.mark.parametrize("sp", [0, 1])
@pytest.mark.parametrize("chunks", [1, 2])
def test_stages_send_what_each_micro_batch_sends(sp: int, chunks: int) -> None:
    tp, pp, dp = 2, 3, 2
    found = sent(f"pattern:pipeline:tp={tp},pp={pp},dp={dp},sp={sp},chunks={chunks},{SMALL}")
    wanted: Counter[tuple[int, int]] = Counter()
    element = 2 * 6 * 16 * 2 // (tp if sp else 1)
    for _, tensor, data, part in product(range(3), range(tp), range(dp), range(pp * chunks - 1)):
        here, there = (tensor + tp * data + tp * dp * (each % pp) for each in (part, part + 1))
        wanted[here, there] += element
        wanted[there, here] += element
    assert found == wanted


@pytest.mark.parametrize("sizes", ["tp=2,pp=2,dp=4,ep=4", "dp=6,ep=3", "tp=4,dp=2,ep=8,etp=1"])
def test_tokens_go_to_experts_and_back(sizes: str) -> None:
    """Each token goes to two experts, evenly distributed, and returns. So does its gradient in the backward pass."""
    job = read_job(f"pattern:moe-alltoall:{sizes},{SMALL}")
    wanted: Counter[tuple[int, int]] = Counter()
    for group in job.groups("ep", of_experts=True).tolist():
        for source, destination in product(group, group):
            tokens = 2 * 6 / job.tp  # tokens of a micro-batch at each rank
            to_one = tokens * 2 / job.ep
            if source != destination:
                wanted[source, destination] += round(to_one * 16 * 2 * 4 * (8 // job.pp) * 3)
    assert sent(f"pattern:moe-alltoall:{sizes},{SMALL}") == wanted


def test_names_join() -> None:
    sizes = f"tp=2,pp=2,dp=2,ep=2,{SMALL}"
    whole = sent(f"pattern:nccl-ring+pipeline+moe-alltoall:{sizes}")
    assert whole == sum(
        (sent(f"pattern:{name}:{sizes}") for name in ("nccl-ring", "pipeline", "moe-alltoall")), Counter()
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nccl-ring:tp=8,pq=4", "expected KEY=VALUE with a key of tp, pp"),
        ("nccl-ring:tp=8,tp=8", "expected tp once"),
        ("nccl-ring:tp=0", "expected tp= with a number from 1"),
        ("nccl-ring:tp=1_0", "found '1_0'"),
        ("nccl-ring:tp", "expected tp= with a number"),
        ("nccl-ring:tp=8,dtype=int3", "expected dtype= with one of fp8, bf16"),
        ("nccl-ring:tp=8,order=tp-dp", "expected order= with each of tp-ep-dp-pp"),
        ("nccl-ring:tp=8,order=tp-pp-ep-dp,pp=2,dp=4,ep=16,etp=1", "on the stage of its layer"),
        ("nccl-ring:tp=4,dp=2,ep=3", r"expected etp\*ep that divides tp\*dp = 8, found 12"),
        ("nccl-ring:dp=8,ep=8,experts=12", "expected experts= with a multiple of ep=8, found 12"),
        ("pipeline:pp=97", "expected layers= with at least"),
        ("nccl-ring:tp=99999,dp=99999", "expected at most 16777216 ranks"),
        ("nccl-tree:dp=10000,gpus=10000", r"expected ranks \* \(gpus \+ ep\)"),
        ("moe-alltoall:dp=30000,ep=30000", r"of at most 67108864, found 900240000"),
        ("pipeline:tp=8", "no rank sends bytes; expected a size above 1: pp for pipeline"),
        ("moe-alltoall:tp=8,dp=2", "expected a size above 1: ep for moe-alltoall"),
        ("nccl-ring:tp=2,hidden=1000000000000", r"less than 2\*\*63"),
        ("nccl-ring+nccl-tree:tp=2", "found both"),
        ("nccl-ring+shift:tp=2", "found 'shift'"),
    ],
)
def test_impossible_jobs_are_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        build_training(f"pattern:{text}")


def test_divided_tensor_groups_are_reported() -> None:
    text = "pattern:nccl-ring:tp=4,dp=4"
    hosts = ["a"] * 8 + ["b"] * 8
    assert note_divided(text, hosts) == ()
    assert note_divided("pattern:all-to-all", hosts) == ()
    hosts[3], hosts[12] = hosts[12], hosts[3]
    assert note_divided(text, hosts)[0].startswith("2 of 4 tensor groups are on several hosts")
    assert note_divided("pattern:nccl-ring:tp=16", hosts) == ()  # groups of 16 ranks fit on no host
