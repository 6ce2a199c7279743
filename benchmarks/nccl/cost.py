#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure the time that ibprof's profiler plug-in of NCCL takes per event and per collective.

    benchmarks/nccl/cost.py [EXAMPLE]

EXAMPLE is the folder of an example profiler of NCCL, such as ext-profiler/example of 2.28.9. The example is compiled
and measured in the same run. A plug-in that does nothing is measured too. No GPU and no network are used. Rounds of the
plug-ins alternate. The smallest CPU time of each plug-in counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ibprof.native.installed_files import find_nccl_profiler

HERE = Path(__file__).resolve().parent
CSRC = HERE.parents[1] / "csrc"
ROUNDS = 15
COLLECTIVES = 3000


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cost, idle = folder / "cost", folder / "libidle.so"
        subprocess.run(["cc", "-O2", f"-I{CSRC}", HERE / "cost.c", "-o", cost, "-ldl"], check=True)
        subprocess.run(["cc", "-O2", "-fPIC", "-shared", f"-I{CSRC}", HERE / "idle.c", "-o", idle], check=True)
        plugins = {"does nothing": idle, "ibprof": find_nccl_profiler()}
        if sys.argv[1:]:
            example, sources = folder / "libexample.so", Path(sys.argv[1])
            # Events of version 5 contain CUDA streams, so the sources need this type, but no function of CUDA.
            (folder / "cuda_runtime.h").write_text("typedef struct CUstream_st *cudaStream_t;\n")
            options = ["-O2", "-fPIC", "-shared", f"-I{sources}", f"-I{sources / 'nccl'}", f"-I{folder}", "-lpthread"]
            subprocess.run(["c++", *sorted(sources.glob("*.cc")), *options, "-o", example], check=True)
            plugins["NCCL's example"] = example
        environment = {**os.environ, "IBPROF_OUTPUT": str(folder / "recording"), "NCCL_PROFILE_EVENT_MASK": "4095"}
        # Limit the pools: in 2.28.9, a collective's event takes 755 MB, and the default pool has 8 events.
        environment |= {f"NCCL_PROFILE_{pool}_POOL_SIZE": "2" for pool in ("GROUP_API", "COLL_API", "P2P")}
        environment["NCCL_PROFILE_COLL_POOL_SIZE"] = "4"
        least: dict[str, tuple[int, int]] = {}
        for _ in range(ROUNDS):
            for plugin, path in plugins.items():
                command = [str(cost), str(path), str(COLLECTIVES)]
                done = subprocess.run(
                    command, env=environment, cwd=folder, check=True, stdout=subprocess.PIPE, text=True
                )
                calls, time_ns = map(int, done.stdout.split()[-2:])
                least[plugin] = min(least.get(plugin, (calls, time_ns)), (calls, time_ns), key=lambda each: each[1])
        print(f"{'plug-in':16} {'calls':>8} {'ns a call':>10} {'us a collective':>16}")
        for plugin, (calls, time_ns) in least.items():
            print(f"{plugin:16} {calls:8} {time_ns / calls:10.1f} {time_ns / COLLECTIVES / 1000:16.2f}")


if __name__ == "__main__":
    main()
