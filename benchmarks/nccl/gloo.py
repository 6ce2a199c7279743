# SPDX-License-Identifier: Apache-2.0
"""Run PyTorch's Gloo on four hosts (network namespaces), by `ibprof run -- torchrun`, and count the bytes.

Each host prints (bytes sent by the interface) / (bytes of a ring algorithm: 2 (n-1) / n of the data), for all-reduces
and for steps of DistributedDataParallel. Gloo and UCC are not recorded, as ibprof states.

Run it as root from a checkout, with ibprof installed, and with the torchrun of any PyTorch:
    python benchmarks/nccl/gloo.py venv/bin/torchrun
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from ibprof_testing.lab import hosts as lab

HOSTS = 4

PROGRAM = """
import torch
import torch.distributed as dist
from pathlib import Path

def sent():
    return int(Path("/sys/class/net/eth0/statistics/tx_bytes").read_text())

dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
values = torch.ones(4 << 20)
dist.barrier()
before = sent()
for _ in range(10):
    dist.all_reduce(values)
reduced = sent() - before
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1024, 1024))
dist.barrier()
before = sent()
for _ in range(5):
    # Gradients are reduced in the backward step.
    model(torch.randn(8, 1024)).sum().backward()
stepped = sent() - before

ring = 2 * (ranks - 1) * 4 / ranks
print(
    f"rank {rank}: all_reduce {reduced / (10 * ring * len(values)):.4f} of a ring's bytes, "
    f"DDP {stepped / (5 * ring * 1024 * 1025):.4f}, UCC available: {dist.is_ucc_available()}",
    flush=True,
)
dist.destroy_process_group()
"""


def main() -> None:
    torchrun = str(Path(sys.argv[1]).absolute())
    ibprof = Path(sysconfig.get_path("scripts")) / "ibprof"
    with tempfile.TemporaryDirectory() as name, lab.up(HOSTS, Path(name)) as hosts:
        program = Path(name) / "program.py"
        program.write_text(PROGRAM)
        environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0"}
        running = []
        for number, host in enumerate(hosts.names):
            launch = [torchrun, "--nnodes", str(HOSTS), "--nproc-per-node", "1", "--node-rank", str(number)]
            launch += ["--master-addr", hosts.address(hosts.names[0]), "--master-port", "29501", str(program)]
            command = ["ip", "netns", "exec", hosts.namespace(host), str(ibprof), "run", "--", *launch]
            running.append(subprocess.Popen(command, env=environment, cwd=name))
        statuses = [each.wait(300) for each in running]
        assert not any(statuses), statuses


if __name__ == "__main__":
    main()
