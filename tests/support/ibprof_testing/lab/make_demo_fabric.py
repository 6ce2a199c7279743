# SPDX-License-Identifier: Apache-2.0
"""Make the fabric of `ibprof demo`: a two-level fat-tree that ibsim simulates and a real OpenSM routes.

    python -m ibprof_testing.lab.make_demo_fabric converter/ibprof_converter/data/demo-fabric

It writes OpenSM's own dumps into the folder: `opensm-subnet.lst` (the links) and `opensm.fdbs` (the forwarding tables).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from ibprof_testing.lab.cabling import fat_tree
from ibprof_testing.lab.opensm_subnet import route

LEAVES, SPINES, HOSTS_PER_LEAF = 6, 3, 6
LINKS = LEAVES * (HOSTS_PER_LEAF + SPINES)


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="demo-fabric-") as temporary:
        folder = Path(temporary)
        with route(fat_tree(LEAVES, SPINES, HOSTS_PER_LEAF, "4xEDR"), folder, "ftree"):
            # OpenSM lists each link twice, once from each end. OpenSM silently omits nodes that did not answer in time.
            listed = (folder / "opensm-subnet.lst").read_text().count("\n")
            assert listed == 2 * LINKS, f"expected {2 * LINKS} lines, found {listed}: try again"
            for name in ("opensm-subnet.lst", "opensm.fdbs"):
                shutil.copyfile(folder / name, target / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
