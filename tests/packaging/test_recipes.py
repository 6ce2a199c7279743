# SPDX-License-Identifier: Apache-2.0
"""Recipes for other package managers have the version and the dependencies in pyproject.toml."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from ibprof_testing.paths import ROOT

PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
RECIPES = ROOT / "packaging"


def read_list(name: str) -> dict[str, str]:
    """Return package -> minimum version, from a list in pyproject.toml.

    A regular expression finds the list, because Python 3.10 has no parser of TOML.
    """
    (text,) = re.findall(rf"^{name} = \[(.*?)\]$", PROJECT, re.MULTILINE | re.DOTALL)
    return {each.lower(): version for each, version in re.findall(r'"([\w-]+)>=([\d.]+)"', text)}


def cut_zeros(versions: dict[str, str]) -> dict[str, str]:
    return {name: re.sub(r"(\.0)+$", "", version) for name, version in versions.items()}


def test_conda_needs_what_the_wheel_needs() -> None:
    recipe = yaml.safe_load((RECIPES / "conda" / "meta.yaml").read_text().replace("{{ compiler('c') }}", "gcc"))
    run = dict(each.split(" >=") for each in recipe["requirements"]["run"])
    assert run.pop("python") in PROJECT
    assert run == read_list("dependencies")
    assert (
        read_list("requires").items()
        <= dict(each.split(" >=") for each in recipe["requirements"]["host"] if " >=" in each).items()
    )
    assert f'\nversion = "{recipe["package"]["version"]}"\n' in PROJECT


def test_spack_needs_what_the_wheel_and_the_laboratory_need() -> None:
    text = (RECIPES / "spack" / "package.py").read_text()
    compile(text, "package.py", "exec")
    lines = re.findall(r'depends_on\("py-([\w-]+)@([\d.]+):", type=(.*?)(, when="\+lab")?\)\n', text)
    run = {name: version for name, version, kind, lab in lines if "run" in kind and not lab}
    laboratory = {name: version for name, version, _, lab in lines if lab}
    assert cut_zeros(run) == cut_zeros(read_list("dependencies"))
    assert cut_zeros(laboratory) == cut_zeros(read_list("lab"))
    versions = re.findall(r'version\("([\d.]+)", tag="v([\d.]+)"\)', text)
    assert versions[0][0] == versions[0][1]
    assert f'\nversion = "{versions[0][0]}"\n' in PROJECT


def test_the_citation_has_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert f'\nversion = "{citation["version"]}"\n' in PROJECT


def test_the_container_installs_as_the_trial_does() -> None:
    recipe, trial = (
        (RECIPES / "apptainer" / "ibprof.def").read_text(),
        (ROOT / "scripts" / "try-install.sh").read_text(),
    )
    for words in ("python3-venv", "--only-binary :all:", "/wheels/ibprof-"):
        assert words in recipe
        assert words in trial


@pytest.mark.full
def test_a_wheel_works_on_a_system_without_a_compiler(tmp_path: Path) -> None:
    subprocess.run(["scripts/make-wheels.sh", tmp_path / "wheels"], cwd=ROOT, check=True)
    done = subprocess.run(
        ["scripts/try-install.sh", tmp_path / "wheels", tmp_path / "roots", "trixie"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "ok   MPI" in done.stdout
    assert "ibprof-demo/cured.html" in done.stdout
