# SPDX-License-Identifier: Apache-2.0
"""`make docs` reads all pages without a warning. The menu has each page, and the reference has each option."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

from markdown_it import MarkdownIt

from ibprof.cli.command import read_parsers
from ibprof_lab.simulation.study.presets import PRESETS
from ibprof_testing.paths import ROOT


def build(root: Path, out: Path) -> str:
    """Return the warnings of a build that resolves all links but writes no pages."""
    options = ["-q", "-N", "-c", root / "docs", "-d", out / "doctrees", "-b", "dummy"]
    command = [sys.executable, "-m", "sphinx", *map(str, (*options, root, out))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_all_pages_are_built_without_a_warning(tmp_path: Path) -> None:
    assert build(ROOT, tmp_path) == ""


def test_a_page_outside_the_menu_and_dead_links_are_reported(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "conf.py").symlink_to(ROOT / "docs" / "conf.py")
    (tmp_path / "docs" / "README.md").write_text("# Top\n\n## Part\n\n[a](a.md)\n")
    (tmp_path / "docs" / "a.md").write_text("# A\n\n[no heading](README.md#none) [no page](none.md)\n")
    (tmp_path / "docs" / "b.md").write_text("# B\n")
    warnings = build(tmp_path, tmp_path / "out")
    assert [each.rpartition("[")[2] for each in warnings.splitlines()] == [
        "toc.not_included]",
        "myst.xref_missing]",
        "myst.xref_missing]",
    ], warnings


def test_the_reference_has_a_list_of_studies() -> None:
    page = "\n".join(runpy.run_path(str(ROOT / "docs" / "conf.py"))["write_commands"]())
    shown = MarkdownIt().render(page)
    assert len(PRESETS) > 5
    for name in PRESETS:
        assert f"<li><strong>{name}</strong>: " in shown


def test_the_reference_has_every_command_and_option() -> None:
    page = "\n".join(runpy.run_path(str(ROOT / "docs" / "conf.py"))["write_commands"]())
    parsers = read_parsers()
    assert len(parsers) > 20
    for name, parser in parsers.items():
        assert f"\n### ibprof {name}\n" in page
        assert [option for option in parser._option_string_actions if option not in page] == []
    assert "pattern:all-to-all[:BYTES]" in page  # only the long help lists the forms of inputs
