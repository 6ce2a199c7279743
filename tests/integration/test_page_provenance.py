# SPDX-License-Identifier: Apache-2.0
"""By default, a report's page names no folder and no user of the machine that made the page."""

from __future__ import annotations

import base64
import html
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof_converter.cli import diff, layout, report, view
from ibprof_testing.samples.fabrics import FABRICS
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

OWNER = "alice&co"


def make_inputs(folder: Path) -> list[str]:
    """Write a fabric and a profile into a folder named after the user."""
    own = folder / OWNER / "secret"
    copytree(FABRICS / "testbed44", own)
    run = make_profile(
        [Count(0, 1, 9_000_000), Count(1, 2, 5_000)],
        [make_rank(rank, rank) for rank in range(3)],
        [make_host(name) for name in ("host01", "host21", "host41")],
    )
    command = f"/home/{OWNER}/bin/solver --in /scratch/{OWNER}/a.nml -n 3"
    write_archive(replace(run, command=command), own / "profile.otf2")
    return [str(own / "ibdiagnet.lst"), str(own / "profile.otf2")]


def read_page(path: Path) -> str:
    """Return the text of a page and the inflated data of its view."""
    page = html.unescape(path.read_text())
    view = html.unescape(re.findall(r'srcdoc="(.*?)"', path.read_text(), re.DOTALL)[0])
    packed = max(re.findall(r"[A-Za-z0-9+/=]{200,}", view), key=len)
    return page + zlib.decompress(base64.b64decode(packed)).decode("latin-1")


@pytest.mark.parametrize("from_within", [False, True])
def test_a_page_names_files_without_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, from_within: bool) -> None:
    inputs = make_inputs(tmp_path)
    if from_within:
        monkeypatch.chdir(tmp_path / OWNER)
        inputs = [f"secret/{Path(each).name}" for each in inputs]
    assert report.main([*inputs, "--html", str(tmp_path / OWNER / "report.html")]) == 0
    said = read_page(tmp_path / OWNER / "report.html")
    for hidden in (OWNER, "secret", str(tmp_path), f"{Path.home()}/"):
        assert hidden not in said, said[max(0, said.find(hidden) - 80) :][:200]
    assert "ibprof-report ibdiagnet.lst profile.otf2 --html report.html" in said.replace("'", "")
    assert "solver --in a.nml -n 3" in said
    assert "host21" in said  # a host of the job


def unpack_view(path: Path) -> str:
    """Return the whole contents of a view: its text, and its deflated data."""
    page = path.read_text()
    packed = max(re.findall(r"[A-Za-z0-9+/=]{200,}", page), key=len)
    return page + zlib.decompress(base64.b64decode(packed)).decode("latin-1")


def write_diff(inputs: list[str], page: Path, *options: str) -> str:
    fabric, run = inputs
    assert diff.main([run, run, "--fabric", fabric, "--html", str(page), *options]) == 0
    return html.unescape(page.read_text())


def write_views(inputs: list[str], page: Path, *options: str) -> str:
    assert view.main([*inputs, "-o", str(page), "--compare", inputs[1], *options]) == 0
    said = unpack_view(page)
    assert layout.main([*inputs, "--html", str(page), "-o", str(page.with_suffix(".csv")), *options]) == 0
    return said + unpack_view(page)


@pytest.mark.parametrize("write", [write_diff, write_views])
@pytest.mark.parametrize("from_within", [False, True])
def test_comparisons_and_views_name_files_without_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[..., str], from_within: bool
) -> None:
    inputs = make_inputs(tmp_path)
    if from_within:
        monkeypatch.chdir(tmp_path / OWNER)
        inputs = [f"secret/{Path(each).name}" for each in inputs]
    said = write(inputs, tmp_path / OWNER / "page.html")
    for hidden in (OWNER, "secret", str(tmp_path), f"{Path.home()}/"):
        assert hidden not in said, said[max(0, said.find(hidden) - 80) :][:200]
    assert "profile.otf2" in said
    assert inputs[0] in write(inputs, tmp_path / OWNER / "page.html", "--provenance", "full")


def test_paths_are_added_when_asked_for(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path)
    assert report.main([*inputs, "--html", str(tmp_path / "report.html"), "--provenance", "full"]) == 0
    said = read_page(tmp_path / "report.html")
    assert inputs[0] in said
    assert inputs[1] in said
    assert f"/home/{OWNER}/bin/solver" in said
