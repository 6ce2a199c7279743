# SPDX-License-Identifier: Apache-2.0
"""docs/architecture.md names exactly the folders of the tree, and the layers that import-linter checks."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from shutil import copyfile

from importlinter.api import read_configuration

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
# Each direct subfolder of these folders must be named on the page; deeper folders need not be.
CONVERTER = "converter/ibprof_converter"
LAB = "converter/ibprof_lab"
HOUSES = (
    *("ibprof", "csrc", "csrc/kernels", "csrc/preload", "csrc/preload/sources", "tests", CONVERTER, LAB),
    *("viewer", "viewer/src"),
    *(f"{LAB}/{room}" for room in ("latency", "scaling", "simulation", "topology")),
)


MADE_BY_TOOLS = [
    f"/{line.strip('/')}/" for line in (ROOT / ".gitignore").read_text().splitlines() if line.endswith("/")
]
"""Folders in .gitignore, which builds, tests and the demo create."""


def is_of_the_project(path: Path) -> bool:
    return not any(made in f"/{path.relative_to(ROOT).as_posix()}" for made in MADE_BY_TOOLS)


def folders_in(folder: Path) -> set[str]:
    """Return the direct subfolders that contain a file of the project at any depth."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".so" and is_of_the_project(path))
    rooms = {parts[0] for file in files if len(parts := file.relative_to(folder).parts) > 1}
    shown = {name for name in rooms if name in (".ci", ".github") or not name.startswith(".")}
    return {(folder / name).relative_to(ROOT).as_posix() for name in shown}


def test_every_folder_is_named_on_the_page_and_the_page_names_no_other() -> None:
    named = set(re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE))
    there = folders_in(ROOT).union(*(folders_in(ROOT / house) for house in HOUSES))
    assert named == there


def test_the_page_names_only_files_that_exist() -> None:
    named = set(re.findall(r"`([\w./-]+\.(?:c|def|h|mjs|py|sh|ts))`", PAGE))
    assert len(named) > 15
    folders = [ROOT / top for top in ("csrc", "ibprof", "converter", "viewer/src", "scripts", "tests")]
    files = [path for folder in folders for path in folder.rglob("*.*") if is_of_the_project(path)]
    assert [name for name in named if not any(f"/{path.as_posix()}".endswith(f"/{name}") for path in files)] == []


def test_the_layers_on_the_page_are_those_that_are_checked() -> None:
    contracts = read_configuration(str(ROOT / "pyproject.toml"))["contracts_options"]
    layers = {contract["containers"][0]: contract["layers"] for contract in contracts if "containers" in contract}
    for house, order in layers.items():
        printed = " > ".join(layer.replace(" |", ",") for layer in order)
        assert f"    {house.rpartition('.')[2]}: {printed}\n" in PAGE
    houses = next(contract["layers"] for contract in contracts if "containers" not in contract)
    assert f"    {' > '.join(houses)}\n" in PAGE


def test_the_recorders_rooms_are_in_the_order_that_is_checked() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "check-includes.py"))
    order = script["ORDERS"][0][1:-1]  # without the first entry (headers for all files) and the last (tests)
    printed = " < ".join(", ".join(room.removeprefix("preload/") for room in rooms) for rooms in order)
    assert f"    {printed}\n" in PAGE


def test_files_that_call_each_other_through_one_header_are_reported(tmp_path: Path) -> None:
    """Two source files that include one header call each other. The includes do not show this cycle."""
    script = tmp_path / "scripts" / "check-includes.py"
    room = tmp_path / "csrc" / "kernels" / "spread"
    for folder in (script.parent, room):
        folder.mkdir(parents=True)
    copyfile(ROOT / "scripts" / "check-includes.py", script)
    (room / "whole.h").write_text("int ibp_part(void);\n")
    (room / "whole.c").write_text('#include "spread/whole.h"\nint ibp_whole(void)\n{\n    return ibp_part();\n}\n')
    (room / "part.c").write_text('#include "spread/whole.h"\nint ibp_part(void)\n{\n    return 1;\n}\n')
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "closes a cycle" in done.stderr
    (room / "part.c").write_text("int ibp_part(void)\n{\n    return 1;\n}\n")
    assert subprocess.run([sys.executable, script], check=False).returncode == 0


def test_the_page_on_the_recording_names_every_struct_of_the_header() -> None:
    header = (ROOT / "csrc" / "include" / "ibprof_recording.h").read_text()
    structs = re.findall(r"^struct (\w+) \{", header, re.MULTILINE)
    kinds = re.findall(r"^    (IBP_SEGMENT_\w+) =", header, re.MULTILINE)
    assert len(structs) > 5
    assert len(kinds) > 5
    page = (ROOT / "docs" / "formats" / "recording.md").read_text()
    assert [name for name in structs + kinds if f"`{name}`" not in page and f" {name} " not in page] == []


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 10
    broken = []
    for page in pages:
        prose = re.sub(r"^    .*$", "", page.read_text(), flags=re.MULTILINE)  # code may look like a link
        for target in re.findall(r"\]\(([^)#:\s]+)\)", prose):
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []
