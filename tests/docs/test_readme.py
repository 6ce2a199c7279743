# SPDX-License-Identifier: Apache-2.0
"""The report in README.md equals the output of the command."""

from __future__ import annotations

import textwrap

import pytest

from ibprof_converter.cli import report
from ibprof_testing.paths import ROOT
from ibprof_testing.samples.fabrics import FABRICS


def test_the_report_is_as_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    fabric = FABRICS / "oversub-faulty" / "ibdiagnet.lst.xz"
    assert report.main([str(fabric), "pattern:all-to-all:1000000"]) == 0
    _, _, rest = (ROOT / "README.md").read_text(encoding="utf-8").partition("<!-- report -->\n")
    shown = textwrap.dedent(rest.partition("<!-- end of report -->")[0]).strip("\n")
    printed = capsys.readouterr().out.rstrip("\n")
    assert [line.rstrip() for line in printed.splitlines()] == shown.splitlines()
    assert len(printed.splitlines()) <= 15
    assert max(map(len, printed.splitlines())) <= 80
