# SPDX-License-Identifier: Apache-2.0
"""Run nccl/harness.c, a program that calls ibprof's plug-in as NCCL does."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ibprof.native.installed_files import find_nccl_profiler

SOURCES = Path(__file__).with_name("nccl")
CSRC = Path(__file__).resolve().parents[3] / "csrc"


class Ports:
    """Find free TCP ports."""

    def take(self, ranks: int) -> int:
        """Return the first of a range of free ports, large enough for the ranks of 8 communicators."""
        for first in range(20000 + os.getpid() % 9000, 32000, 8 * ranks + 1):
            taken = []
            try:
                for port in range(first, first + 8 * ranks + 1):
                    taken.append(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            finally:
                for each in taken:
                    each.close()
            return first
        raise AssertionError("no free ports")


def _compile(source: str, made: Path, *options: str) -> Path:
    made.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-O1", "-g", f"-I{CSRC}", *options, str(SOURCES / source), "-o", str(made), "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return made


def build_harness(folder: Path) -> Path:
    """Compile nccl/harness.c, and return the program."""
    return _compile("harness.c", folder / "nccl_harness")


def build_next(folder: Path, version: int) -> Path:
    """Compile a plug-in that counts events, for one version of NCCL's interface."""
    return _compile("counting_plugin.c", folder / "libnext.so", "-shared", "-fPIC", f"-DVERSION={version}")


def run_ranks(
    harness: Path,
    ports: Ports,
    recording: Path,
    ranks: int,
    version: int,
    *options: str,
    env: Mapping[str, str] = {},
    may_fail: bool = False,
    only_recorded: int | None = None,
) -> list[dict[str, Any]]:
    """Run ranks as torchrun starts them; return the output of each rank.

    Args:
        harness: the program that `build_harness` returned.
        ports: TCP ports for the program's connections.
        recording: folder to record into.
        version: newest version of NCCL's interface that the harness supports.
        options: the program's options.
        may_fail: true if ranks may end with a status other than 0.
        only_recorded: the only rank that loads ibprof's plug-in. All other ranks load a plug-in that records nothing.
            None if all ranks load ibprof's plug-in.
    """
    own = {
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(ports.take(ranks)),
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "IBPROF_OUTPUT": str(recording),
    }
    idle = None if only_recorded is None else build_next(harness.parent, version)
    running = []
    for rank in range(ranks):
        plugin = find_nccl_profiler() if only_recorded in (None, rank) else idle
        command = [str(harness), str(plugin), str(version), *options]
        environment = {**os.environ, **own, **env, "RANK": str(rank)}
        running.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    said = []
    for one in running:
        printed, _ = one.communicate(timeout=60)
        assert may_fail or one.returncode == 0
        said.append(json.loads(printed))
    return said
