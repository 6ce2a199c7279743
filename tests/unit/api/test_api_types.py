# SPDX-License-Identifier: Apache-2.0
"""`mypy --strict` accepts right uses of the Python API, and reports wrong names and arguments."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """\
from pathlib import Path

import ibprof
import ibprof_converter as ib
import ibprof_lab as lab

profile: ibprof.Profile = ibprof.load_profile(Path("a.otf2"))
fabric: ib.RoutedFabric = ib.read_fabric("a.lst", Path("b.lst"), tables=["a.fdbs", Path("b.fdbs")])
loads: ib.FabricLoads = ib.load_links(fabric, profile, "pattern:shift:1", placement=["packed", Path("hosts.csv")])
report: ib.JobReport = ib.report(ib.read_traffic(profile), fabric, placement="spread")
comparison: ib.RunComparison = ib.diff(profile, Path("b.otf2"), fabric, fail_on="max_link>+10%")
page: ib.NetworkView = ib.view(loads, loads, rank_data="ranks.csv")
best: ib.PlacementComparison = ib.place(fabric, profile, hosts=Path("free.txt"), slots=2)
health: ib.FabricHealth = ib.check("a.lst")
results: lab.StudyResults = lab.simulate("study.yaml", Path("out"), workers=2)
bytes_of_links: list[int] = [int(rail.sum()) for rail in loads.by_rail]


@ibprof.region("halo")
def exchange(steps: int) -> int:
    return steps


steps: int = exchange(3)
ibprof.load_profil("a.otf2")
ib.read_fabrics("a.lst")
ib.read_fabric(3)
"""
EXPECTED = (
    'Module has no attribute "load_profil"',
    'Module has no attribute "read_fabrics"',
    'Argument 1 to "read_fabric" has incompatible type "int"',
)


def test_only_mistaken_names_and_arguments_are_errors(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    options = ["--strict", "--config-file=", "--cache-dir=/dev/null", "--no-pretty", "--no-error-summary"]
    line = [sys.executable, "-m", "mypy", *options]
    run = subprocess.run([*line, "script.py"], cwd=tmp_path, capture_output=True, check=False, text=True)
    errors = [each for each in run.stdout.splitlines() if ": error: " in each]
    assert len(errors) == len(EXPECTED), run.stdout
    for error, expected in zip(errors, EXPECTED, strict=True):
        assert expected in error
