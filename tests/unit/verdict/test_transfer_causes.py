# SPDX-License-Identifier: Apache-2.0
"""For synthetic adapters, counters and connections of hosts, the right cause of slow transfer is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ibprof.profile.profile_data import (
    AdapterChoice,
    HardwareCounter,
    HardwareType,
    Host,
    Interface,
    Port,
    Profile,
    Transport,
)
from ibprof.verdict.transfer_causes import find_possible_rate, find_transfer_causes
from ibprof.verdict.verdict_data import TransferCause, VerdictKind
from ibprof.verdict.verdict_rules import judge_run
from ibprof_testing.samples.profiles import Count, make_port, make_profile, make_rank
from ibprof_testing.waits.derived_samples import derive_profile
from ibprof_testing.waits.synthetic_traces import MS, SyntheticRun

MB = 1_000_000
RANKS = 4
EACH = 300 * MB

HostList = Sequence[tuple[Sequence[Port], Sequence[Interface]]]
"""Ports and interfaces of each host."""


def grow(**grown: int) -> tuple[HardwareCounter, ...]:
    return tuple(HardwareCounter(name, 7, 7 + growth) for name, growth in grown.items())


def make_interface(name: str = "eth0", speed_mbps: int | None = 1000, **changes: Any) -> Interface:
    return replace(Interface(name, "", HardwareType.ETHERNET, 1500, speed_mbps, None, is_up=True), **changes)


def make_adapter(rate: float = 100.0, sent: int = 0, device: str = "mlx5_0", **changes: Any) -> Port:
    """Return an InfiniBand port that sent `sent` bytes."""
    counters = changes.pop("counters", {})
    hardware = grow(port_xmit_data=sent // 4, port_rcv_data=sent // 4, **counters)
    return make_port(1, rate_gbps=rate, device=device, hardware=hardware, **{"width": 4, **changes})


def make_run(
    hosts: HostList,
    tcp: Mapping[str, int] | None = None,
    *,
    to: int = 1,
    messages: int = 100,
    transport: Mapping[str, int] | None = None,
    choices: Sequence[AdapterChoice] = (),
    mpi: str = "Open MPI v4.1.4",
) -> Profile:
    """Return a run of 4 ranks. Each rank sends `EACH` bytes to another rank.

    Args:
        hosts: ports and interfaces of each host. Rank r runs on host r modulo the number of hosts.
        tcp: interface -> bytes that a rank's TCP connections sent, and bytes that they received.
        to: rank r sends to rank r + `to`, modulo 4.
        messages: number of messages of a rank.
        transport: other counts of the TCP connections.
        choices: each rank's variables that choose adapters.
    """
    transports = tuple(
        Transport("tcp", name, 4, sent_bytes=amount, received_bytes=amount, **(transport or {}))
        for name, amount in (tcp or {}).items()
    )
    ranks = [
        make_rank(rank, rank % len(hosts), transports=transports, choices=tuple(choices), has_times=True)
        for rank in range(RANKS)
    ]
    counts = [Count(rank, (rank + to) % RANKS, EACH, messages=messages) for rank in range(RANKS)]
    machines = [Host(f"n{number}", tuple(ports), tuple(interfaces)) for number, (ports, interfaces) in enumerate(hosts)]
    return replace(make_profile(counts, ranks, machines), mpi=mpi)


def find(run: Profile) -> list[str]:
    return [cause.name for cause in find_transfer_causes(run, 10.0, 11.0)]


def first(run: Profile) -> TransferCause:
    return find_transfer_causes(run, 10.0, 11.0)[0]


IDLE_ADAPTER = ([make_adapter()], [make_interface()])


def test_tcp_next_to_an_idle_adapter_is_the_wrong_transport_and_the_advice_names_the_adapter() -> None:
    run = make_run([IDLE_ADAPTER] * 2, {"eth0": EACH}, choices=[AdapterChoice("OMPI_MCA_btl", "tcp,self")])
    cause = first(run)
    assert cause.name == "wrong-transport"
    assert "TCP over eth0 (1 Gb/s) carries 1.2 GB between hosts; mlx5_0 (100 Gb/s, InfiniBand)" in cause.evidence
    assert "OMPI_MCA_btl=tcp,self" in cause.evidence
    assert "UCX_NET_DEVICES=mlx5_0:1" in cause.advice
    assert find_possible_rate(run) == 100


@pytest.mark.parametrize(
    ("interfaces", "rate"),
    [
        ([make_interface("eth0", None, virtual_mbps=10_000)], 10),
        ([make_interface("eth0", None), make_interface("veth1", None, virtual_mbps=10_000)], None),
        ([make_interface("eth0", 1000), make_interface("veth1", None, virtual_mbps=10_000)], 1),
    ],
)
def test_the_rate_of_a_virtual_interface_counts_only_if_it_is_in_use_and_no_adapter_shows_one(
    interfaces: list[Interface], rate: float | None
) -> None:
    assert find_possible_rate(make_run([([], interfaces)] * 2, {"eth0": EACH})) == rate


def test_virtual_interfaces_have_no_rate_if_one_host_shows_an_adapter() -> None:
    virtual = [make_interface("eth0", None, virtual_mbps=10_000)]
    hosts: HostList = [([], [make_interface("eth1", 1000)]), ([], virtual), ([], virtual)]
    assert find_possible_rate(make_run(hosts[1:], {"eth0": EACH})) == 10
    assert find_possible_rate(make_run(hosts, {"eth0": EACH})) is None


@pytest.mark.parametrize(
    ("mpi", "library", "setting"),
    [
        ("Open MPI v4.1.4", "mca_pml_ucx", "OMPI_MCA_pml=ucx UCX_NET_DEVICES=mlx5_0:1"),
        ("MPICH Version: 4.3", "libucp", "UCX_NET_DEVICES=mlx5_0:1"),
        ("MPICH Version: 4.3", "libfabric", "FI_PROVIDER=verbs FI_VERBS_DEVICE_NAME=mlx5_0"),
        ("Intel(R) MPI Library 2021.18", "libfabric", "I_MPI_OFI_PROVIDER=mlx"),
    ],
)
def test_the_advice_is_for_the_mpi_in_use(mpi: str, library: str, setting: str) -> None:
    run = make_run([IDLE_ADAPTER] * 2, {"eth0": EACH}, mpi=mpi)
    loaded = Transport("library", library, 1)
    ranks = tuple(replace(rank, transports=(*rank.transports, loaded)) for rank in run.ranks)
    assert setting in first(replace(run, ranks=ranks)).advice


@pytest.mark.parametrize(
    ("hosts", "tcp"),
    [
        # The adapter carries the bytes; the TCP connections are the launcher's.
        ([([make_adapter(sent=2 * EACH)], [make_interface()])] * 2, {"eth0": 5000}),
        # The second host has no adapter, or its adapter's link is down.
        ([IDLE_ADAPTER, ([], [make_interface()])], {"eth0": EACH}),
        ([IDLE_ADAPTER, ([make_adapter(state=1)], [make_interface()])], {"eth0": EACH}),
        # Another job keeps the adapter busy.
        ([([make_adapter(sent=9 * EACH)], [make_interface()])] * 2, {"eth0": EACH}),
        # The Ethernet interface is as fast as the adapter, but is no port of the adapter.
        ([([make_adapter()], [make_interface(speed_mbps=100_000)])] * 2, {"eth0": EACH}),
        ([([], [make_interface()])] * 2, {"eth0": EACH}),
        ([([], [])] * 2, {}),
    ],
)
def test_no_other_transport_is_named_without_an_idle_and_faster_one(hosts: HostList, tcp: Mapping[str, int]) -> None:
    assert "wrong-transport" not in find(make_run(hosts, tcp))


def test_ipoib_and_tcp_over_the_adapter_itself_are_the_wrong_transport() -> None:
    # The port's own counters include the bytes of TCP.
    port = make_adapter(sent=2 * EACH)
    over = make_interface("ib0", 100_000, type=HardwareType.INFINIBAND, device="mlx5_0")
    assert "IPoIB over ib0" in first(make_run([([port], [over])] * 2, {"ib0": EACH})).evidence
    roce = make_interface("ens1", 100_000, device="mlx5_0")
    ethernet = make_adapter(sent=2 * EACH, link_layer="Ethernet")
    assert "TCP over ens1" in first(make_run([([ethernet], [roce])] * 2, {"ens1": EACH})).evidence


def test_a_slow_device_next_to_a_faster_idle_one_is_the_wrong_transport() -> None:
    interfaces = [make_interface(), make_interface("eth1", 25_000)]
    cause = first(make_run([([], interfaces)] * 2, {"eth0": EACH}))
    assert (cause.name, "OMPI_MCA_btl_tcp_if_include=eth1" in cause.advice) == ("wrong-transport", True)
    ports = [make_adapter(25, sent=2 * EACH), make_adapter(200, device="mlx5_1")]
    cause = first(make_run([(ports, [])] * 2))
    assert (cause.name, "UCX_NET_DEVICES=mlx5_1:1" in cause.advice) == ("wrong-transport", True)
    # ibprof does not advise an interface that another host lacks.
    assert "wrong-transport" not in find(make_run([([], interfaces), ([], interfaces[:1])], {"eth0": EACH}))


def test_tcp_within_a_host_is_the_wrong_transport() -> None:
    run = make_run([([], [])], {"lo": EACH}, choices=[AdapterChoice("OMPI_MCA_btl", "tcp,self")])
    cause = first(run)
    assert cause.name == "wrong-transport"
    assert "TCP over the loopback carries 1.2 GB between ranks of n0" in cause.evidence
    assert "vader" in cause.advice
    assert find(make_run([([], [])], {"lo": 5000})) == ["memory-bound"]
    # The launcher's connections carry more bytes than the few messages of the job.
    assert find(replace(run, counters=replace(run.counters, bytes=run.counters.bytes // 1_000_000))) == []


def test_an_adapter_slower_than_its_peers_is_named_with_its_host() -> None:
    good, slow = make_adapter(sent=EACH), make_adapter(25, sent=EACH, width=1)
    cause = first(make_run([([good], []), ([good], []), ([slow], []), ([good], [])]))
    assert cause.name == "slow-adapter"
    assert cause.evidence == "n2 mlx5_0/1 runs at 25 Gb/s, 1 lane(s) (most hosts: 100 Gb/s)."
    assert find(make_run([([good], [])] * 4)) == []
    interfaces = [[make_interface(speed_mbps=speed)] for speed in (10_000, 10_000, 1000, 10_000)]
    cause = first(make_run([([], each) for each in interfaces], {"eth0": EACH}))
    assert cause.evidence == "n2 eth0 runs at 1 Gb/s (most hosts: 10 Gb/s)."


def test_an_adapter_below_its_own_maximum_is_slow() -> None:
    one_lane = make_adapter(25, sent=2 * EACH, width=1)
    cause = first(make_run([([one_lane], [])] * 2))
    assert (cause.name, "with 1 of 4 lanes" in cause.evidence) == ("slow-adapter", True)
    assert find_possible_rate(make_run([([one_lane], [])] * 2)) == 100
    pci: dict[str, Any] = {"pci_width": 4, "pci_width_max": 16, "pci_gts": 8.0, "pci_gts_max": 16.0}
    cause = first(make_run([([make_adapter(sent=2 * EACH, **pci)], [])] * 2))
    assert cause.evidence.startswith("The PCI link of n0 mlx5_0/1 has 4 of 16 lanes at 8 of 16 GT/s: 26.8 Gb/s")
    # A PCIe link with all lanes of the device may be slower than the port by design.
    whole: dict[str, Any] = {"pci_width": 4, "pci_width_max": 4, "pci_gts": 8.0, "pci_gts_max": 8.0}
    assert find(make_run([([make_adapter(sent=2 * EACH, **whole)], [])] * 2)) == []


@pytest.mark.parametrize(
    ("counters", "cause"),
    [
        ({"symbol_error": 40_000}, "link-errors"),
        ({"link_downed": 1}, "link-errors"),
        ({"local_ack_timeout_err": 12}, "link-errors"),
        ({"symbol_error": 3}, None),
        ({"port_xmit_wait": 900 * MB}, "congestion"),
        ({"port_xmit_wait": 10 * MB}, None),
        ({"rp_cnp_handled": 50_000, "port_xmit_packets": 300_000}, "congestion"),
        ({"np_cnp_sent": 20, "port_xmit_packets": 300_000}, None),
        ({"port_xmit_discards": 4000}, "congestion"),
    ],
)
def test_counters_of_ports_name_errors_and_congestion(counters: dict[str, int], cause: str | None) -> None:
    hosts: HostList = [([make_adapter(sent=2 * EACH, counters=counters)], [])] * 2
    found = find_transfer_causes(make_run(hosts), 10.0, 11.0)
    assert [each.name for each in found] == ([cause] if cause else [])
    if found:
        assert "n0 mlx5_0/1" in found[0].evidence


def test_counters_that_were_reset_or_not_read_again_say_nothing() -> None:
    for after in (None, 3):
        hardware = (HardwareCounter("symbol_error", 100, after), HardwareCounter("port_xmit_data", 5, after))
        assert find(make_run([([make_port(1, hardware=hardware)], [])] * 2)) == []


def test_other_traffic_is_what_the_job_did_not_send_or_receive() -> None:
    # A host sends 600 MB to the other host: 300 MB for each of two ranks.
    own, header = 2 * EACH, 20 * MB
    quiet = make_interface(hardware=grow(tx_bytes=own + header, rx_bytes=own + header))
    assert find(make_run([([], [quiet])] * 2, {"eth0": EACH})) == []
    busy = make_interface(hardware=grow(tx_bytes=own + header, rx_bytes=4 * own))
    cause = first(make_run([([], [quiet]), ([], [busy])], {"eth0": EACH}))
    assert cause.name == "other-traffic"
    assert cause.evidence.startswith("n1 eth0 received at least 1.65 GB")
    assert cause.evidence.endswith("in addition to the job's 600 MB.")
    port = make_adapter(sent=3 * own)
    assert first(make_run([([port], [])] * 2)).name == "other-traffic"


def test_segments_that_are_sent_again_are_lost_packets() -> None:
    hosts: HostList = [([], [make_interface()])] * 2
    lossy = {"segments": 200_000, "retransmitted": 3000}
    assert "n0 resent 6,000 of 400,000 segments" in first(make_run(hosts, {"eth0": EACH}, transport=lossy)).evidence
    assert find(make_run(hosts, {"eth0": EACH}, transport=lossy | {"retransmitted": 300})) == []
    assert find(make_run(hosts, {"eth0": EACH}, transport={"segments": 500, "retransmitted": 40})) == []


def test_copies_within_a_host_bound_transfer_where_ranks_have_cores() -> None:
    run = make_run([([], [])], choices=[AdapterChoice("cores", "0-3")])
    cause = first(run)
    assert (cause.name, "at 120 MB/s" in cause.evidence) == ("memory-bound", True)
    assert find(make_run([([], [])], choices=[AdapterChoice("cores", "0-1")])) == []
    # Copies do not slow down small messages. If a run waits, no cause of slow transfer is reported.
    assert find(make_run([([], [])], messages=1 << 20)) == []
    assert find_transfer_causes(run, 1.0, 11.0) == ()


def test_causes_are_named_from_the_surest_on() -> None:
    port = make_adapter(25, sent=9 * EACH, width=1, counters={"symbol_error": 500, "port_xmit_wait": 9000 * MB})
    assert find(make_run([([port], [])] * 2)) == ["slow-adapter", "link-errors", "other-traffic", "congestion"]


def timed_run(transfer_ms: float, hosts: HostList, **run: Any) -> Profile:
    """Return a run of 60 collectives. A transfer takes a random time, from half of `transfer_ms` to `transfer_ms`."""
    made = SyntheticRun(RANKS, seed=8)
    for _ in range(60):
        made.collective("Allreduce", 8, int(transfer_ms * MS))
    timed = derive_profile(made.traces(), hosts=[rank % len(hosts) for rank in range(RANKS)])
    known = make_run(hosts, **run)
    ranks = tuple(
        replace(one, transports=other.transports, choices=other.choices)
        for one, other in zip(timed.ranks, known.ranks, strict=True)
    )
    return replace(timed, counters=known.counters, hosts=known.hosts, ranks=ranks, mpi=known.mpi)


def test_the_verdict_names_the_cause_its_evidence_and_the_remedy() -> None:
    # The 600 MB of a host take 48 ms at 100 Gb/s, and 4.8 s at 1 Gb/s.
    verdict = judge_run(timed_run(80, [IDLE_ADAPTER] * 2, tcp={"eth0": EACH}))
    assert (verdict.kind, verdict.cause) == (VerdictKind.SLOW_TRANSFER, "wrong-transport")
    assert "Cause: wrong-transport. TCP over eth0" in verdict.text
    assert "UCX_NET_DEVICES=mlx5_0:1" in verdict.text
    assert verdict.as_json()["transfer_causes"][0]["name"] == "wrong-transport"
    assert not any("why transfer is slow" in each for each in verdict.missing)


def test_a_link_of_a_quarter_of_its_rate_is_slow_though_it_carries_all_at_that_rate() -> None:
    # 600 MB take 192 ms at 25 Gb/s, and 48 ms at the rate of the full link width.
    slow: HostList = [([make_adapter(25, sent=2 * EACH, width=1)], [])] * 2
    verdict = judge_run(timed_run(200 / 60, slow, messages=10))
    assert (verdict.kind, verdict.cause) == (VerdictKind.SLOW_TRANSFER, "slow-adapter")
    all_lanes: HostList = [([make_adapter(25, sent=2 * EACH, width=4)], [])] * 2
    assert judge_run(timed_run(200 / 60, all_lanes, messages=10)).kind is not VerdictKind.SLOW_TRANSFER


def test_without_a_cause_the_verdict_says_what_to_ask_for() -> None:
    verdict = judge_run(timed_run(80, [([make_adapter(sent=2 * EACH)], [])] * 2))
    assert (verdict.kind, verdict.cause) == (VerdictKind.SLOW_TRANSFER, None)
    assert "something else slows it" in verdict.text
    assert any("iperf3" in each for each in verdict.missing)
