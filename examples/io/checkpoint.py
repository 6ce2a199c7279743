# SPDX-License-Identifier: Apache-2.0
"""Write the traffic of a checkpoint: every client writes to every I/O server.

    python checkpoint.py --leaves 72 --hosts-a-leaf 18 --servers 72 --clients 612 -o io

writes traffic.csv and a placement for each layout. The first ranks are servers. Clients are on random hosts. Layout
isolated: servers fill whole leaves, as far apart as possible. Layout spread: all leaves have equally many servers. The
layouts are from figures 6.4, D.1 and D.2 of the dissertation "Resource Contention due to Data Movement on HPC Systems".
Hosts have the names of synthetic fabrics, numbered leaf by leaf.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path


def isolate(leaves: int, width: int, servers: int) -> list[int]:
    """Return the servers' hosts: all hosts of as few leaves as possible; these leaves are equally spaced."""
    needed = -(-servers // width)
    chosen = [(part + 1) * leaves // needed - 1 for part in range(needed)]
    return [leaf * width + host for leaf in chosen for host in range(width)][:servers]


def spread(leaves: int, width: int, servers: int) -> list[int]:
    """Return the servers' hosts: the last host of every leaf, then the last but one of every leaf, and so on."""
    return [leaf * width + width - 1 - turn for turn in range(width) for leaf in range(leaves)][:servers]


def write_placement(path: Path, servers: Sequence[int], hosts: int, clients: int, seed: int) -> None:
    taken = set(servers)
    free = [host for host in range(hosts) if host not in taken]
    placed = [*servers, *random.Random(seed).sample(free, clients)]
    digits = len(str(hosts))
    rows = [f"{rank},host{host + 1:0{digits}d}" for rank, host in enumerate(placed)]
    path.write_text("\n".join(["rank,host", *rows, ""]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leaves", type=int, default=72)
    parser.add_argument("--hosts-a-leaf", type=int, default=18)
    parser.add_argument("--servers", type=int, default=72)
    parser.add_argument("--clients", type=int, default=612)
    parser.add_argument("--bytes", type=int, default=4 << 20, help="bytes from each client to each server")
    parser.add_argument("--seed", type=int, default=1, help="seed for the random choice of the clients' hosts")
    parser.add_argument("-o", "--output", type=Path, default=Path("io"))
    wanted = parser.parse_args()
    wanted.output.mkdir(parents=True, exist_ok=True)
    with (wanted.output / "traffic.csv").open("w") as file:
        file.write("src,dst,bytes,messages\n")
        for client in range(wanted.servers, wanted.servers + wanted.clients):
            file.writelines(f"{client},{server},{wanted.bytes},1\n" for server in range(wanted.servers))
    hosts = wanted.leaves * wanted.hosts_a_leaf
    for name, choose in (("isolated", isolate), ("spread", spread)):
        servers = choose(wanted.leaves, wanted.hosts_a_leaf, wanted.servers)
        write_placement(wanted.output / f"{name}.csv", servers, hosts, wanted.clients, wanted.seed)


if __name__ == "__main__":
    main()
