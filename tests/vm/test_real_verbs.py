# SPDX-License-Identifier: Apache-2.0
"""ibprof's recording of real verbs agrees with the posted work requests, and with the wires' counters.

All cases run in one guest (ibprof_testing.guest). The recording must have exactly the bytes that a test program posts.
For MPI programs, the recording has at least the bytes of the payload, and at most the bytes of the wires' counters.
These counters include headers and acknowledgements.
"""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

import pytest

from ibprof.archive.otf2_archive import read_archive, write_archive
from ibprof.load import load_profile
from ibprof.profile.profile_data import Opcode, Profile
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.lid_traffic import map_to_lids
from ibprof_converter.traffic.link_loads import load_links
from ibprof_converter.traffic.traffic_data import Traffic
from ibprof_converter.traffic.traffic_reader import profile_traffic
from ibprof_testing.guest import run_in_guest

Found = TypeVar("Found")

PROGRAMS = Path(__file__).parent / "programs"
CASES = Path(__file__).parent / "cases.sh"
RAILS = Path(__file__).parents[2] / "examples" / "rails"

HEADERS = 1.07
"""A packet of 1,024 bytes has 58 bytes of headers (Ethernet, IP, UDP, BTH, ICRC); a reply to a READ has 62 bytes."""

GID_OF = {f"rail{rail}{end}": f"0a00:{rail:02x}{number:02x}" for rail in (0, 1) for end, number in (("a", 1), ("b", 2))}

ONE_SUBNET = {f"one{port}": f"0a00:090{number}" for number, port in enumerate(("0a", "1a", "0b", "1b"), start=1)}
"""Device -> last digits of the device's GID: two adapters each on hosts a and b, in one subnet."""


@dataclass(frozen=True)
class Case:
    """Results of the case `name` in a folder. Each method reads its files at each call."""

    folder: Path
    name: str

    def profile(self) -> Profile:
        status = int((self.folder / f"{self.name}.status").read_text())
        assert status == 0, (self.folder / f"{self.name}.err").read_text()
        assert "ibprof" not in (self.folder / f"{self.name}.err").read_text()
        return load_profile(self.folder / f"{self.name}.ibprof")

    def posted(self) -> Counter[str]:
        sums: Counter[str] = Counter()
        for line in (self.folder / f"{self.name}.out").read_text().splitlines():
            opcode, amount, messages = line.split()
            sums[opcode] += int(amount)
            sums[f"{opcode} messages"] += int(messages)
        return sums

    def carried(self, end: str) -> int:
        """Return the bytes that an end of a wire, such as `0a`, sent during the case."""
        before, after = (
            dict(line.split() for line in (self.folder / f"{self.name}.{when}").read_text().splitlines())
            for when in ("before", "after")
        )
        return int(after[end]) - int(before[end])


