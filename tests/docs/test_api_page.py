# SPDX-License-Identifier: Apache-2.0
"""docs/api.md has the signature of each public function. Its examples run. `import` loads no heavy libraries."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from importlib.resources import as_file, files
from pathlib import Path
from types import ModuleType

import pytest

import ibprof
import ibprof_converter
import ibprof_lab
from ibprof.archive.otf2_archive import write_archive
from ibprof_converter import api
from ibprof_lab import lab_api
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
FUNCTIONS = {"ibprof.load_profile": ibprof.load_profile} | {
    name: getattr(package, name)
    for package in (ibprof_converter, ibprof_lab)
    for name in package.__all__
    if name.islower()
}


def write_signature(name: str, function: object) -> str:
    assert callable(function)
    signature = inspect.signature(function)
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    return f"{name}{signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)}"


def test_the_page_has_each_function_with_its_signature() -> None:
    assert re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE) == sorted(
        (write_signature(*each) for each in FUNCTIONS.items()), key=lambda line: PAGE.find(f"### `{line}`")
    )


def test_each_result_is_named() -> None:
    for name in (*ibprof_converter.__all__, *ibprof_lab.__all__):
        assert f"`{name}" in PAGE, name


@pytest.mark.parametrize("package", [ibprof, ibprof_converter, ibprof_lab])
def test_each_public_name_has_a_docstring(package: object) -> None:
    for name in package.__all__:  # type: ignore[attr-defined]
        if name != "__version__":
            assert inspect.getdoc(getattr(package, name)), name


@pytest.mark.parametrize(("package", "behind"), [(ibprof_converter, api), (ibprof_lab, lab_api)])
def test_each_public_function_is_listed_and_no_other_name_is_found(package: ModuleType, behind: ModuleType) -> None:
    defined = {name for name, each in vars(behind).items() if name[0] != "_" and _is_defined_in(behind, each)}
    assert {name for name in package.__all__ if name.islower()} == defined
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'reports_of'"):
        _ = package.reports_of


def _is_defined_in(module: ModuleType, found: object) -> bool:
    return inspect.isfunction(found) and found.__module__ == module.__name__


def test_names_of_0_1_0_still_work_and_warn() -> None:
    for name in ("simulate", "StudyResults"):
        with pytest.warns(DeprecationWarning, match=rf"{name} is ibprof_lab\.{name} since 0\.2\.0"):
            assert getattr(ibprof_converter, name) is getattr(ibprof_lab, name)


@pytest.mark.parametrize("package", ["ibprof", "ibprof_converter", "ibprof_lab"])
def test_importing_a_package_imports_nothing_large(package: str) -> None:
    code = f"import sys, {package}; print({{'numpy', 'otf2', 'matplotlib', 'rich', 'yaml'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = 4
    pairs = [(source, (source + step) % ranks) for source in range(ranks) for step in (1, 2)]
    profile = make_profile(
        [Count(source, destination, 1000 * (source + 1)) for source, destination in pairs],
        [make_rank(rank, rank) for rank in range(ranks)],
        [make_host(f"host{rank}") for rank in range(ranks)],
    )
    write_archive(profile, tmp_path / "profile.otf2")
    with as_file(files("ibprof_converter") / "data" / "demo-fabric") as fabric:
        shutil.copytree(fabric, tmp_path / "fabric")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == len(FUNCTIONS)
    exec("\n".join(blocks), {})  # later examples of the page use names of earlier ones
    assert (tmp_path / "view.html").stat().st_size > 10_000
