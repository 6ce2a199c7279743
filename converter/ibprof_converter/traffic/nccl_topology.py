# SPDX-License-Identifier: Apache-2.0
"""Read NCCL's log, and its XML of a host: the topology (NCCL_TOPO_DUMP_FILE) and the channels (NCCL_GRAPH_DUMP_FILE).

    <system version="1">                      <graphs version="1">
      <cpu numaid="0">                          <graph id="0" pattern="4" crossnic="0" nchannels="1" ..>
        <pci busid="0000:07:00.0">                <channel>
          <gpu dev="0" rank="0"/>                   <net dev="0"/>
        </pci>                                      <gpu dev="0" rank="0"/>
        <pci busid="0000:08:00.0">                  <gpu dev="0x1" rank="1"/>
          <nic>                                     <net dev="0"/>
            <net name="mlx5_0" dev="0" .. />      </channel>

Numbers with 0x (new releases) are hexadecimal, all others decimal. In an NVLink domain of several hosts, the upper 8
bits of a device's number are the host's number.

A log (NCCL_DEBUG=INFO) has a line with the network devices, and a line for each channel's connection to another host:

    node01:123:456 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_3:1/IB [RO]; OOB eth0:10.0.0.1<0>
    node01:123:456 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0/GDRDMA

Merged devices are written as `[0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB}` or `Made virtual device [2] name=mlx5_0+mlx5_1`.

Source: NCCL 2.30, src/graph/xml.cc, search.cc (ncclTopoGetXmlFromGraph), connect.cc (connectRings) and
src/transport/net.cc.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from ibprof.errors import InconsistentError, InputError, quote_found
from ibprof.text.host_lists import HostSpellings
from ibprof_converter.fabric.dump_files import read_dump
from ibprof_converter.fabric.node_names import show_some

RING = 4
"""Value of `pattern` for rings (NCCL_TOPO_PATTERN_RING)."""

CROSS_ALTERNATELY = 2
"""Value of `crossnic`: every second host swaps the devices of channels 0 and 1, of channels 2 and 3, and so on."""

_LOG_LINE = re.compile(r"([^\s:]{1,255}):([0-9]{1,10}):[0-9]{1,10} \[([0-9]{1,3})\] NCCL INFO (.*)")
_CONNECTION = re.compile(
    r"(?:Channel|Ring) ([0-9]{1,3})(?:/0)? : ([0-9]{1,8})(?:\[\w+\])? -> ([0-9]{1,8})(?:\[\w+\])? "
    r"(?:\[(send|receive)\] )?via (?:NET/[^/]{1,64}/([0-9]{1,4}))?"
)
_USING = re.compile(r"\[([0-9]{1,4})\](?:=\{\[[0-9]{1,4}\] ?)?([^\s:\[\]{}=]+):[0-9]{1,3}/")
_PARTS, _PART = re.compile(r"=\{([^{}]*)\}"), re.compile(r"\] ?([^\s:\]]+):")
_MERGED = re.compile(r"NET/IB : Made virtual device \[([0-9]{1,4})\] name=([^\s+]+)\+(\S+)")
_CONNECTED = re.compile(r"Connected (all rings)?")

_DEEPEST = 64
_NUMBER = re.compile(r"-?[0-9]{1,18}|0x[0-9a-fA-F]{1,16}")
_LOCAL_BITS = 56

Attributes = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NcclChannel:
    """A channel on one host.

    Attributes:
        number: number of the channel in its graph.
        nets: two network devices, by which data enters and leaves the host; empty if the channel uses no network.
        gpus: the channel's GPUs, in the order of the channel.
    """

    number: int
    nets: tuple[int, ...]
    gpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NcclGraph:
    """A graph of NCCL. Graph 0 is the ring, graph 1 the tree."""

    number: int
    pattern: int
    cross_nic: int
    channels: tuple[NcclChannel, ...]


@dataclass(frozen=True, slots=True)
class NcclDevice:
    """A GPU or a network device.

    Attributes:
        dev: the device's number in NCCL.
        name: the PCI function of a GPU, or the name of a network device.
        path: numbers of the XML elements that contain the device, outermost first.
    """

    dev: int
    name: str
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NcclTopology:
    """GPUs and network devices of a host, sorted by number."""

    gpus: tuple[NcclDevice, ...]
    nets: tuple[NcclDevice, ...]

    def nearest(self, gpu: NcclDevice) -> tuple[NcclDevice, ...]:
        """Return the network devices nearest to a GPU in the PCI tree."""
        shared = [_count_shared(gpu.path, net.path) for net in self.nets]
        return tuple(net for net, count in zip(self.nets, shared, strict=True) if count == max(shared))


def _count_shared(one: Sequence[int], other: Sequence[int]) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@dataclass(frozen=True, slots=True)
class RingNets:
    """The network devices by which each channel's ring enters a host, and leaves it.

    Attributes:
        of_host: host -> for each channel, the device by which the ring enters the host, and the device by which it
            leaves; the host `""` means all hosts.
        alternates: true if every second host swaps the devices of channels 0 and 1, of channels 2 and 3, and so on.
        labels: host -> number of a device -> name of the device; the host `""` means all hosts.
        hosts: hosts in the order of ranks; empty if unknown.
        gpus: for each GPU, the names of the nearest network devices.
        notes: sentences on assumptions, and on connections that were left out.
    """

    channels: tuple[int, ...]
    of_host: Mapping[str, tuple[tuple[int, int], ...]]
    alternates: bool
    labels: Mapping[str, Mapping[int, str]]
    hosts: tuple[str, ...]
    ranks_per_host: int
    gpus: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]


class _Reader:
    """Reader of an XML file.

    Args:
        root: name of the outermost element.
        start: function that is called for each element with its name, attributes and line, and the numbers of the outer
            elements.
    """

    def __init__(self, path: Path, root: str, start: Callable[[str, Attributes, int, tuple[int, ...]], None]) -> None:
        self._path, self._root, self._start = path, root, start
        self._open: list[int] = []
        self._count = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._begin
        self._parser.EndElementHandler = lambda _: self._open.pop()
        self._parser.StartDoctypeDeclHandler = lambda *_: self._refuse("no document type", "one")

    def read(self) -> None:
        data = read_dump(self._path)
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            found = expat.errors.messages[error.code]
            raise InputError(self._path, error.lineno, f"NCCL's XML with <{self._root}>", found) from None
        except (ValueError, LookupError) as error:
            raise InputError(self._path, None, f"NCCL's XML with <{self._root}>", quote_found(str(error))) from None

    def _refuse(self, expected: str, found: str) -> None:
        raise InputError(self._path, self._parser.CurrentLineNumber, expected, found)

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if not self._open and name != self._root:
            self._refuse(f"<{self._root}>", quote_found(f"<{name[:40]}>"))
        if len(self._open) == _DEEPEST:
            self._refuse(f"elements nested at most {_DEEPEST} deep", "more")
        self._start(name, attributes, self._parser.CurrentLineNumber, tuple(self._open))
        self._count += 1
        self._open.append(self._count)


def _number(path: Path, line: int, element: str, attributes: Attributes, key: str) -> int:
    value = attributes.get(key)
    if value is None or not _NUMBER.fullmatch(value):
        found = "none" if value is None else quote_found(value[:40])
        raise InputError(path, line, f'a number as {key}="0" of <{element}>', found)
    return int(value, 16 if value.startswith("0x") else 10)


def _local(dev: int) -> int:
    return dev & ((1 << _LOCAL_BITS) - 1)


def read_nccl_graphs(path: Path) -> tuple[NcclGraph, ...]:
    """Read the channels that NCCL chose for a host (NCCL_GRAPH_DUMP_FILE).

    Raises:
        InputError: the file is not XML of this form, or has no graph.
    """
    graphs: list[tuple[int, int, int, list[tuple[list[int], list[int]]]]] = []

    def start(name: str, attributes: Attributes, line: int, inside: tuple[int, ...]) -> None:
        def number(key: str) -> int:
            return _number(path, line, name, attributes, key)

        if name == "graph" and len(inside) == 1:
            graphs.append((number("id"), number("pattern"), number("crossnic"), []))
        elif name == "channel" and len(inside) == 2 and graphs:
            graphs[-1][3].append(([], []))
        elif name in ("net", "gpu") and len(inside) == 3 and graphs and graphs[-1][3]:
            graphs[-1][3][-1][name == "gpu"].append(_local(number("dev")))

    _Reader(path, "graphs", start).read()
    if not graphs:
        raise InputError(path, None, "a <graph>", "none")
    for graph, _, _, channels in graphs:
        for number, (nets, gpus) in enumerate(channels):
            if not gpus or len(nets) not in (0, 2):
                found = f"{len(gpus)} GPUs and {len(nets)} network devices"
                where = f"channel {number} of graph {graph}"
                raise InputError(path, None, f"GPUs, and 0 or 2 network devices, in {where}", found)
    return tuple(
        NcclGraph(
            graph,
            pattern,
            cross,
            tuple(NcclChannel(number, tuple(nets), tuple(gpus)) for number, (nets, gpus) in enumerate(channels)),
        )
        for graph, pattern, cross, channels in graphs
    )


def read_nccl_topology(path: Path) -> NcclTopology:
    """Read the topology of a host (NCCL_TOPO_DUMP_FILE, or the file for NCCL_TOPO_FILE).

    Raises:
        InputError: the file is not XML of this form, or has no network device.
    """
    gpus: list[NcclDevice] = []
    nets: list[NcclDevice] = []
    bus: dict[int, str] = {}
    count = 0

    def start(name: str, attributes: Attributes, line: int, inside: tuple[int, ...]) -> None:
        nonlocal count
        count += 1
        if name == "pci":
            bus[count] = attributes.get("busid", "")
        elif name == "gpu":
            place = next((bus[each] for each in reversed(inside) if each in bus), "")
            gpus.append(NcclDevice(_number(path, line, name, attributes, "dev"), place, inside))
        elif name == "net" and "dev" in attributes:  # the parts of a merged device have no attribute dev
            own = attributes.get("name", "")
            nets.append(NcclDevice(_local(_number(path, line, name, attributes, "dev")), own, inside))

    _Reader(path, "system", start).read()
    if not nets:
        raise InputError(path, None, "a <net> with a dev", "none")
    by_number = lambda device: device.dev  # noqa: E731
    return NcclTopology(tuple(sorted(gpus, key=by_number)), tuple(sorted(nets, key=by_number)))


def find_ring_nets(graphs: Sequence[NcclGraph], topology: NcclTopology | None) -> RingNets:
    """Return the network devices of the rings in one host's graphs; all hosts are assumed to use the same devices.

    Raises:
        InconsistentError: no ring uses a network.
    """
    graph = next((each for each in graphs if each.pattern == RING and any(c.nets for c in each.channels)), None)
    if graph is None:
        raise InconsistentError("NCCL's graphs have no ring over a network: was the file dumped by a job on one host?")
    channels = [channel for channel in graph.channels if channel.nets]
    notes = [] if topology else ["without --topology, network devices are assumed to be numbered like the host's ports"]
    if others := [str(each.number) for each in graphs if each is not graph]:
        notes.append(f"graphs {', '.join(others)} are not rings, so their connections between hosts are left out")
    gpus = topology.gpus if topology else ()
    return RingNets(
        tuple(channel.number for channel in channels),
        {"": tuple((channel.nets[0], channel.nets[1]) for channel in channels)},
        graph.cross_nic == CROSS_ALTERNATELY and len(channels) % 2 == 0,
        {"": {net.dev: net.name for net in topology.nets if net.name}} if topology else {},
        (),
        len(channels[0].gpus),
        {f"{gpu.dev} ({gpu.name})": tuple(net.name for net in topology.nearest(gpu)) for gpu in gpus}
        if topology
        else {},
        tuple(notes),
    )


def _read_devices(text: str, labels: dict[int, str], merged: set[str]) -> None:
    """Add the network devices that a line of a log names to `labels`, and merged devices to `merged`."""
    if made := _MERGED.match(text):
        labels.setdefault(int(made[1]), made[2])
        merged.add(f"{made[2]}+{made[3]}")
    for number, name in _USING.findall(text) if text.startswith("NET/IB : Using ") else ():
        labels.setdefault(int(number), name)
    merged.update("+".join(_PART.findall(part)) for part in _PARTS.findall(text) if "," in part)


def read_nccl_log(paths: Sequence[Path]) -> RingNets:
    """Read the connections of rings from NCCL's logs (NCCL_DEBUG=INFO) of all hosts of a job.

    A process connects its rings, then its trees; only connections of rings are used. With several communicators, the
    first connection of each channel on a host is used.

    Raises:
        InputError: no ring is connected over a network, or a host lacks a connection of a channel.
    """
    labels: dict[str, dict[int, str]] = {}
    waiting: dict[tuple[str, str], list[tuple[str, int, int, int]]] = defaultdict(list)
    ended: set[tuple[str, str]] = set()
    devices: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    ranks: dict[str, set[int]] = defaultdict(set)
    gpus: dict[str, set[tuple[str, str]]] = defaultdict(set)
    later = 0
    merged: set[str] = set()
    spellings = HostSpellings()

    def count(process: tuple[str, str]) -> int:
        repeated = 0
        for direction, channel, device, rank in waiting.pop(process, ()):
            known = devices[process[0], channel]
            if direction in known:
                repeated += 1
            else:  # ignore later communicators, which number the ranks differently
                known[direction] = device
                ranks[process[0]].add(rank)
        return repeated

    for path in paths:
        for line in read_dump(path).decode("utf-8", "backslashreplace").splitlines():
            if (match := _LOG_LINE.search(line)) is None:
                continue
            host, text = spellings.find(match[1]), match[4]
            process = host, match[2]
            if text.startswith("NET/IB : "):
                _read_devices(text, labels.setdefault(host, {}), merged)
            elif connected := _CONNECTED.match(text):
                ended.add(process)
                later += count(process) if connected[1] else 0
                waiting.pop(process, None)
            elif found := _CONNECTION.match(text):
                gpus[host].add((match[2], match[3]))
                if found[4] and found[5]:
                    rank = int(found[3 if found[4] == "receive" else 2])
                    waiting[process].append((found[4], int(found[1]), int(found[5]), rank))
    for process in list(waiting):
        later += count(process) if process not in ended else 0
    channels = sorted({channel for _, channel in devices})
    hosts = sorted({host for host, _ in devices}, key=lambda host: min(ranks[host]))
    where = paths[0] if paths else Path("-")
    if not channels:
        raise InputError(where, None, "lines as `NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0`", "none")
    for host in hosts:
        for channel in channels:
            if missing := [each for each in ("receive", "send") if each not in devices[host, channel]]:
                expected = f"a line with [{missing[0]}] for channel {channel:02} from each host"
                raise InputError(where, None, expected, f"none from {quote_found(host)}")
    repeated = [f"{later} connections of other communicators or trees are left out"] if later else []
    repeated += spellings.describe()
    names = show_some(sorted(merged), 4)
    repeated += [f"merged network devices {names}: only the first device of each is used"] if merged else []
    return RingNets(
        tuple(channels),
        {host: tuple((devices[host, c]["receive"], devices[host, c]["send"]) for c in channels) for host in hosts},
        False,
        labels,
        tuple(hosts),
        max(len(gpus[host]) for host in hosts),
        {},
        tuple(repeated),
    )