def recorded(run: Profile) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Return (device, last part of the remote GID, opcode) -> (bytes, messages)."""
    sums: dict[tuple[str, str, str], tuple[int, int]] = {}
    moved = run.transfers
    for pair_number, opcode, amount, messages in zip(
        *(column.tolist() for column in (moved.pair, moved.opcode, moved.bytes, moved.messages)), strict=True
    ):
        pair = run.pairs[pair_number]
        assert pair.port == 1
        assert pair.gid.endswith((GID_OF | ONE_SUBNET)[pair.device]), pair
        assert pair.remote_lid is None, "RoCE has no LIDs, whatever an address handle says"
        key = pair.device, pair.remote_gid[-9:], Opcode(opcode).name
        before = sums.get(key, (0, 0))
        sums[key] = before[0] + amount, before[1] + messages
    return sums


def sent_from(run: Profile, device: str) -> int:
    """Return the bytes from a device to the other end of its wire, including fetched bytes."""
    other = device[:-1] + ("b" if device.endswith("a") else "a")
    sums = recorded(run)
    out = sum(sums.get((device, GID_OF[other], name), (0, 0))[0] for name in ("SEND", "WRITE"))
    return out + sum(sums.get((other, GID_OF[device], name), (0, 0))[0] for name in ("READ", "ATOMIC"))


def run_cases(folder: Path, kind: str = "") -> Path:
    """Build the programs here, run all cases in a guest, and return the folder of the results."""
    traffic, stripe = folder / "traffic", folder / "stripe"
    mpicc = os.environ.get("IBPROF_TEST_MPICC", "mpicc.openmpi")
    subprocess.run(["cc", "-Wall", "-O1", "-o", traffic, PROGRAMS / "traffic.c", "-libverbs"], check=True)
    subprocess.run([mpicc, "-O1", "-o", stripe, PROGRAMS / "stripe.c"], check=True)
    library = os.environ.get("IBPROF_LIBRARY", str(files("ibprof") / "lib" / "libibprof.so"))
    bcast, include = folder / "bcast", files("ibprof") / "include"
    subprocess.run([mpicc, "-O1", f"-I{include}", "-o", bcast, RAILS / "bcast.c"], check=True)
    programs = [str(each) for each in (traffic, stripe, RAILS / "measured.sh", bcast)]
    command = ["bash", str(CASES), library, *programs, *([kind] if kind else [])]
    done = run_in_guest(command, folder, modules=["bridge"])
    assert done.status == 0, done.stderr
    return folder / "recorded"


def sent_by_rail(recording: Path, *options: str) -> dict[int, int]:
    """Return the bytes that left a's port on each rail, by `ibprof matrix --by port`."""
    command = [sys.executable, "-m", "ibprof", "matrix", str(recording), "--by", "port", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "ports are measured" in done.stderr
    sent = dict.fromkeys((0, 1), 0)
    for row in csv.DictReader(done.stdout.splitlines()):
        for rail in (0, 1):
            if row["src_port"] == f"node-a rail{rail}a/1":
                assert row["dst_port"] == f"node-a rail{rail}b/1"
                sent[rail] += int(row["bytes"])
    return sent


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_cases(tmp_path_factory.mktemp("guest"))


@pytest.mark.parametrize("mode", ["plain", "built", "datagrams", "shared"])
def test_what_a_program_without_mpi_posts_is_recorded_to_the_byte(guest: Path, mode: str) -> None:
    case = Case(guest, mode)
    run, posted = case.profile(), case.posted()
    opcodes = {name for name in posted if "messages" not in name}
    assert opcodes == ({"SEND"} if mode == "datagrams" else {"SEND", "WRITE", "READ", "ATOMIC"})
    there = GID_OF["rail0b"]
    assert recorded(run) == {
        ("rail0a", there, name): (posted[name], posted[f"{name} messages"]) for name in sorted(opcodes)
    }
    (rank,) = run.ranks
    assert rank.finalized, "the end of a process without MPI is its exit"
    assert "is a process without MPI" in rank.notes[0]


def test_rails_are_distinguished(guest: Path) -> None:
    run, posted = Case(guest, "other_rail").profile(), Case(guest, "other_rail").posted()
    assert {key[:2] for key in recorded(run)} == {("rail1b", GID_OF["rail1a"])}
    assert sent_from(run, "rail1b") == posted["SEND"] + posted["WRITE"]
    assert sent_from(run, "rail1a") == posted["READ"] + posted["ATOMIC"]


@pytest.mark.parametrize(("name", "payload"), [("plain", 0), ("datagrams", 0), ("ud_one_rail", 500_000)])
def test_the_wire_carries_what_was_counted_and_headers(guest: Path, name: str, payload: int) -> None:
    case = Case(guest, name)
    run = case.profile()
    counted = sent_from(run, "rail0a")
    assert payload <= counted <= case.carried("0a")
    # No large message is missed: besides headers, the wire carries only acknowledgements and address resolution.
    assert case.carried("0a") <= counted * HEADERS + 5_000
    assert sent_from(run, "rail1a") == 0


def test_a_message_over_two_rails_is_split_as_the_library_split_it(guest: Path) -> None:
    case = Case(guest, "two_rails")
    run = case.profile()
    rails = [recorded(run)[f"rail{rail}b", GID_OF[f"rail{rail}a"], "READ"][0] for rail in (0, 1)]
    assert sum(rails) == 20_000_000, "the receiver fetches all, and each byte once"
    assert min(rails) > 0.4 * sum(rails)
    for rail in (0, 1):
        counted = sent_from(run, f"rail{rail}a")
        assert counted <= case.carried(f"{rail}a") <= counted * HEADERS + 5_000
    # The recording also has the bytes that ibprof counted at MPI's calls, separately from verbs.
    assert sum(run.counters.bytes[run.counters.direction == 0].tolist()) == 20_000_000


@pytest.mark.parametrize(("name", "shares"), [("split", (0.5, 0.5)), ("first", (1, 0))])
def test_which_rails_a_library_uses_is_seen_in_two_commands(
    guest: Path, name: str, shares: tuple[float, float]
) -> None:
    """One MPI divides messages over the rails, another MPI uses one rail (thesis, section 4.4.2)."""
    sent = sent_by_rail(guest / f"{name}.ibprof")
    assert sum(sent.values()) == pytest.approx(6_000_000, rel=0.01)
    for rail in (0, 1):
        assert sent[rail] / 6_000_000 == pytest.approx(shares[rail], abs=0.02)


def sent_in_one_subnet(run: Profile) -> dict[str, int]:
    """Return the bytes from each of the subnet's four ports to other ports, including fetched bytes."""
    sent = dict.fromkeys(ONE_SUBNET, 0)
    device_of = {gid: device for device, gid in ONE_SUBNET.items()}
    for (device, remote, opcode), (amount, _) in recorded(run).items():
        if remote != ONE_SUBNET[device]:
            sent[device if opcode in ("SEND", "WRITE") else device_of[remote]] += amount
    return sent


def put_on_one_switch(run: Profile) -> tuple[dict[str, int], Traffic]:
    """Put two adapters of host a and two of host b on one switch. Return the load of each port's link."""
    made = generate("xgft:1:4:1")
    guid = {port.device: int(port.port_guid, 16) for port in run.hosts[0].ports}
    is_adapter = made.fabric.node_kind[made.fabric.port_node] == NodeKind.CA
    guids, names = made.fabric.port_guid.copy(), list(made.fabric.node_name)
    guids[is_adapter] = [guid[device] for device in ONE_SUBNET]
    for node, device in zip(made.fabric.port_node[is_adapter].tolist(), ONE_SUBNET, strict=True):
        names[node] = f"node-{device[-1]} {device}"
    fabric = replace(made.fabric, port_guid=guids, node_name=tuple(names))
    hosts = find_hosts([fabric])
    assert hosts.adapters.tolist() == [[2], [2]]
    traffic = map_to_lids(profile_traffic(run), hosts, [fabric], None, None)
    (loads,) = load_links(traffic, [Subnet(fabric, made.tables, ())]).by_rail
    carried = {}
    for link, ends in enumerate(fabric.link_node.tolist()):
        for end, node in enumerate(ends):
            if fabric.node_kind[node] == NodeKind.CA:
                carried[names[node].split()[1]] = int(loads[link, end].sum())
    return carried, traffic


@pytest.mark.parametrize(
    ("name", "payload"),
    [("across", {"one1a": 5_000_000}), ("both_in_one", {"one0a": 2_000_000, "one1a": 2_000_000})],
)
def test_adapters_of_a_host_in_one_subnet_are_measured(guest: Path, name: str, payload: dict[str, int]) -> None:
    """The recording, the loads of links in a fabric, and the ports' own counters agree."""
    case = Case(guest, name)
    run = case.profile()
    sent = sent_in_one_subnet(run)
    for device, amount in sent.items():
        carried = case.carried(device.removeprefix("one"))
        assert amount <= carried <= amount * HEADERS + 5_000
        # MPI splits a message that it fetches by RDMA READ into two nearly equal parts.
        assert amount == pytest.approx(payload.get(device, 0), rel=0.02, abs=5_000)
    loads, traffic = put_on_one_switch(run)
    assert loads == sent
    assert traffic.nic == "measured"


TURNS = [(1, 0) if call % 2 == 0 else (0, 1) for call in range(6)]


@pytest.mark.parametrize(
    ("name", "shares"), [("split", [(0.5, 0.5)] * 6), ("first", [(1, 0)] * 6), ("in-turn", TURNS)], ids=str
)
def test_the_rails_of_each_broadcast_are_seen_by_its_region(
    guest: Path, name: str, shares: list[tuple[float, float]]
) -> None:
    """Each broadcast uses both rails, or all broadcasts use one rail, or the rails take turns."""
    for call, expected in enumerate(shares):
        sent = sent_by_rail(guest / f"{name}.ibprof", "--region", f"bcast {call + 1}")
        assert sum(sent.values()) == pytest.approx(1_000_000, rel=0.01)
        for rail in (0, 1):
            assert sent[rail] / 1_000_000 == pytest.approx(expected[rail], abs=0.02)


def test_the_ports_of_the_host_are_in_the_profile(guest: Path, tmp_path: Path) -> None:
    run = Case(guest, "two_rails").profile()
    (host,) = run.hosts
    ports = {port.device: port for port in host.ports}
    assert set(ports) == set(GID_OF)  # the devices of ONE_SUBNET are created later
    for name, port in ports.items():
        assert (port.link_layer, port.lid, port.state, port.lmc) == ("Ethernet", None, 4, 0)
        assert port.gids[1].endswith(GID_OF[name])
        assert port.rate_gbps > 0
        assert int(port.port_guid, 16) != 0
    grown = {
        name: {counter.name: (counter.after or 0) - counter.before for counter in port.hardware}
        for name, port in ports.items()
    }
    # rxe's port counters count packets, of at most 4,096 bytes here. The network interface counts bytes.
    assert grown["rail0a"]["tx_bytes"] >= sent_from(run, "rail0a")
    assert grown["rail0b"]["sent_pkts"] > 0
    assert grown["rail1a"]["tx_bytes"] >= sent_from(run, "rail1a")
    write_archive(run, tmp_path / "profile.otf2")
    again = read_archive(tmp_path / "profile.otf2")
    assert (again.hosts, again.pairs, again.ranks) == (run.hosts, run.pairs, run.ranks)
    assert again.transfers.bytes.tolist() == run.transfers.bytes.tolist()


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_the_guest_ends_with_what_started_it(tmp_path: Path, ending: signal.Signals) -> None:
    command = [
        sys.executable,
        "-m",
        "ibprof_testing.guest",
        "--folder",
        str(tmp_path),
        "--seconds",
        "300",
        "--",
        "sleep",
        "300",
    ]
    temporary = tmp_path / "temporary"  # a killed process must leave its files here
    temporary.mkdir()
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(temporary)}) as started:
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
        machine = wait_for(lambda: [each for each in children.read_text().split() if "qemu" in name_of(each)])[0]
        started.send_signal(ending)
    assert wait_for(lambda: name_of(machine) == "")


def name_of(process: str) -> str:
    """Return the command line of a process; an empty text if the process has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text().partition("\0")[0]
    except OSError:
        return ""


def wait_for(find: Callable[[], Found]) -> Found:
    deadline = time.monotonic() + 60
    while not (found := find()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


@pytest.mark.full
def test_the_long_forms(tmp_path: Path) -> None:
    folder = run_cases(tmp_path, "full")
    # UCX divides fetched messages over both rails, and sends all datagrams over the first rail.
    for name, payload, rails in (
        ("one_rail", 5_000_000, 1),
        ("small", 50_000, 1),
        ("ud_two_rails", 2_500_000, 1),
        ("many", 120_000_000, 2),
    ):
        case = Case(folder, name)
        run = case.profile()
        counted = [sent_from(run, f"rail{rail}a") for rail in (0, 1)]
        assert payload <= sum(counted) <= 1.02 * payload + 5_000
        assert [amount > 1000 for amount in counted] == [True, rails == 2]
        for rail in (0, 1):
            assert counted[rail] <= case.carried(f"{rail}a")
