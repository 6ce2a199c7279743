# SPDX-License-Identifier: Apache-2.0
"""Compute the waiting in each MPI call of a run, from full traces of `tracer.c`. All ranks use the same clock.

The definitions are Scalasca's (https://perftools.pages.jsc.fz-juelich.de/cicd/scalasca/tags/latest/help/scalasca_patterns.html).
This module applies the definitions literally, call by call, and shares no code with ibprof.
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ibprof_testing import processes
from ibprof_testing.mpi.mpis import Mpi, compiler, environment

SOURCE = Path(__file__).with_name("tracer.c")
OUTPUT = "TRACER_OUTPUT"
SENT, RECEIVED, PROBED = 0, 1, 3
UNTIMED = frozenset({"Test", "Testall", "Testany", "Testsome", "Iprobe"})
"""Calls that never wait: they return even if nothing has completed."""

FROM_ROOT = frozenset({"Bcast", "Scatter", "Scatterv"})
TO_ROOT = frozenset({"Reduce", "Gather", "Gatherv"})
PREFIX = frozenset({"Scan", "Exscan"})

CALL = np.dtype([("name", "S32"), ("enter", "i8"), ("exit", "i8")])
INSTANCE = np.dtype(
    [
        ("name", "S32"),
        ("communicator", "u8"),
        *((name, "i8") for name in ("number", "size", "member", "root", "bytes", "start", "call")),
    ]
)
MESSAGE = np.dtype(
    [
        ("name", "S32"),
        ("communicator", "u8"),
        *((name, "i8") for name in ("side", "peer", "tag", "bytes", "post", "order", "call")),
    ]
)


@dataclass(frozen=True, slots=True)
class Trace:
    """All MPI calls of one rank.

    Attributes:
        host: name of the rank's host.
        calls: name, enter and exit time (ns) of each call.
        instances: collective operations. `call` is the index of the completing call in `calls`.
        messages: sent and received messages, each with its `call`.
    """

    host: str
    calls: np.ndarray
    instances: np.ndarray
    messages: np.ndarray


def build_tracer(mpi: Mpi, folder: Path) -> Path:
    """Compile the tracer for an MPI."""
    library = folder / "tracer.so"
    if not library.exists():
        unfinished = library.with_name(".tracer.so")
        options = ["-O2", "-std=gnu11", "-shared", "-fPIC", "-w"]
        done = processes.run([*compiler(mpi, "mpicc"), *options, "-o", unfinished, SOURCE, "-ldl"], env=environment())
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stderr)
        unfinished.replace(library)
    return library


def read_traces(folder: Path) -> list[Trace]:
    """Return the traces of all ranks of a run."""
    first = (folder / "trace.0").read_bytes()
    ranks = int(np.frombuffer(first, np.uint64, 1)[0])
    return [_read(folder / f"trace.{rank}") for rank in range(ranks)]


def _read(path: Path) -> Trace:
    data = path.read_bytes()
    host = data[16:272].split(b"\0")[0].decode()
    at, arrays = 272, []
    for layout in (CALL, INSTANCE, MESSAGE):
        used, size = (int(each) for each in np.frombuffer(data, np.uint64, 2, at))
        assert size == layout.itemsize, path
        arrays.append(np.frombuffer(data, layout, used, at + 16))
        at += 16 + used * size
    return Trace(host, *arrays)


def find_waits(traces: Sequence[Trace]) -> list[np.ndarray]:
    """Return an array for each rank: the waiting inside each of the rank's calls, ns.

    A receive waits until the message starts (late sender). A blocking send waits until the receive starts (late
    receiver). In a broadcast or scatter, a rank waits until the root starts (late broadcast). In other collectives, a
    rank waits until the last rank that it needs starts (wait at N x N or at barrier, early reduce, early scan). If a
    call waits for several events, the last event counts. A wait is never longer than its call.
    """
    waits = [np.zeros(len(trace.calls), np.int64) for trace in traces]

    def wait_until(rank: int, call: int, moment: int) -> None:
        row = traces[rank].calls[call]
        if row["name"].decode() not in UNTIMED:
            waited = min(moment, int(row["exit"])) - int(row["enter"])
            waits[rank][call] = max(int(waits[rank][call]), waited, 0)

    for members in _group_instances(traces).values():
        name, size = members[0][1]["name"].decode(), int(members[0][1]["size"])
        if len(members) != size:
            continue  # the run ended within the call
        kind = name[1:].capitalize() if name.startswith("I") else name
        starts = {int(row["member"]): int(row["start"]) for _, row in members}
        root = int(members[0][1]["root"])
        for rank, row in members:
            me = int(row["member"])
            if kind in FROM_ROOT:
                needed = starts[root] if me != root else None
            elif kind in TO_ROOT:
                needed = max(starts.values()) if me == root else None
            elif kind in PREFIX:
                needed = max(start for member, start in starts.items() if member <= me)
            else:
                needed = max(starts.values())
            if needed is not None:
                wait_until(rank, int(row["call"]), needed)
    for sender, sent, receiver, received in match_messages(traces):
        wait_until(receiver, int(received["call"]), int(sent["post"]))
        call = traces[sender].calls[sent["call"]]
        if call["exit"] > received["post"] and not sent["name"].startswith((b"Win_", b"Neighbor_")):
            wait_until(sender, int(sent["call"]), int(received["post"]))
    for sent, receiver, probed in _match_probes(traces):
        wait_until(receiver, int(probed["call"]), int(sent["post"]))
    return waits


def _match_probes(traces: Sequence[Trace]) -> list[tuple[np.void, int, np.void]]:
    """Return the probed messages: sender's record, receiving rank, receiver's record of the probe.

    A probe waits for a message that a later call receives.
    """
    probes: dict[tuple[int, ...], list[np.void]] = defaultdict(list)
    for rank, trace in enumerate(traces):
        for row in trace.messages[trace.messages["side"] == PROBED]:
            probes[int(row["peer"]), rank, int(row["communicator"]), int(row["tag"])].append(row)
    found, left = [], {envelope: sorted(rows, key=lambda row: int(row["order"])) for envelope, rows in probes.items()}
    for sender, sent, receiver, received in match_messages(traces):
        rows = left.get((sender, receiver, int(received["communicator"]), int(received["tag"])), [])
        while rows and rows[0]["order"] < received["order"]:
            found.append((sent, receiver, rows.pop(0)))
    return found


def _group_instances(traces: Sequence[Trace]) -> dict[tuple[int, int], list[tuple[int, np.void]]]:
    found: dict[tuple[int, int], list[tuple[int, np.void]]] = defaultdict(list)
    for rank, trace in enumerate(traces):
        for row in trace.instances:
            found[int(row["communicator"]), int(row["number"])].append((rank, row))
    return found


def match_messages(traces: Sequence[Trace]) -> list[tuple[int, np.void, int, np.void]]:
    """Return each message: sender, sender's record, receiver, receiver's record.

    Sends and receives are matched in the order of posting.
    """
    ends: tuple[dict[tuple[int, ...], list[np.void]], ...] = (defaultdict(list), defaultdict(list))
    for rank, trace in enumerate(traces):
        for row in trace.messages[trace.messages["side"] != PROBED]:
            pair = (rank, int(row["peer"])) if row["side"] == SENT else (int(row["peer"]), rank)
            ends[row["side"]][(*pair, int(row["communicator"]), int(row["tag"]))].append(row)
    found = []
    for envelope, sent in ends[SENT].items():
        received = ends[RECEIVED].get(envelope, [])
        for one, other in zip(
            sorted(sent, key=lambda row: int(row["order"])),
            sorted(received, key=lambda row: int(row["order"])),
            strict=False,
        ):
            found.append((envelope[0], one, envelope[1], other))
    return found


def split_by_operation(traces: Sequence[Trace]) -> dict[str, tuple[float, float]]:
    """Return operation -> (time in calls, waiting in calls) in s, summed over all ranks."""
    found: dict[str, tuple[float, float]] = {}
    for trace, waits in zip(traces, find_waits(traces), strict=True):
        for name in np.unique(trace.calls["name"]):
            rows = trace.calls["name"] == name
            inside = int((trace.calls["exit"] - trace.calls["enter"])[rows].sum())
            before = found.get(name.decode(), (0.0, 0.0))
            found[name.decode()] = before[0] + inside * 1e-9, before[1] + int(waits[rows].sum()) * 1e-9
    return found
