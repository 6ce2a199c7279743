# SPDX-License-Identifier: Apache-2.0
"""The notebook in examples/ runs unchanged, and each of its results has an HTML form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "links.ipynb"
SHOWN = ("RoutedFabric", "FabricHealth", "FabricLoads", "list", "JobReport", "PlacementComparison", "NetworkView")
"""Types of the results that the notebook's cells end with, in the order of the cells."""


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    shell = InteractiveShell.instance()
    assert shell.display_formatter is not None
    results = []
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            done = shell.run_cell("".join(cell["source"]))  # type: ignore[no-untyped-call]
            done.raise_error()
            results.append(done.result)
    assert tuple(type(result).__name__ for result in results) == SHOWN
    for result in results:
        assert "\n" not in repr(result)
        if not isinstance(result, list):
            assert "<" in shell.display_formatter.format(result)[0]["text/html"]  # type: ignore[no-untyped-call]
