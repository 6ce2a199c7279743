# SPDX-License-Identifier: Apache-2.0
"""A simulated InfiniBand subnet, freshly cabled, with OpenSM running on it.

Needs ibsim, opensm and ibtracert (Debian: ibsim-utils, opensm, infiniband-diags).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.cabling import Cabling, drawn_tree

PACKAGES = {"ibsim": "ibsim-utils", "opensm": "opensm", "ibtracert": "infiniband-diags"}
TIMEOUT_S = 60.0


@contextmanager
def run_subnet(folder: Path, seed: int, lmc: int) -> Iterator[Callable[[int, int], str]]:
    """Cable and route a subnet drawn by `seed`; OpenSM's dumps are in `folder` by then.

    Yields:
        A function that runs ibtracert between two LIDs and gives its output.
    """
    with route(drawn_tree(seed), folder, "minhop", lmc) as simulated:

        def ibtracert(source: int, destination: int) -> str:
            command = ["ibtracert", str(source), str(destination)]
            return subprocess.run(
                command, env=simulated, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
            ).stdout

        yield ibtracert


@contextmanager
def route(cabling: Cabling, folder: Path, engine: str, lmc: int = 0) -> Iterator[dict[str, str]]:
    """Simulate a subnet with OpenSM on it while the block lasts; OpenSM's dumps are in `folder` when it begins.

    Args:
        engine: OpenSM's way to route.

    Yields:
        The environment of programs that are to see the subnet.
    """
    missing = [package for program, package in PACKAGES.items() if shutil.which(program, path=search_path()) is None]
    assert not missing, f"this needs: apt-get install {' '.join(missing)}"
    (folder / "fabric.net").write_text(cabling.text())
    environment = os.environ | {
        "PATH": search_path(),
        "IBSIM_SOCKNAME": f"ibprof-{os.getpid()}-{folder.name}",
        "SIM_HOST": cabling.first_host,
        "OSM_TMP_DIR": f"{folder}/",
        "OSM_CACHE_DIR": f"{folder}/",
    }
    simulated = environment | {"LD_PRELOAD": find_simulator()}
    # -D 0x43 adds the dumps of links and tables; -d 2 flushes the log, which is waited for.
    manage = f"opensm -f osm.log -e -s 0 -D 0x43 -d 2 -n 32 -t 2000 -R {engine} -l {lmc} --dump_files_dir ."
    with (
        start("ibsim -s -n -N 2000 -S 500 -P 20000 fabric.net", folder, environment, "ibsim.log", "simulator ready"),
        start(manage, folder, simulated, "osm.log", "SUBNET UP"),
    ):
        yield simulated


def find_simulator() -> str:
    """Find the library that puts a program's management datagrams on the simulated subnet."""
    return str(next(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so")))


def search_path() -> str:
    """Give PATH with the folders of administrators' programs, which users often lack."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


@contextmanager
def start(command: str, folder: Path, environment: dict[str, str], log: str, ready: str) -> Iterator[None]:
    """Run a program until the block ends; the block begins when `ready` is in its log."""
    with (folder / f"{command.split(maxsplit=1)[0]}.log").open("w") as output:
        process = subprocess.Popen(
            command.split(), cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            until = time.monotonic() + TIMEOUT_S
            while not (folder / log).exists() or ready not in (folder / log).read_text(errors="replace"):
                assert process.poll() is None, f"{command} ended: {(folder / output.name).read_text()}"
                assert time.monotonic() < until, f"{command} is not ready after {TIMEOUT_S} s"
                time.sleep(0.02)
            yield
        finally:
            process.terminate()
            process.wait(TIMEOUT_S)
