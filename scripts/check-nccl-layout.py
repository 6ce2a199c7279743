#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare csrc/nccl's layout of NCCL's profiler interface with headers of NCCL or RCCL.

    scripts/check-nccl-layout.py FOLDER...

Each folder is a source tree of NCCL or RCCL, or contains only headers (profiler_v1.h, ..., or nccl_profiler.h). The
script prints version, name and offset of each member. Exit status 1: an offset differs; 2: a folder has no headers.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

OWN = Path(__file__).resolve().parent.parent / "csrc"

HEAD = {
    "type": "type",
    "parentObj": "parent",
    "rank": "rank",
    "proxyOp.pid": "proxy_op.pid",
    "proxyOp.channelId": "proxy_op.channel",
    "proxyOp.peer": "proxy_op.peer",
    "proxyOp.nSteps": "proxy_op.steps",
    "proxyOp.chunkSize": "proxy_op.chunk_bytes",
    "proxyOp.isSend": "proxy_op.is_send",
    "proxyStep.step": "proxy_step.step",
}
NET = {"netPlugin.id": "net_plugin.id", "netPlugin.data": "net_plugin.data"}
NAMED = {
    "coll.name": "coll.name",
    "coll.commHash": "coll.communicator",
    "p2p.name": "p2p.name",
    "p2p.commHash": "p2p.communicator",
}
TASKS = {
    "coll.seqNumber": "coll.sequence",
    "coll.func": "coll.function",
    "coll.sendBuff": "coll.send_buffer",
    "coll.recvBuff": "coll.receive_buffer",
    "coll.count": "coll.count",
    "coll.root": "coll.root",
    "coll.datatype": "coll.datatype",
    "coll.nWarps": "coll.warps",
    "coll.algo": "coll.algorithm",
    "coll.proto": "coll.protocol",
    "p2p.func": "p2p.function",
    "p2p.buff": "p2p.buffer",
    "p2p.datatype": "p2p.datatype",
    "p2p.count": "p2p.count",
    "p2p.peer": "p2p.peer",
}
MOST = {"coll.nMaxChannels": "coll.channels"}
TRAFFIC = {"coll.trafficBytes": "coll.traffic_bytes"}
FIRST = {"coll.op": "coll.reduction", "coll.isCollnet": "coll.is_collnet", "coll.isNvls": "coll.is_nvls"}
CHANNELS = {"coll.nChannels": "coll.channels", "p2p.nChannels": "p2p.channels"}
TIMER = {"kernelCh.channelId": "kernel_ch.channel", "kernelCh.pTimer": "kernel_ch.gpu_timer"}
GROUPS = {
    "coll.parentGroup": "coll.parent_group",
    "p2p.parentGroup": "p2p.parent_group",
    "groupApi.graphCaptured": "group_api.is_captured",
    "groupApi.groupDepth": "group_api.depth",
    "collApi.func": "coll_api.function",
    "collApi.graphCaptured": "coll_api.is_captured",
    "p2pApi.func": "p2p_api.function",
    "p2pApi.graphCaptured": "p2p_api.is_captured",
    "kernelLaunch.stream": "kernel_launch.stream",
}
FIFTH = HEAD | NET | TASKS | CHANNELS | TIMER | GROUPS
MEMBERS = {
    1: HEAD | NAMED | TASKS | MOST | TRAFFIC | FIRST,
    2: HEAD | NAMED | TASKS | MOST | TRAFFIC,
    3: HEAD | NAMED | TASKS | MOST | NET,
    4: HEAD | TASKS | CHANNELS | NET | TIMER,
    5: FIFTH,
    6: FIFTH,
    7: FIFTH,
}
"""Version -> {NCCL's name of an event's member: name in csrc/nccl/profiler_abi.h}; equal for versions 5 to 7."""

PROFILER = ("name", "init", "startEvent", "stopEvent", "recordEventState", "finalize")

PRELUDE = """\
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <sys/types.h>
#define _Static_assert static_assert
typedef int ncclResult_t;
typedef pid_t ncclPid_t;
typedef void (*ncclDebugLogger_t)(int, unsigned long, const char *, int, const char *, ...);
#include "nccl/profiler_abi.h"
"""


def find_headers(folder: Path) -> dict[int, Path]:
    """Return the header of each version in a folder."""
    found = {}
    for path in sorted(folder.rglob("*.h")):
        versions = re.findall(r"\}\s*ncclProfilerEventDescr_v(\d+)_t;", path.read_text(errors="replace"))
        # Prefer the library's own headers (src/include): source trees also contain copies for examples.
        for version in map(int, versions):
            if version not in found or "src/include" in path.as_posix():
                found[version] = path
    return found


def print_offsets(version: int, header: Path) -> str:
    """Return the output of a compiled program: each member's name, offset in NCCL, and offset in csrc/nccl."""
    text = header.read_text(errors="replace")
    separate = re.search(r"enum\s*\{", text) is None
    states = "".join(f"typedef int ncclProfilerEventState_v{each}_t;\n" for each in range(1, 8)) if separate else ""
    event, own = f"ncclProfilerEventDescr_v{version}_t", f"struct ibp_nccl_event_{min(version, 5)}"
    lines = [
        f'printf("{theirs} %zu %zu\\n", offsetof({event}, {theirs}), offsetof({own}, {own_name}));'
        for theirs, own_name in MEMBERS[version].items()
    ]
    plugin = f"ncclProfiler_v{version}_t"
    lines += [f'printf("{name} %zu %d\\n", offsetof({plugin}, {name}), {8 * n});' for n, name in enumerate(PROFILER)]
    arguments = f"ncclProfilerEventStateArgs_v{version}_t"
    moved = "proxyOp" if version < 4 else "proxyStep"
    lines += [
        f'printf("{moved}.transSize %zu 0\\n", offsetof({arguments}, {moved}.transSize));',
        f'printf("size %zu\\n", sizeof({event}));',
    ]
    program = f'{PRELUDE}{states}#include "{header}"\nint main() {{\n' + "\n".join(lines) + "\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "offsets.cc"), Path(folder, "offsets")
        source.write_text(program)
        command = ["c++", "-std=c++17", "-w", f"-I{OWN}", f"-I{OWN}/include", str(source), "-o", str(made)]
        subprocess.run(command, check=True)
        return subprocess.run([made], check=True, capture_output=True, text=True).stdout


def main() -> int:
    differs = 0
    for folder in map(Path, sys.argv[1:]):
        headers = find_headers(folder)
        if not headers:
            print(f"{folder}: no headers of the profiler interface", file=sys.stderr)
            return 2
        for version in sorted(headers.keys() & MEMBERS.keys()):
            for line in print_offsets(version, headers[version]).splitlines():
                name, theirs, *own_offset = line.split()
                if own_offset and own_offset[0] != theirs:
                    print(
                        f"{headers[version]}: v{version} {name} has offset {theirs}, in csrc/nccl {own_offset[0]}",
                        file=sys.stderr,
                    )
                    differs = 1
                print(f"v{version} {name} {theirs}")
        for version in sorted(headers.keys() - MEMBERS.keys()):
            print(f"{headers[version]}: version {version} is not known to ibprof", file=sys.stderr)
            differs = 1
    return differs if sys.argv[1:] else 2


if __name__ == "__main__":
    sys.exit(main())
