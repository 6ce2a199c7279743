# SPDX-License-Identifier: Apache-2.0
"""A real slurmctld loads the topology.conf of a fabric, and topology.yaml has the same tree.

Debian's Slurm 22.05 does not know topology.yaml, so ibprof's own reader reads it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof_converter.cli import layout
from ibprof_converter.fabric.listing import Listing
from ibprof_converter.fabric.slurm_listing import parse_slurm, parse_slurm_yaml
from ibprof_testing.lab import slurm
from ibprof_testing.mpi.mpis import environment

HOSTS = "host[01-16]"
FABRICS = {"a fat-tree": "xgft:2:4,4:1,2", "three levels": "xgft:3:4,2,2:1,2,2", "a dragonfly": "dragonfly:2,4,2"}


def write(fabric: str, path: Path) -> Path:
    assert (
        layout.main([fabric, "pattern:shift:1", "-o", str(path.with_name("links")), "--topology-conf", str(path)]) == 0
    )
    return path


def links(listing: Listing) -> set[frozenset[str]]:
    """Return the names of the two ends of each link."""
    return {frozenset(listing.names[end] for end in row) for row in listing.name.tolist()}


@pytest.mark.parametrize("fabric", FABRICS)
def test_both_forms_are_one_tree(fabric: str, tmp_path: Path) -> None:
    conf, yaml = (write(FABRICS[fabric], tmp_path / name) for name in ("topology.conf", "topology.yaml"))
    one, other = parse_slurm(conf, conf.read_bytes()), parse_slurm_yaml(yaml, yaml.read_bytes())
    assert len(links(one)) > 16
    assert links(one) == links(other)


def test_slurmctld_loads_it(tmp_path: Path) -> None:
    (tmp_path / "slurm").mkdir()
    conf = write(FABRICS["a fat-tree"], tmp_path / "slurm" / "topology.conf")
    settings = ["TopologyPlugin=topology/tree", f"NodeName={HOSTS} State=FUTURE"]
    with slurm.up(1, tmp_path / "slurm", settings) as cluster:
        done = cluster.run(["scontrol", "show", "topology"], environment(), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "SwitchName=level2-1 Level=1 LinkSpeed=1 Nodes=host[01-16] Switches=L1-[1-4]" in done.stdout
    loaded, written = (parse_slurm("topology", text) for text in (done.stdout.encode(), conf.read_bytes()))
    assert links(loaded) == links(written)
